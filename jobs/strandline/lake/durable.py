"""What has been written survives a power cut: the file system of a lake is asked to store it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path


def flush(folder: Path) -> None:
    """Have the file system of a folder store all that was written to it, and wait for that.

    Engines and delta-rs write files of their own and ask for nothing, so that the system may keep
    a commit, and not the rows that it names, for half a minute.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            _sync(opened)
        finally:
            os.close(opened)


def _sync(opened: int) -> None:
    """`syncfs`, which Linux has; elsewhere all file systems are asked."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None or syncfs(opened) != 0:
        os.sync()
