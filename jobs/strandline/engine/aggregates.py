"""The user's aggregates: any Spark SQL aggregate that depends on the set of records alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import executor_of, named
from strandline.engine.records.expressions import (
    REFUSED_BY_THE_ENGINE,
    expression,
    first_line,
    require_stored,
    types_or_none,
    written,
)
from strandline.engine.records.identity import SourceColumns
from strandline.errors import InputError
from strandline.spec.expressions import problems_of_aggregate
from strandline.spec.pipeline import PipelineSpec
from strandline.sql.calls import NotUnderstood, read_sql

_SIMPLE = re.compile(
    r"\s*(count|sum|min|max|avg)\s*\((?:\s*ALL\b(?!\s*\)))?(.*)\)\s*", re.IGNORECASE | re.DOTALL
)
_WIDEST = "DECIMAL(38, 0)"
"""The type in which Sail sums up BIGINT, which overflows in silence there."""
_OF_NONE = "_strandline_of_none_"


@dataclass(frozen=True)
class Partial:
    """An aggregate in two steps: over groups of records, and over the results of these groups.

    So `avg(x)` is a sum and a count for each group, then the sum of sums by the sum of counts.

    Attributes:
        parts: the aggregates of the first step, by the names of their columns.
        combine: gives the second step; its argument applies an aggregate to a group or to a window.
    """

    parts: dict[str, Column]
    combine: Callable[[Callable[[Column], Column]], Column]

    @property
    def whole(self) -> Column:
        """The second step as an aggregate of `groupBy`."""
        return self.combine(lambda aggregate: aggregate)

    def running(self, window: WindowSpec) -> Column:
        """The second step as a Spark window function."""
        return self.combine(lambda aggregate: aggregate.over(window))


def parts_of(partials: Mapping[str, Partial]) -> list[Column]:
    """The first steps of some aggregates."""
    return [column for partial in partials.values() for column in named(partial.parts)]


class Problem(NamedTuple):
    """The reason why an aggregate has no partial aggregates, and a proposal to write instead."""

    reason: str
    way_out: str


Kinds = Mapping[str, T.DataType]
"""The types of aggregates by their texts."""


def kinds_of_aggregates(records: DataFrame, spec: PipelineSpec) -> Kinds:
    """The types of a pipeline's aggregates, found with one query; empty if the engine refuses one.

    `aggregate_columns` then queries each by itself, so that its error names the aggregate.
    """
    try:
        return _types_of(records, spec.aggregates.values())
    except REFUSED_BY_THE_ENGINE:
        return {}


def in_two_steps(
    records: DataFrame, spec: PipelineSpec, kinds: Kinds | None = None
) -> dict[str, Partial] | None:
    """The aggregates in two steps; None: at least one cannot be computed from partial aggregates.

    `kinds`: the types that `kinds_of_aggregates` gives; None: not known yet.
    """
    found = _partials(records, spec, kinds)
    partials = {name: found[name] for name in found if isinstance(found[name], Partial)}
    return cast("dict[str, Partial]", partials) if len(partials) == len(found) else None


def not_in_two_steps(records: DataFrame, spec: PipelineSpec) -> dict[str, Problem]:
    """The aggregates that cannot be computed from partial aggregates, by name, and why."""
    found = _partials(records, spec, None).items()
    return {name: problem for name, problem in found if not isinstance(problem, Partial)}


def _partials(
    records: DataFrame, spec: PipelineSpec, kinds: Kinds | None
) -> dict[str, Partial | Problem]:
    simple = [text for text in spec.aggregates.values() if _SIMPLE.fullmatch(text)]
    kinds = kinds or _types_of(records, simple)
    return {name: _partial(records, kinds, name, text) for name, text in spec.aggregates.items()}


def _partial(records: DataFrame, kinds: Kinds, name: str, text: str) -> Partial | Problem:
    """The two steps of a call of `count`, `sum`, `min`, `max` or `avg` of one expression."""
    call = _SIMPLE.fullmatch(text)
    if call is None or not _is_one_argument(call[2]):
        return Problem(
            f"{text!r} is not one call of count, sum, min, max or avg",
            "give its parts as aggregates of their own, and compute it from them when you read",
        )
    sql = read_sql(text)
    if isinstance(sql, NotUnderstood):
        return Problem(f"{text!r} is not understood here ({sql.reason})", "write it in other words")
    if sql.is_distinct:
        return Problem(
            f"{text!r} needs the single values",
            "give it a pipeline of its own, so that it does not slow down the others",
        )
    function, argument = call[1].lower(), written(records, call[2])
    kind = kinds[text]
    part = f"_strandline_part_{name}"
    parts = {part: expression(records, text)}
    if function == "count":
        return Partial(parts, lambda of: F.coalesce(of(F.sum(part)), F.lit(0)).cast(kind))
    if function == "sum":
        if isinstance(kind, T.LongType) and _overflows(records, argument):
            parts = {part: F.expr(f"sum(CAST({argument} AS {_WIDEST}))")}
        return Partial(parts, lambda of: of(F.sum(part)).cast(kind))
    if function in {"min", "max"}:
        return Partial(parts, lambda of: of(F.expr(f"{function}(`{part}`)")))
    if isinstance(kind, T.DoubleType):
        number = f"{part}_number"
        parts = {
            part: F.expr(f"sum(CAST({argument} AS DOUBLE) * 1D)"),
            number: F.expr(f"count({argument})"),
        }
        return Partial(parts, lambda of: of(F.sum(part)) / F.nullif(of(F.sum(number)), F.lit(0)))
    return Problem(
        f"{text!r} gives {kind.simpleString()}",
        f"write avg(CAST({argument} AS DOUBLE)), or its sum and count",
    )


def columns_read(records: DataFrame, spec: PipelineSpec, source: SourceColumns) -> list[str]:
    """The columns of the records that the contents of windows depend on.

    Args:
        records: the records.
        spec: the pipeline; if a function receives the records, all landed columns.
        source: the columns of its landing table.
    """
    if spec.hands_over_records:
        return [*source.names]
    read: set[str] = set()
    for text in spec.aggregates.values():
        sql = read_sql(text)
        if isinstance(sql, NotUnderstood) or sql.reads_all:
            return sorted(name for name in records.columns if not c.is_ours(name))
        read |= {one.path[0].lower() for one in sql.reads}
    return sorted(name for name in records.columns if name.lower() in read)


def _is_one_argument(text: str) -> bool:
    """Whether the text of a call's argument has balanced parentheses and no comma outside them."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0 or character in "'\"`" or (character == "," and not depth):
            return False
    return depth == 0


