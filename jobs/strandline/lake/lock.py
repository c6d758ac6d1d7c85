"""The one lock of a pipeline: who holds it publishes. The system frees it when its holder dies."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from strandline.errors import InputError, RetryableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIMEOUT_S = 900
_PAUSE_S = 0.2


def exclusive(path: Path) -> AbstractContextManager[None]:
    """Hold an exclusive `flock` on a file, waiting for whoever has it.

    Raises:
        InputError: the file cannot be made.
        RetryableError: its holder did not let go for a quarter of an hour.
    """
    return _held_here(path, fcntl.flock)


@contextmanager
def publisher(path: Path, spark: SparkSession | None) -> Iterator[None]:
    """Hold the lock of who writes published tables, in this process and in its JVM.

    A driver is two processes. If its Python is killed, its JVM still commits what it was about to,
    some seconds long, when the lock of the Python is free already. So the JVM holds a lock of its
    own beside it (`<path>.jvm`): a record lock, of the kind that Java knows.

    Args:
        path: the file of the lock.
        spark: the session whose JVM is to write; None: nothing but this process writes.

    Raises:
        InputError: the file cannot be made.
        RetryableError: a holder did not let go for a quarter of an hour.
    """
    beside = path.with_name(f"{path.name}.jvm")
    with exclusive(path), _held_by(spark, beside) if spark else _held_here(beside, fcntl.lockf):
        yield


@contextmanager
def _held_here(path: Path, lock: Callable[[Any, int], None]) -> Iterator[None]:
    """Hold a lock of a kind on a file: `flock` or `lockf`, a record lock."""
    with _opened(path) as handle:

        def acquired() -> bool:
            try:
                lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        _wait_for(acquired, path)
        yield


@contextmanager
def _held_by(spark: SparkSession, path: Path) -> Iterator[None]:
    jvm: Any = spark._jvm
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    channel = file.getChannel()
    try:
        _wait_for(lambda: channel.tryLock() is not None, path)
        yield
    finally:
        with suppress(Py4JError, OSError):  # a JVM that has died holds nothing
            file.close()


def _opened(path: Path) -> Any:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        raise InputError(
            str(path.parent),
            f"cannot be written ({error.strerror})",
            "check the path and its rights",
        ) from None


def _wait_for(acquired: Callable[[], bool], path: Path) -> None:
    for _ in range(int(_TIMEOUT_S / _PAUSE_S)):
        if acquired():
            return
        time.sleep(_PAUSE_S)
    raise RetryableError(str(path), "held by another publisher", "try again later")
