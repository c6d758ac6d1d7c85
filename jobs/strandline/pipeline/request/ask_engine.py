"""Checks of expressions that only the engine can make, before observing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    UnsupportedOperationException,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.aggregates import aggregate_column
from strandline.engine.records.expressions import (
    column_and_type,
    first_line,
    require_answered,
    require_type,
    types_or_none,
    written,
)
from strandline.errors import InputError
from strandline.lake.landing.known_columns import columns_by_log, require_expressions
from strandline.lake.landing.landing import Landing
from strandline.lake.sessions.exceptions import OF_VALUES
from strandline.lake.sessions.protocol import session_of
from strandline.pipeline.request.try_forms import try_form
from strandline.spec.expressions import expressions_of, left_to_the_engine, refuse_if_any
from strandline.spec.used_expressions import Use
from strandline.sql.column_types import ON_SPARK
from strandline.sql.on_sail import types_not_on_sail
from strandline.sql.operations import has_lambda

_FRACTIONS = re.compile("decimal|double|float")
_COMPUTED_INDEX = re.compile(
    r"extraction must be a literal|Cannot cast string '(\w+)' to value of Int64"
)
"""Matches Sail's messages for the index of an array that is no literal: it takes a name for one."""


def require_all_expressions(landing: Landing) -> None:
    """Refuse a pipeline with wrong expressions; the engine checks unknown functions.

    Raises:
        InputError: some are wrong; all of them are named.
    """
    spec = landing.spec
    require_expressions(spec, landing.log)
    problems = []
    tables = columns_by_log(spec, landing.log)
    for use, _ in left_to_the_engine(spec, tables):
        try:
            _ask(use, landing.rows_over(use.table), f"{spec.pipeline}: {use.place}")
        except InputError as error:
            problems.append(error)
    if session_of(landing.spark).engine == "sail":
        uses = [*expressions_of(spec, tables)]
        kinds = _kinds_of_aggregates(landing, uses)
        for use in uses:
            table, place = landing.rows_over(use.table), f"{spec.pipeline}: {use.place}"
            problems += _not_on_sail(use, table, place, kinds.get(use.text))
    refuse_if_any(problems, spec.pipeline)


def _kinds_of_aggregates(landing: Landing, uses: Iterable[Use]) -> dict[str, str]:
    """The types of the aggregates by their texts, found with one query; none if Sail refuses it."""
    counted = [use for use in uses if use.wanted == "aggregate"]
    if not counted:
        return {}
    rows = landing.rows_over(counted[0].table).groupBy()
    try:
        fields = rows.agg(*(F.expr(use.text) for use in counted)).schema.fields
    except PySparkException:  # each is asked by itself, so that the error names it
        return {}
    types = (field.dataType.simpleString() for field in fields)
    return dict(zip((use.text for use in counted), types, strict=True))


def _not_on_sail(
    use: Use, table: DataFrame, place: str, kind: str | None = None
) -> list[InputError]:
    """The parts of an expression that Sail cannot compute, or computes differently from Spark.

    `kind`: its type; None: query the engine.
    """
    try:
        kind = kind or asked(table, use.text)
    except PySparkException as error:
        problem, way_out = reason_of_refusal(error, use.text)
        return [InputError(place, f"{use.text!r} {problem} ({first_line(error)})", way_out)]
    problems = [*types_not_on_sail(use.text, partial(type_or_none, table))]
    if use.filters and has_lambda(written(table, use.text)):
        other = f"the values of an array one by one, a[0] and a[1], or {ON_SPARK}"
        problems.append(("Sail computes no x -> … here, and so compares no array of DOUBLE", other))
    if use.wanted == "aggregate" and "map<" in kind and _FRACTIONS.search(kind):
        # maps are compared as JSON: of -0.01 Sail's has no sign
        problems.append((f"Sail may miss changes of {kind}", f"give an array, or {ON_SPARK}"))
    return [InputError(place, f"{use.text!r}: {problem}", way) for problem, way in problems]


def reason_of_refusal(error: PySparkException, text: str) -> tuple[str, str]:
    """The problem of an expression and the way out, by the class of Sail's exception.

    Raises:
        SparkConnectGrpcException: Sail has not answered, which no expression causes.
    """
    require_answered(error)
    computed = _COMPUTED_INDEX.search(first_line(error))
    if computed and (computed[1] is None or f"[{computed[1]}]" in text):
        return "has a computed index, which Sail does not know", f"give get(a, i), or {ON_SPARK}"
    on_spark = f"correct it; if Spark takes it as it is, {ON_SPARK}"
    if isinstance(error, UnsupportedOperationException):
        return "is not supported by Sail", ON_SPARK
    if isinstance(error, OF_VALUES):  # of a constant, which Sail computes before it reads rows
        way_out = f"use {try_form(text, first_line(error))}, which gives null in place of failing"
        return "fails before it is given a row", way_out
    if isinstance(error, AnalysisException):
        return "is refused by Sail for its columns or types", on_spark
    if isinstance(error, IllegalArgumentException):
        return "cannot be read by Sail", on_spark
    return "makes Sail fail", ON_SPARK


def type_or_none(table: DataFrame, text: str) -> str | None:
    """The type of an expression over a table; None if the engine refuses the expression."""
    return types_or_none(table, [text])[0]


def asked(table: DataFrame, text: str) -> str:
    """The type of an expression or aggregate over a table, as found by the engine."""
    return table.select(F.expr(text)).schema[0].dataType.simpleString()


def _ask(use: Use, table: DataFrame, place: str) -> None:
    if use.wanted == "aggregate":
        aggregate_column(table, use.text, place, table.columns)
    elif use.wanted != "column":
        _, found = column_and_type(table, use.text, place)
        require_type(use.wanted, use.text, found, place)
