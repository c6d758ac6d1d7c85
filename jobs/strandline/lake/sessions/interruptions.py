"""Ctrl-C during a call of the JVM: the signal handler, and the log messages of py4j."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

from strandline.errors import was_interrupted


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
