"""What counts as an engine's failure, and what is said of it. No Spark."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from strandline.lake.sessions.exceptions import FAILURES, cause_of

OF_A_JVM = (
    "An error occurred while calling o7.parquet.\n: java.io.IOException: No space left\n\tat a.b.C"
)


OF_A_TASK = (
    "An error occurred while calling o81.collectToPython.\n: org.apache.spark.SparkException: Job "
    "aborted due to stage failure: Task 0 in stage 74.0 failed 1 times, most recent failure: Lost "
    "task 0.0 in stage 74.0 (TID 71) (here executor driver): java.lang.ArithmeticException: long "
    "overflow\n\tat a.b.C"
)


@pytest.mark.parametrize("kind", [AnalysisException, Py4JJavaError])
def test_what_spark_and_its_jvm_raise_is_a_failure_of_the_engine(kind):
    assert issubclass(kind, FAILURES)


def test_a_mistake_of_this_program_is_none():
    assert not issubclass(TypeError, FAILURES)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (OF_A_JVM, "java.io.IOException: No space left"),
        (OF_A_TASK, "java.lang.ArithmeticException: long overflow"),
        ("[TABLE_OR_VIEW_NOT_FOUND] no x\nat line 1", "[TABLE_OR_VIEW_NOT_FOUND] no x"),
        ("", "ValueError"),
    ],
)
def test_the_cause_is_what_is_said_first_and_of_a_jvm_what_it_has_thrown(said, cause):
    assert cause_of(ValueError(said)) == cause
