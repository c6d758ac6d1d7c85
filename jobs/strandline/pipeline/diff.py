"""diff: what is staged, held against what is published: the rows to insert, update and delete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.rebuild import Scope
from strandline.errors import InputError
from strandline.lake import publish as out
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE, diff
from strandline.lake.reads import columns_of, files_started_in, started_in
from strandline.lake.small_diff import published_rows, small_diff
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.counts import told
from strandline.pipeline.judged_rows import judged, starting_in, without_slots_that_stay
from strandline.pipeline.observation import Observation
from strandline.pipeline.plan import Plan
from strandline.pipeline.published_rows import (
    arrival_column,
    no_longer_malformed,
)
from strandline.pipeline.rebuild import Staged
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable


@dataclass(frozen=True)
class Change:
    """What a run changes in one table.

    Attributes:
        rows: the rows to insert, update and delete, with `OP`.
        whole: whether that is the staged part as it is: nothing stood in its scope.
        small: the rows without Spark, where they are few.
        anew: whether the inserted rows take the place of all that stands, whatever its columns.
    """

    target: PublishedTable
    rows: DataFrame
    counts: dict[str, int]
    whole: bool
    small: pa.Table | None = None
    anew: bool = False


_WITH_THE_KEY = {"windows", "firings", "pairs"}
"""The tables whose columns and rows the pipeline's key decides."""


def diffs(
    ctx: Context, staged: Staged, plan: Plan, seen: Observation, *, recreate: bool = False
) -> list[Change]:
    """What the staged parts would change in the published tables.

    Args:
        ctx: the run.
        staged: its parts.
        plan: what they are of.
        seen: what is known.
        recreate: whether they take the place of all that is published.
    """
    if recreate:
        plan = replace(plan, scope=Scope(EVERYTHING))
    oldest_ms = min(staged.oldest_ms, plan.scope.windows.start_ms)
    targets = ctx.spec.tables
    parts = {name: rows for name, rows in parts_of(staged).items() if rows is not None}
    days = seen.history.days.of_windows(plan.scope.windows)
    around = defaultdict[str, tuple[TimeRange, ...]](tuple, completeness=staged.gaps.around)
    well_formed = no_longer_malformed(ctx, plan.scope.rebuilt, days)
    return [
        _anew(ctx, targets[name], rows)
        if (recreate and name in _WITH_THE_KEY) or _is_of_another_kind(ctx, targets[name])
        else _diff(ctx, targets[name], rows, plan, oldest_ms, well_formed, around[name])
        for name, rows in parts.items()
    ]


def tallies(ctx: Context, changes: Sequence[Change]) -> dict[str, dict[str, int]]:
    """How many rows of each table a run inserts, updates and deletes."""
    counts = {change.target.name: change.counts for change in changes}
    gone = no_longer_kept(ctx).items()
    return counts | {name: {INSERT: 0, UPDATE: 0, DELETE: rows} for name, rows in gone}


def parts_of(staged: Staged) -> dict[str, DataFrame | None]:
    """What is staged for each published table; None: the pipeline keeps no such rows."""
    of_windows = {"firings": staged.firings} if staged.result == "windows" else {}
    return {
        "quarantine": staged.quarantine,
        "completeness": staged.completeness,
        **of_windows,
        **({} if staged.pairs is None else {"pairs": staged.pairs}),
        staged.result: staged.results,
    }


def _is_of_another_kind(ctx: Context, target: PublishedTable) -> bool:
    """Whether a table stands from another kind of pipeline: no row of it belongs to a range."""
    table = ctx.store.table(target.name)
    return table is not None and target.start not in columns_of(table).names


def _diff(
    ctx: Context,
    target: PublishedTable,
    staged: DataFrame,
    plan: Plan,
    oldest_ms: int,
    well_formed: DataFrame | None,
    around: Sequence[TimeRange],
) -> Change:
    """What is staged for a table, held against what is published.

    `around`: of the calendar where, outside the range, gaps are listed anew.
    """
    if not target.has_older_slots:
        oldest_ms = plan.scope.windows.start_ms
    scope = TimeRange(
        min([oldest_ms, *(one.start_ms for one in around)]),
        max([plan.scope.windows.end_ms, *(one.end_ms for one in around)]),
    )
    leaves = well_formed if target.name == QUARANTINE.name else None
    if leaves is not None:
        return _diff_by_spark(ctx, target, staged, plan, scope, leaves, around)
    small = _small_part(ctx, target)
    started, files = started_in(target.start, scope), files_started_in(target.start, scope)
    if not ctx.store.holds(target.name, started, files):
        return whole_part(target, staged, small)
    change = None if small is None else _small_diff(ctx, target, small, plan, scope, around)
    return change or _diff_by_spark(ctx, target, staged, plan, scope, None, around)


def _diff_by_spark(
    ctx: Context,
    target: PublishedTable,
    staged: DataFrame,
    plan: Plan,
    scope: TimeRange,
    leaves: DataFrame | None,
    around: Sequence[TimeRange],
) -> Change:
    """What is staged, held against the published rows of a scope and those that leave besides."""
    there = out.published(ctx.spark, ctx.store, target, staged)
    there = judged(ctx, starting_in(there, target, scope), target, plan, around)
    if leaves is not None:
        there = there.unionByName(leaves)
    keeps_rows = target.name == QUARANTINE.name  # of what the landing table has no more
    place = ctx.place(target.name)
    fitted = out.hold(ctx.store, target, staged.schema)
    changes = diff(staged, there, target.keys, place=place, keep=keeps_rows, fitted=fitted)
    if target.name == COMPLETENESS.name:
        changes = without_slots_that_stay(changes, target, plan, around)
    kept = ctx.staging.write(f"{target.name}_diff", changes)
    tally = out.tally(kept)
    if sum(tally.values()) > tally[INSERT]:
        _refuse_ambiguous(kept, target, place)
    return Change(target, kept, tally, whole=False)


