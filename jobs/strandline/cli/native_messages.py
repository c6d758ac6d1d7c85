"""The filter for messages that libraries in other languages write to the standard error stream."""

from __future__ import annotations

import faulthandler
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

_STDERR = 2
_OF_EVERY_JVM = b"WARNING: Using incubator modules: "
"""The start of Java's warning for a module that Spark itself asks for."""
_PANIC = re.compile(rb"thread '.*panicked at ")
"""Matches the first line of a panic of Rust, which Python gets as an exception as well."""
_BACKTRACE = b"stack backtrace:"
_NOTES = (b"note: run with `RUST_BACKTRACE", b"note: Some details are omitted")
"""The starts of the last line of a panic; not every panic has one."""
_LINES_OF_PANIC = 2
_MOST_LINES_OF_BACKTRACE = 200
_LAST_LINE = b"\0the context ends\n"
_SECONDS_TO_END = 0.5
"""The time to show the last messages."""


@contextmanager
def filtered() -> Iterator[None]:
    """A context in which messages of libraries are shown, except messages that no user needs.

    Libraries and child processes write to the file descriptor, which is a pipe in this context;
    Python still writes to the terminal itself. Whole lines are shown. Where Python's stream is
    another one, as in a test or in a program that calls the command, nothing is filtered.

    The last message of a library that ends the whole process is lost; Python then names the place
    of the call.
    """
    if not _writes_to_descriptor():
        yield
        return
    before, terminal = sys.stderr, os.dup(_STDERR)
    reading, writing = os.pipe()
    all_shown = Event()
    Thread(target=_show, args=(reading, terminal, all_shown), daemon=True).start()
    try:
        sys.stderr = io.TextIOWrapper(
            os.fdopen(terminal, "wb", buffering=0, closefd=False),
            encoding=before.encoding,
            errors=before.errors,
            write_through=True,
        )
        faulthandler.enable(terminal)
        os.dup2(writing, _STDERR)
        yield
    finally:
        os.write(writing, _LAST_LINE)
        os.dup2(terminal, _STDERR)
        os.close(writing)
        faulthandler.disable()
        sys.stderr = before
        all_shown.wait(_SECONDS_TO_END)


def _writes_to_descriptor() -> bool:
    """Whether Python's standard error stream is the process's."""
    try:
        return sys.stderr.fileno() == _STDERR
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed, or in memory
        return False


def _show(reading: int, terminal: int, all_shown: Event) -> None:
    """Show messages until no process writes any; a JVM may still do so after the context."""

    def until_the_end(lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line.endswith(_LAST_LINE):
                all_shown.set()
            else:
                yield line

    with os.fdopen(reading, "rb") as lines, os.fdopen(terminal, "wb", closefd=False) as shown:
        for line in worth_showing(until_the_end(lines)):
            with suppress(OSError):  # as of a terminal that has gone; the writers must not wait
                shown.write(line)
                shown.flush()


def worth_showing(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without panics, empty lines, and the warning of every JVM.

    A panic has a line for its place and one for its message, then perhaps a backtrace, up to a note
    or an empty line.
    """
    hidden = 0
    for line in lines:
        if _PANIC.match(line):
            hidden = _LINES_OF_PANIC
        elif line.startswith(_BACKTRACE):
            hidden = _MOST_LINES_OF_BACKTRACE
        elif not line.strip() or line.startswith((_OF_EVERY_JVM, *_NOTES)):
            hidden = 0
            continue
        if hidden:
            hidden -= 1
        else:
            yield line
