"""Ctrl-C during queries: those of other threads, the signal handler, the messages of py4j."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from strandline.errors import was_interrupted
from strandline.lake.sessions.protocol import session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def in_threads(spark: SparkSession, number: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads for queries; an interruption ends the session, and with it the queries.

    The pool alone would wait for them to the end, however long they take. A commit without the
    engine is still waited for.

    Args:
        spark: the session of the queries.
        number: the number of threads.
    """
    with ThreadPoolExecutor(number) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            session_of(spark).stop()
            raise


@contextmanager
def own_interrupt() -> Iterator[None]:
    """A context that leaves the handler of Ctrl-C as it was.

    PySpark's cancels all jobs over the very connection whose answer the interrupted call awaits;
    stopping the session ends them, too.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and current_thread() is main_thread():
            signal.signal(signal.SIGINT, before)


def log_no_interruption() -> None:
    """Keep py4j from logging interrupted calls: the call's own logger, and its connection's."""
    for name in ("root", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_interruption)


def _is_no_interruption(record: logging.LogRecord) -> bool:
    """Whether a log record reports neither an interrupted call nor an error as one was cleaned up.

    py4j logs both; the interruption is raised, too.
    """
    return not was_interrupted(record.exc_info[1] if record.exc_info else None)
