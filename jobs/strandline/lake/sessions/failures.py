"""What an engine fails with, whichever it is."""

from __future__ import annotations

from pyspark.errors import PySparkException

try:
    from py4j.protocol import Py4JJavaError as _ThrownByJvm
except ImportError:  # no JVM is ever talked to, and nothing of one is thrown
    _ThrownByJvm = PySparkException

FAILURES: tuple[type[Exception], ...] = (PySparkException, _ThrownByJvm)
"""What Spark says of itself, and what a JVM throws that Spark has no class for."""


def cause_of(error: BaseException) -> str:
    """The first line of what an error says; of one of a JVM, which begins with a call, its own."""
    lines = str(error).splitlines() or [type(error).__name__]
    its_own = [line.removeprefix(": ") for line in lines[1:2] if line.startswith(": ")]
    return (its_own or lines)[0]
