"""The exceptions of all engines."""

from __future__ import annotations

from pyspark.errors import PySparkException

try:
    from py4j.protocol import Py4JJavaError as _ThrownByJvm
except ImportError:  # no JVM is ever talked to, and nothing of one is thrown
    _ThrownByJvm = PySparkException

FAILURES: tuple[type[Exception], ...] = (PySparkException, _ThrownByJvm)
"""PySpark's exceptions, and exceptions of the JVM for which PySpark has no class."""


def cause_of(error: BaseException) -> str:
    """The first line of an error's message; of a JVM's error, the Java exception's first line."""
    lines = str(error).splitlines() or [type(error).__name__]
    its_own = [line.removeprefix(": ") for line in lines[1:2] if line.startswith(": ")]
    return (its_own or lines)[0]
