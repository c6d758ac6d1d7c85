"""A disk of its own for a test, full or read-only as it likes."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def a_small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """A disk that is mounted at a folder; the test is skipped where nobody may."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(disk: Path, *, free_kilobytes: int = 0) -> Iterator[None]:
    """It has no more room than that for a while."""
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free - free_kilobytes * 1024
    filler.write_bytes(b"0" * max(0, free))
    yield
    filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Nothing can be written to it for a while."""
    remount = ["mount", "-o", "remount,{}", str(disk)]
    subprocess.run([part.format("ro") for part in remount], check=True)
    try:
        yield
    finally:
        subprocess.run([part.format("rw") for part in remount], check=True)
