"""A version of a local Delta table as a table of its own, by links to its files."""

from __future__ import annotations

import os
import re
from pathlib import Path

LOG = "_delta_log"
"""The folder of a Delta table with its commits and checkpoints."""
_VERSION = re.compile(r"[0-9]{20}(?=[.])")
"""Matches the version at the start of the name of a commit or checkpoint."""


def link_version(table: Path, version: int, folder: Path) -> str:
    """Create a folder that is a Delta table up to a version, by links to its files; its path."""
    (folder / LOG).mkdir(parents=True)
    for entry in os.scandir(table):
        if entry.name != LOG:
            (folder / entry.name).symlink_to(entry.path)
    for entry in os.scandir(table / LOG):
        number = _VERSION.match(entry.name)
        is_of_it = entry.is_dir() if number is None else int(number[0]) <= version
        if is_of_it:  # a folder has parts of checkpoints
            (folder / LOG / entry.name).symlink_to(entry.path)
    return str(folder)
