"""Durability of written files: the lake's file system stores them on request."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path


def flush(folder: Path) -> None:
    """Have a folder's file system store all written data, and wait until it has done so.

    Engines and delta-rs do not sync their files. Within half a minute of a write, a power cut might
    therefore leave a commit without the rows that it names.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            _sync(opened)
        finally:
            os.close(opened)


def _sync(opened: int) -> None:
    """Call `syncfs` on Linux, and `sync`, for all file systems, elsewhere."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None or syncfs(opened) != 0:
        os.sync()
