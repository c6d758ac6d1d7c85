"""A version of a local Delta table as a table of its own, by links to its files."""

from __future__ import annotations

import os
from pathlib import Path

from strandline.lake.store.reads import LOG, version_of


def link_version(table: Path, version: int, folder: Path) -> str:
    """Create a folder that is a Delta table up to a version, by links to its files; its path."""
    (folder / LOG).mkdir(parents=True)
    for entry in os.scandir(table):
        if entry.name != LOG:
            (folder / entry.name).symlink_to(entry.path)
    for entry in os.scandir(table / LOG):
        of_entry = version_of(entry.name)
        is_known = of_entry is not None and of_entry <= version
        if is_known or entry.is_dir():  # a folder has parts of checkpoints
            (folder / LOG / entry.name).symlink_to(entry.path)
    return str(folder)