def aggregate_columns(
    records: DataFrame,
    spec: PipelineSpec,
    kinds: Kinds | None = None,
    columns: Iterable[str] | None = None,
) -> dict[str, Column]:
    """The aggregates of a pipeline by name, checked against the records that they will aggregate.

    Args:
        records: the records that they will aggregate.
        spec: the pipeline.
        kinds: the types that `kinds_of_aggregates` gives; None: not known yet.
        columns: the columns that they may read; None: query the engine for the records' columns.

    Raises:
        InputError: one is not an aggregate over the landing table, or depends on the order of the
            records, on chance or on the clock, so that a rerun would give other numbers.
    """
    known = kinds_of_aggregates(records, spec) if kinds is None else kinds
    readable = records.columns if columns is None else [*columns]
    return {
        name: aggregate_column(
            records, text, f"{spec.pipeline}: aggregates.{name}", readable, known.get(text)
        )
        for name, text in spec.aggregates.items()
    }


def aggregate_column(
    records: DataFrame,
    text: str,
    place: str,
    columns: Iterable[str],
    kind: T.DataType | None = None,
) -> Column:
    """One aggregate, checked as by `aggregate_columns`.

    Args:
        records: the records that it will aggregate.
        text: the aggregate.
        place: the place in the file, for errors.
        columns: the columns that it may read.
        kind: its type; None: query the engine.

    Raises:
        InputError: see `aggregate_columns`.
    """
    for problem, way_out in problems_of_aggregate(text, dict.fromkeys(columns)):
        raise InputError(place, problem, way_out)
    try:
        kind = kind or _types_of(records, [text])[text]
    except REFUSED_BY_THE_ENGINE as error:
        found = first_line(error)
        raise InputError(
            place, f"{text!r} is not an aggregate ({found})", "see Spark SQL's functions"
        ) from None
    require_stored(text, kind, place)
    return expression(records, text)


def _overflows(records: DataFrame, argument: str) -> bool:
    """Whether the engine's sum of an expression overflows in silence: a BIGINT on Sail."""
    if executor_of(records.sparkSession).answers_as_spark:
        return False
    return types_or_none(records, [argument]) == ["bigint"]


def _types_of(records: DataFrame, texts: Collection[str]) -> dict[str, T.DataType]:
    """The types of aggregates, found with one query to the engine."""
    if not texts:
        return {}
    fields = records.groupBy().agg(*(expression(records, text) for text in texts)).schema.fields
    return {text: field.dataType for text, field in zip(texts, fields, strict=True)}


def with_contents_of_none(
    rows: DataFrame, members: DataFrame, contents: Mapping[str, Column]
) -> DataFrame:
    """Rows of windows, with the aggregates of an empty set of records where `records` is null."""
    if not contents:
        return rows
    of_none = members.where(F.lit(False)).agg(
        *(column.alias(_OF_NONE + name) for name, column in contents.items())
    )
    is_none = F.col("records").isNull()
    filled = {
        name: F.when(is_none, F.col(_OF_NONE + name)).otherwise(F.col(name)) for name in contents
    }
    return (
        rows.crossJoin(F.broadcast(of_none))
        .withColumns(filled)
        .drop(*(_OF_NONE + name for name in contents))
    )