def _small_part(ctx: Context, target: PublishedTable) -> pa.Table | None:
    """What a run has staged for a table, without Spark; None: it is not small."""
    rows = ctx.staging.small(target.name)
    return None if rows is None else told(target.name, rows)


def _small_diff(
    ctx: Context,
    target: PublishedTable,
    staged: pa.Table,
    plan: Plan,
    scope: TimeRange,
    around: Sequence[TimeRange],
) -> Change | None:
    """`_diff` without Spark; None: what is published in the scope is not small, or needs Spark."""
    table = ctx.store.table(target.name)
    if table is None:
        return None
    judged = _judged(ctx, table, target, plan, scope)
    if judged is None:
        return None
    listed_anew = ds.scalar(False)
    for one in around:
        listed_anew |= ds.field("gap") & started_in(target.start, one)
    if around:
        judged |= listed_anew
    there = published_rows(table, judged, files_started_in(target.start, scope))
    changes = None if there is None else small_diff(staged, there, target.keys)
    if changes is None:
        return None
    if target.name == COMPLETENESS.name:  # an older slot stays, unless it has lost all it had
        looked_at = pa.array([ms * 1000 for ms in plan.scope.older_too], pa.timestamp("us", "UTC"))
        may_go = started_in(target.start, plan.scope.windows)
        may_go |= ds.field(target.start).isin(looked_at) | listed_anew
        may_go &= ~_started_in_any(target, plan.scope.kept)
        changes = changes.filter((ds.field(OP) != DELETE) | may_go)
    part = f"{target.name}_diff"
    rows = ctx.staging.put(part, changes)
    return Change(target, rows, out.tally_of(changes), whole=False, small=changes)


def _judged(
    ctx: Context, table: DeltaTable, target: PublishedTable, plan: Plan, scope: TimeRange
) -> ds.Expression | None:
    """Which published rows go unless they are staged; None: only Spark tells when they arrived."""
    judged, since_ms = started_in(target.start, plan.scope.windows), plan.scope.older_since_ms
    of_older = TimeRange(scope.start_ms, plan.scope.older_end_ms)
    older, files = started_in(target.start, of_older), files_started_in(target.start, of_older)
    is_quarantine = target.name == QUARANTINE.name
    arrival, until_ms = arrival_column(ctx, table) if is_quarantine else None, plan.clock.horizon_ms
    if target.has_older_slots and since_ms is not None:
        if is_quarantine and ctx.store.holds(target.name, older, files):
            if arrival is None:
                return None
            older &= started_in(arrival, TimeRange(since_ms, until_ms))
        judged |= older
    if not plan.kept or target.name == COMPLETENESS.name:
        return judged
    judged &= ~_started_in_any(target, plan.scope.kept)
    for kept in plan.kept if is_quarantine else ():
        if arrival is None:
            return None
        if kept.since_ms is not None:
            since = started_in(arrival, TimeRange(kept.since_ms, until_ms))
            judged |= started_in(target.start, kept.windows) & since
    return judged


def _started_in_any(target: PublishedTable, ranges: Sequence[TimeRange]) -> ds.Expression:
    """Whether a row belongs to one of some ranges."""
    inside = (started_in(target.start, one) for one in ranges)
    return reduce(ds.Expression.__or__, inside, ds.scalar(False))


def _refuse_ambiguous(changes: DataFrame, target: PublishedTable, place: str) -> None:
    """Refuse changes of published rows that the keys of today do not tell apart."""
    same = changes.where(F.col(OP) != INSERT).groupBy(*target.keys).count().where("count > 1")
    if not same.isEmpty():
        raise InputError(
            place,
            "several published rows are one by the pipeline's key: they were published under "
            "another key",
            "give the pipeline with its new key a new name, or replace all that it has published "
            "with --recreate",
        )


def whole_part(target: PublishedTable, staged: DataFrame, small: pa.Table | None = None) -> Change:
    """The change that inserts a staged part as it is."""
    rows = staged.withColumn(OP, F.lit(INSERT))
    if small is None:
        return Change(target, rows, out.tally(rows), whole=True)
    small = small.append_column(OP, pa.repeat(INSERT, len(small)))
    return Change(target, rows, out.tally_of(small), whole=True, small=small)


def _anew(ctx: Context, target: PublishedTable, staged: DataFrame) -> Change:
    """The change that puts a staged part in place of all that stands in its table."""
    change = whole_part(target, staged, _small_part(ctx, target))
    counts = {**change.counts, DELETE: ctx.store.rows(target.name)}
    return replace(change, counts=counts, anew=True)


def no_longer_kept(ctx: Context) -> dict[str, int]:
    """The rows that stand in tables from when the pipeline kept them: they go as it publishes.

    Returns:
        How many there are, by table; tables without any are left out.
    """
    others = sorted(_WITH_THE_KEY - ctx.spec.keeps)
    standing = {name: ctx.store.rows(name) for name in others}
    return {name: rows for name, rows in standing.items() if rows}
