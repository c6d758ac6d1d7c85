"""Finds the expression of a pipeline that fails, and the value it fails on, after a run has failed.

An engine reports what was wrong in a failed task, seldom the value, and never the expression of the
file. So the expressions are evaluated one by one: on the last days first, since earlier runs have
read the others, and by halving the rows until one value remains.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine.records.days import in_days
from strandline.engine.records.expressions import condition, expression, quoted, time_ms
from strandline.errors import InputError, telling_line
from strandline.lake.landing.known_columns import columns_by_log
from strandline.lake.landing.landing import Landing
from strandline.lake.sessions.exceptions import FAILURES, without_task
from strandline.lake.sessions.protocol import session_of
from strandline.pipeline.request.try_forms import (
    failing_part,
    fails_on_spark_too,
    has_condition,
    is_on_sail,
    try_form,
)
from strandline.spec.expressions import expressions_of
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.used_expressions import Use
from strandline.sql.calls import NotUnderstood, read_sql
from strandline.sql.column_types import NOT_ON_SAIL, ON_SPARK

_SECONDS = 60
"""The time in seconds after which no further query is started."""
_OF_THE_PLANNER = re.compile("Physical input schema should be the same|No field named")
"""In an error of Sail's planner about a query, which fails on no value."""
_LONGEST = 80
"""The largest number of characters of a shown value."""
_HASHES = 2**32
_HASH = "_strandline_hash"


@dataclass(frozen=True)
class _Asked:
    """An expression on some rows.

    Attributes:
        use: the expression.
        rows: all rows that it reads.
        probe: evaluates it on some of them.
        is_filtered: whether a condition of the source excludes other rows.
    """

    use: Use
    rows: DataFrame
    probe: Callable[[DataFrame], DataFrame]
    is_filtered: bool = False

    def failure(self, rows: DataFrame) -> str | None:
        """The engine's message if the expression fails on some rows; None: it does not."""
        try:
            self.probe(rows).collect()
        except FAILURES as error:
            problem = without_task(telling_line(str(error))) or type(error).__name__
            return None if _OF_THE_PLANNER.search(problem) else problem
        return None


def thrown_by(landing: Landing) -> InputError | None:
    """The expression of a pipeline that fails on rows of its landing; None: none was found."""
    until = time.monotonic() + _SECONDS
    for days in _last_first(landing.days):
        for asked in _questions(landing, days):
            if time.monotonic() > until:
                return None
            if problem := asked.failure(asked.rows):
                return _error(landing.spec.pipeline, asked, problem, until)
    return None


def _error(pipeline: str, asked: _Asked, problem: str, until: float) -> InputError:
    text, (value, problem_of_it) = asked.use.text, _value(asked, until)
    on_value, problem = f" on {value}" if value else "", problem_of_it or problem
    part = failing_part(text, problem, partial(_fails, asked, until))
    engine = session_of(asked.rows.sparkSession).engine
    # where a condition excludes a row, Sail computes the rest of an expression for it, too
    excludes = asked.is_filtered or has_condition(text)
    fails_there = fails_on_spark_too(problem) and is_on_sail(try_form(part, problem), problem)
    on_spark = engine == "sail" and (excludes or not fails_there)
    way_out = way_out_of(part, problem, on_spark=on_spark, wanted=asked.use.wanted)
    return InputError(
        f"{pipeline}: {asked.use.place}", f"{text!r} fails{on_value} ({problem})", way_out
    )


def way_out_of(part: str, problem: str, *, on_spark: bool, wanted: str) -> str:
    """The expression to write in place of a part that fails, by the engine's message.

    Args:
        part: the part.
        problem: the message.
        on_spark: whether the engine is Sail and Spark may compute it.
        wanted: the required kind of value (`Use.wanted`).
    """
    most = "1e16D" if "DECIMAL" in problem else "double('Infinity')"
    if NOT_ON_SAIL in problem and " of it" not in problem:  # it is no number, too large or NaN
        return ON_SPARK
    if NOT_ON_SAIL not in problem:
        way_out = f"use {try_form(part, problem)}, which gives null in place of failing"
    elif wanted == "aggregate":
        way_out = f"leave such values out, as by FILTER (WHERE abs(x) < {most})"
    else:
        way_out = f"give CASE WHEN abs(x) < {most} THEN … END"
    return f"{way_out}, or {ON_SPARK}" if on_spark else way_out


def _fails(asked: _Asked, until: float, part: str) -> bool:
    """Whether a part of an expression fails on one of the rows; no, if time is up."""
    of_part = replace(asked, probe=partial(_of_each, replace(asked.use, text=part, wanted="any")))
    return time.monotonic() <= until and of_part.failure(asked.rows) is not None


