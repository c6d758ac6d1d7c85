"""The exceptions of all engines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
)

from strandline.errors import InputError

try:
    from py4j.protocol import Py4JJavaError as _ThrownByJvm
except ImportError:  # no JVM is ever talked to, and nothing of one is thrown
    _ThrownByJvm = PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILURES: tuple[type[Exception], ...] = (PySparkException, _ThrownByJvm)
"""PySpark's exceptions, and exceptions of the JVM for which PySpark has no class."""
OF_VALUES = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
)
"""PySpark's exceptions of an expression on a value that it cannot take."""


_OF_A_TASK = re.compile(r".*Job aborted due to stage failure: .*? \(TID \d+\) \([^()]*\): ")
"""What Spark writes before the cause of a failed task."""


def require_answers(spark: SparkSession) -> None:
    """Check that an engine still answers.

    Great Expectations catches an engine's exceptions and reports failed expectations instead, also
    if the engine has died.

    Raises:
        Exception: it does not answer; one of `FAILURES`, or of the connection to it.
    """
    spark.range(1).count()


def cause_of(error: BaseException) -> str:
    """The first line of an error's message; of a JVM's error, the Java exception's first line."""
    lines = str(error).splitlines() or [type(error).__name__]
    its_own = [line.removeprefix(": ") for line in lines[1:2] if line.startswith(": ")]
    return without_task((its_own or lines)[0])


def without_task(line: str) -> str:
    """A line of an error's message without the task, the stage and the job that have failed."""
    return _OF_A_TASK.sub("", line)


@contextmanager
def refused_after(
    errors: tuple[type[Exception], ...], place: str, problem: str, way_out: str
) -> Iterator[None]:
    """Turn some errors into an `InputError` whose problem ends with their cause in brackets."""
    try:
        yield
    except errors as error:
        raise InputError(place, f"{problem} ({cause_of(error)})", way_out) from error
