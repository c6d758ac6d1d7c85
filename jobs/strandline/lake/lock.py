"""The locks of a pipeline, each a file. The system frees one when its holder dies."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from strandline.errors import RetryableError, not_writable

_TIMEOUT_S = 900
_PAUSE_S = 0.2


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive `flock` on a file, waiting for whoever has it.

    Raises:
        InputError: the file cannot be made.
        RetryableError: its holder did not let go for a quarter of an hour, or the disk is full.
    """
    with _opened(path) as handle:
        _wait_for(handle, path)
        yield


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        raise not_writable(str(path.parent), error) from None


def _wait_for(handle: IO[str], path: Path) -> None:
    for _ in range(int(_TIMEOUT_S / _PAUSE_S)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    raise RetryableError(str(path), "held by another publisher", "try again later")