def _last_first(days: Sequence[date | None]) -> Iterator[list[date | None]]:
    """The last day, the two days before it, the four days before these, and so on."""
    remaining, count = [*days], 1
    while remaining:
        yield remaining[-count:]
        remaining, count = remaining[:-count], 2 * count


def _questions(landing: Landing, days: Sequence[date | None]) -> Iterator[_Asked]:
    """The expressions on the rows of some arrival days; expressions that filter rows come first."""
    uses = [*expressions_of(landing.spec, columns_by_log(landing.spec, landing.log))]
    order = ("where", "arrival_time", "event_time", "valid")
    name_of = {use.place: use.place.rpartition(".")[2] for use in uses}
    uses.sort(key=lambda use: order.index(name) if (name := name_of[use.place]) in order else 9)
    for use in uses:
        if use.table == "pairs" or use.wanted == "column":
            continue
        rows = _rows_of(landing, use, days)
        of_rows = landing.inputs.get(use.table, landing)
        yield _Asked(use, rows, _probe(use, of_rows.spec), _is_filtered(use, of_rows.spec))


def _is_filtered(use: Use, spec: PipelineSpec) -> bool:
    """Whether a condition of the source excludes rows that an expression would fail on."""
    source = spec.source
    by_where = source.where is not None and not use.place.endswith(".where")
    return by_where or (source.valid is not None and use.wanted == "aggregate")


def _rows_of(landing: Landing, use: Use, days: Sequence[date | None]) -> DataFrame:
    """The rows that an expression reads; an aggregate reads none that `valid` excludes."""
    rows, one = landing.rows_over(use.table), landing.inputs.get(use.table)
    if one is None:
        return rows
    source = one.spec.source
    if source.arrival_date in rows.columns:
        rows = rows.where(in_days(str(source.arrival_date), days))
    if source.where is not None and not use.place.endswith(".where"):
        rows = rows.where(condition(rows, source.where, use.place))
    if source.valid is not None and use.wanted == "aggregate":
        rows = rows.where(condition(rows, source.valid, use.place))
    return rows


def _probe(use: Use, spec: PipelineSpec) -> Callable[[DataFrame], DataFrame]:
    """A query that evaluates an expression, as a run does, on each of some rows."""

    def of_each_key(rows: DataFrame) -> DataFrame:
        keys = [expression(rows, text) for text in spec.source.key.values()]
        value = _shown_or_null(expression(rows, use.text))
        return rows.groupBy(*keys).agg(value).agg(F.max("value"))

    return of_each_key if use.wanted == "aggregate" else partial(_of_each, use)


def _of_each(use: Use, rows: DataFrame) -> DataFrame:
    """An expression over one record, on each of some rows."""
    is_time = use.wanted == "time"
    value = time_ms(rows, use.text, use.place)[0] if is_time else expression(rows, use.text)
    return rows.select(_shown_or_null(value)).agg(F.max("value"))


def _shown_or_null(value: Column) -> Column:
    """A value as a text, which Sail does not have of each BINARY."""
    return value.try_cast("string").alias("value")


def _value(asked: _Asked, until: float) -> tuple[str, str | None]:
    """The value that an expression fails on, in the columns that it reads, and the message for it.

    Empty, and None: not found.
    """
    columns = _columns_of(asked.use.text, asked.rows)
    texts = [F.coalesce(quoted(name).cast("string"), F.lit("")) for name in columns]
    first, end = 0, _HASHES
    try:
        rows = asked.rows.withColumn(_HASH, F.crc32(F.concat_ws("|", *texts).cast("binary")))
        while columns and first < end and time.monotonic() < until:
            in_range = rows.where(F.col(_HASH).between(first, end - 1))
            found = in_range.select(*map(quoted, columns)).distinct().limit(2).collect()
            if len(found) == 1:
                problem = asked.failure(in_range)
                named = ", ".join(map(_shown, columns, found[0]))
                return (named, problem) if problem else ("", None)
            if not found:
                break
            middle = (first + end) // 2
            lower = rows.where(F.col(_HASH).between(first, middle - 1))
            if asked.failure(lower):
                end = middle
            else:
                first = middle
    except FAILURES:  # an engine cannot compare the values of every type
        pass
    return "", None


def _columns_of(text: str, rows: DataFrame) -> list[str]:
    sql = read_sql(text)
    if isinstance(sql, NotUnderstood):
        return []
    read = {one.path[0].lower() for one in sql.reads}
    return [name for name in rows.columns if name.lower() in read]


def _shown(name: str, value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return f"{name} = {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
