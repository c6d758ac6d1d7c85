"""The filter for messages that libraries in other languages write to the standard error stream."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread

_STDERR = 2
_OF_EVERY_JVM = b"WARNING: Using incubator modules: "
"""The start of Java's warning for a module that Spark itself asks for."""
_PANIC = re.compile(rb"thread '.*panicked at ")
"""Matches the first line of a panic of Rust, which Python gets as an exception as well."""
_END_OF_PANIC = b"note: "
_SECONDS_TO_END = 0.5
"""The time to show the last messages; a JVM keeps the stream open until its own end."""


@contextmanager
def filtered() -> Iterator[None]:
    """A context in which messages of libraries are shown, but for those that no user needs.

    Libraries and child processes write to the file descriptor, which is a pipe in this context;
    Python still writes to the terminal itself. Where Python's stream is another one, as in a test
    or in a program that calls the command, nothing is filtered.
    """
    if not _writes_to_descriptor():
        yield
        return
    before = sys.stderr
    terminal = os.dup(_STDERR)
    reading, writing = os.pipe()
    sys.stderr = io.TextIOWrapper(
        os.fdopen(terminal, "wb", buffering=0, closefd=False),
        encoding=before.encoding,
        errors=before.errors,
        write_through=True,
    )
    os.dup2(writing, _STDERR)
    os.close(writing)
    showing = Thread(target=_show, args=(reading, terminal), daemon=True)
    showing.start()
    try:
        yield
    finally:
        os.dup2(terminal, _STDERR)
        sys.stderr = before
        showing.join(_SECONDS_TO_END)


def _writes_to_descriptor() -> bool:
    """Whether Python's standard error stream is the process's."""
    try:
        return sys.stderr.fileno() == _STDERR
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed, or in memory
        return False


def _show(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in worth_showing(lines):
            os.write(terminal, line)


def worth_showing(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without panics, empty lines, and the warning of every JVM.

    A panic has an unknown number of lines, up to a note or an empty line.
    """
    in_panic = False
    for line in lines:
        in_panic = (in_panic or _PANIC.match(line) is not None) and bool(line.strip())
        if line.strip() and not in_panic and not line.startswith(_OF_EVERY_JVM):
            yield line
        if line.startswith(_END_OF_PANIC):
            in_panic = False
