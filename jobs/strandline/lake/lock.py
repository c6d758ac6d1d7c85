"""The one lock of a pipeline: who holds it publishes. The system frees it when its holder dies."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.errors import InputError, RetryableError

_PATIENCE_S = 900
_PAUSE_S = 0.2


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive `flock` on a file, waiting for whoever has it.

    Raises:
        InputError: the file cannot be made.
        RetryableError: its holder did not let go for a quarter of an hour.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    except OSError as error:
        raise InputError(
            str(path.parent),
            f"cannot be written ({error.strerror})",
            "check the path and its rights",
        ) from None
    with handle:
        for _ in range(int(_PATIENCE_S / _PAUSE_S)):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_PAUSE_S)
        else:
            raise RetryableError(str(path), "held by another publisher", "try again later")
        yield
