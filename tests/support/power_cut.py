"""A run that dies at one of its commits: its lake is as it was then."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from strandline.lake.store import lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def died_before_commit(number: int, folder: Path) -> Iterator[list[str]]:
    """The lake is put back to how it was before a commit of the block; yields if it was reached.

    The block itself goes on to its end: nothing that it writes later stays.
    """
    made = 0
    reached: list[str] = []
    properties = lock.CommitProperties

    with TemporaryDirectory() as place:
        copy = f"{place}/lake"

        def counted(*args: Any, **more: Any) -> Any:
            nonlocal made
            made += 1
            if made == number:
                shutil.copytree(folder, copy)
                reached.append(str(more))
            return properties(*args, **more)

        with patch.object(lock, "CommitProperties", counted):
            yield reached
        if reached:
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)
