"""Which published rows a run judges: those that go unless it stages them, or may go at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.lake.diff import DELETE, OP
from strandline.model.intervals import TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.plan import Plan
from strandline.pipeline.published_rows import arrived, arrived_in
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable


def starting_in(rows: DataFrame, target: PublishedTable, scope: TimeRange) -> DataFrame:
    """The published rows of a scope; the files of other days are not read."""
    first, end = (F.timestamp_millis(F.lit(ms)) for ms in (scope.start_ms, scope.end_ms))
    start = F.col(target.start)
    return rows.where(
        (start < end) & (start >= first) & (F.col(target.partition) >= first.cast("date"))
    )


def judged(
    ctx: Context,
    there: DataFrame,
    target: PublishedTable,
    plan: Plan,
    around: Sequence[TimeRange],
) -> DataFrame:
    """Of published rows of a range and of older slots: those that go unless the run stages them.

    Of the older slots these are the late records that arrived between the run's base and its
    horizon, and of the calendar the slots that the run looks at.
    """
    since_ms, older_ms = plan.scope.older_since_ms, plan.scope.older_end_ms
    start_ms, is_kept = F.unix_millis(target.start), _starts_in(target, plan.scope.kept)
    if not target.has_older_slots:
        return there.where(~is_kept)
    if target.name == QUARANTINE.name and plan.kept:
        return _judged_beside_kept(ctx, there, target, plan, around)
    of_range = there.where(
        start_ms.between(plan.scope.windows.start_ms, plan.scope.windows.end_ms - 1)
    )
    if target.name == COMPLETENESS.name:
        is_older = F.lit(False) if since_ms is None else start_ms < older_ms
        outside = there.where(
            (start_ms < plan.scope.windows.start_ms) | (start_ms >= plan.scope.windows.end_ms)
        )
        gaps = F.col("gap") & _starts_in(target, around)
        return of_range.unionByName(outside.where(is_older | gaps))
    if since_ms is None:
        return of_range
    older = there.where(start_ms < older_ms)
    if target.name == QUARANTINE.name:
        older = arrived(ctx, older, arrived_in(since_ms, plan.clock.horizon_ms))
    return of_range.unionByName(older)


def _judged_beside_kept(
    ctx: Context,
    there: DataFrame,
    target: PublishedTable,
    plan: Plan,
    around: Sequence[TimeRange],
) -> DataFrame:
    """`judged` of the quarantine: of windows that stay what the run judges of their arrivals."""
    others = replace(plan, scope=replace(plan.scope, kept=()), kept=())
    rows = judged(ctx, there.where(~_starts_in(target, plan.scope.kept)), target, others, around)
    for kept in plan.kept:
        if kept.since_ms is not None:
            own = there.where(_starts_in(target, [kept.windows]))
            since = arrived_in(kept.since_ms, plan.clock.horizon_ms)
            rows = rows.unionByName(arrived(ctx, own, since))
    return rows


def without_slots_that_stay(
    changes: DataFrame, target: PublishedTable, plan: Plan, around: Sequence[TimeRange]
) -> DataFrame:
    """A slot outside the range stays in the calendar, unless it has lost all it had, or is a gap.

    Of gaps these go that lie around the range and are not listed any more.
    """
    start_ms, within = F.unix_millis(target.start), plan.scope.windows
    may_go = start_ms.between(within.start_ms, within.end_ms - 1)
    may_go |= start_ms.isin(list(plan.scope.older_too))
    may_go |= F.col("gap") & _starts_in(target, around)
    may_go &= ~_starts_in(target, plan.scope.kept)
    return changes.where((F.col(OP) != DELETE) | may_go)


def _starts_in(target: PublishedTable, ranges: Sequence[TimeRange]) -> Column:
    """Whether a row belongs to one of some ranges."""
    start_ms = F.unix_millis(target.start)
    inside = (start_ms.between(one.start_ms, one.end_ms - 1) for one in ranges)
    return reduce(Column.__or__, inside, F.lit(False))
