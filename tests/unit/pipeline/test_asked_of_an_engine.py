"""What Sail throws of an expression is said by its kind; what it throws of itself is not."""

from __future__ import annotations

import pytest
from pyspark.errors.exceptions import connect as thrown
from pyspark.sql import types as T

from strandline.engine.records.expressions import types_or_none
from strandline.pipeline.request.ask_engine import reason_of_refusal


@pytest.mark.parametrize(
    ("error", "problem", "way_out"),
    [
        (thrown.UnsupportedOperationException, "is not supported by Sail", "give --engine spark"),
        (thrown.AnalysisException, "is refused by Sail for its columns or types", "correct it"),
        (thrown.ParseException, "is refused by Sail for its columns or types", "correct it"),
        (thrown.IllegalArgumentException, "cannot be read by Sail", "correct it"),
        (thrown.ArithmeticException, "fails before it is given a row", "try_divide()"),
        (thrown.DateTimeException, "fails before it is given a row", "try_divide()"),
        (thrown.NumberFormatException, "fails before it is given a row", "try_divide()"),
        (thrown.ArrayIndexOutOfBoundsException, "fails before it is given a row", "try_divide()"),
        (thrown.UnknownException, "makes Sail fail", "give --engine spark"),
        (thrown.SparkRuntimeException, "makes Sail fail", "give --engine spark"),
    ],
)
def test_each_kind_of_error_has_its_own_problem_and_way_out(error, problem, way_out):
    said, to_do = reason_of_refusal(error(message="why"), "sum(a / 0)")
    assert said == problem
    assert way_out in to_do


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (thrown.IllegalArgumentException, "extraction must be a literal", "max(a[n - 1])"),
        (
            thrown.SparkRuntimeException,
            "Cannot cast string 'n' to value of Int64 type",
            "max(a[n])",
        ),
    ],
)
def test_a_computed_index_is_named_with_the_function_that_takes_one(error, message, text):
    problem, way_out = reason_of_refusal(error(message=message), text)
    assert problem == "has a computed index, which Sail does not know"
    assert way_out == "give get(a, i), or give --engine spark"


def test_a_lost_connection_is_no_problem_of_an_expression():
    error = thrown.SparkConnectGrpcException(message="UNAVAILABLE: connection refused")
    with pytest.raises(thrown.SparkConnectGrpcException, match="UNAVAILABLE"):
        reason_of_refusal(error, "sum(a)")


class Session:
    """In place of a `SparkSession`."""


class Rows:
    """A table of one column, which counts how often its schema is read, and computes nothing."""

    def __init__(self) -> None:
        self.times_read, self.sparkSession = 0, Session()

    @property
    def schema(self) -> T.StructType:
        self.times_read += 1
        return T.StructType([T.StructField("x", T.DoubleType()), T.StructField("1", T.LongType())])


def test_a_question_for_types_reads_the_columns_once_and_asks_the_engine_for_none_of_them():
    rows = Rows()
    assert types_or_none(rows, ["x", "x"]) == ["double", "double"]
    assert rows.times_read == 1
    with pytest.raises(AttributeError, match="select"):
        types_or_none(rows, ["1"])
