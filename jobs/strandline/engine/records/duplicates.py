"""Duplicates: a record is malformed if it repeats one that arrived shortly before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.conditions import any_of
from strandline.engine import columns as c
from strandline.engine.records.days import in_days, on_days
from strandline.engine.records.expressions import first_line, quoted
from strandline.engine.records.identity import SourceColumns, content
from strandline.errors import InputError
from strandline.model.intervals import (
    DAY_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    last_day_before,
    merged,
    midnight_of,
)
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.source import Deduplicate

_CONTENT = "_strandline_content"
DUPLICATE = "duplicate"
"""The last of the reasons why a row is malformed."""


def with_duplicates(
    records: DataFrame,
    spec: PipelineSpec,
    days: Collection[date | None],
    among: Iterable[date | None] | None = None,
) -> DataFrame:
    """The rows of some arrival days; a row that repeats another one has the REASON `duplicate`.

    A well-formed record is a duplicate if a record with equal `deduplicate.columns` (nulls are
    equal) arrived less than `within` before it, even if the earlier record is a duplicate itself:
    of a chain of repetitions only the first record counts. So arrivals in the time `within` before
    a record are read, too. The order is by arrival, sequence, event time, and at last by a hash of
    the whole row.

    Args:
        records: the landing as `read_records` reads it, at least of these days and of as many
            before each as `within` reaches.
        spec: the pipeline; without `deduplicate` this is `on_days`.
        days: the arrival days to return.
        among: all days that exist, if known: see `on_days`.

    Raises:
        InputError: a column does not exist, or Spark cannot compare its values.
    """
    rule = spec.source.deduplicate
    if rule is None:
        return on_days(records, days, among)
    all_days = among is not None and set(days) >= set(among)
    read = records if all_days else records.where(_needed(days, rule))
    own = [name for name in read.columns if not c.is_ours(name)]
    well_formed = F.col(c.REASON).isNull()
    # a column: Sail does not order a window by a long expression
    hashed = read.withColumn(_CONTENT, content(SourceColumns.of(read, own)))
    equal = Window.partitionBy(well_formed, *(quoted(name) for name in rule.columns)).orderBy(
        c.ARRIVAL, c.SEQUENCE, c.TS, _CONTENT
    )
    pause = F.col(c.ARRIVAL) - F.lag(c.ARRIVAL).over(equal)
    repeats = well_formed & (pause < F.lit(rule.within))
    try:
        reason = F.when(repeats, DUPLICATE).otherwise(F.col(c.REASON))
        marked = hashed.withColumn(c.REASON, reason).drop(_CONTENT)
        _ = marked.schema  # which makes Spark analyse
    except AnalysisException as error:
        raise InputError(
            f"{spec.pipeline}: source.deduplicate.columns",
            f"{list(rule.columns)} cannot identify duplicates ({first_line(error)})",
            f"name columns of plain types; the table has {', '.join(own)}",
        ) from None
    return marked if all_days else marked.where(in_days(c.ARRIVAL_DAY, days))


def days_needed(spec: PipelineSpec, days: Collection[date], among: Iterable[date]) -> list[date]:
    """The days of `among` to read for the duplicates of some arrival days, which are included.

    They are ascending.
    """
    rule, wanted = spec.source.deduplicate, sorted(days)
    if rule is None:
        return wanted
    before = set()
    for day in among:
        place = bisect_left(wanted, day)
        if place < len(wanted) and (wanted[place] - day).days <= rule.days_back:
            before.add(day)
    return sorted({*wanted, *before})


def _needed(days: Collection[date | None], rule: Deduplicate) -> Column:
    """Condition for the rows of some arrival days, and the rows up to `within` before each day."""
    needed = [F.col(c.ARRIVAL_DAY).isNull()] if None in days else []
    for first, last in _runs_of_days(day for day in days if day is not None):
        needed.append(_between(first, last))
        if rule.days_back:
            earliest = first - timedelta(min(rule.days_back, (first - date.min).days))
            after = max(midnight_of(first) - rule.within, LEAST_INSTANT_MS - 1)
            needed.append(_between(earliest, first) & (F.col(c.ARRIVAL) > after))
    return any_of(needed, F.lit(False))


def _between(first: date, last: date) -> Column:
    # as text: a date of Python's before the year 1000 reaches Spark without its zeros
    return F.expr(f"`{c.ARRIVAL_DAY}` BETWEEN DATE'{first}' AND DATE'{last}'")


def _runs_of_days(days: Iterable[date]) -> Iterator[tuple[date, date]]:
    """The first and last day of each run of consecutive days."""
    for run in merged(TimeRange(at, at + DAY_MS) for at in map(midnight_of, days)):
        yield day_of(run.start_ms), last_day_before(run.end_ms)
