"""diff and publish: bring what differs into the published tables, under the pipeline's lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.errors import InputError, RetryableError
from strandline.lake import publish as out
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE, diff
from strandline.lake.ledger import Entry, frontier_after, published_since, unfinished_publish
from strandline.lake.small_diff import published_rows, small_diff
from strandline.lake.staging import Staging
from strandline.lake.store import started_in
from strandline.model.intervals import TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.counts import fired
from strandline.pipeline.drop import finish_drop
from strandline.pipeline.observe import Observation
from strandline.pipeline.plan import Plan
from strandline.pipeline.published_rows import arrived, arrived_in, first_open, no_longer_malformed
from strandline.pipeline.rebuild import Staged

_FIRINGS = "firings"
_TABLES = ("quarantine", "completeness", _FIRINGS, "windows")
"""In the order of publishing: who sees a window can see what it left behind."""


@dataclass(frozen=True)
class Change:
    """What a run changes in one table.

    Attributes:
        rows: the rows to insert, update and delete, with `OP`.
        whole: whether that is the staged part as it is: nothing stood in its scope.
        small: the rows without Spark, where they are few.
    """

    target: out.Target
    rows: DataFrame
    counts: dict[str, int]
    whole: bool
    small: pa.Table | None = None


def create_tables(ctx: Context, staged: Staged) -> None:
    """Create what is not there yet, empty: after the first run every table can be read."""
    targets = _targets(list(ctx.spec.source.key))
    firings = out.firings_schema(staged.windows.schema)
    with ctx.store.lock(ctx.spark):
        for name, rows in _parts(staged).items():
            out.create(ctx.store, targets[name], firings if rows is None else rows.schema)


def diffs(ctx: Context, staged: Staged, plan: Plan, seen: Observation) -> list[Change]:
    """What the staged parts would change in the published tables."""
    targets = _targets(list(ctx.spec.source.key))
    parts = {name: rows for name, rows in _parts(staged).items() if rows is not None}
    days = seen.history.days.of_windows(plan.scope.windows)
    well_formed = no_longer_malformed(ctx, plan.scope.windows, days)
    return [
        _diff(ctx, targets[name], rows, plan, staged.oldest_ms, well_formed)
        for name, rows in parts.items()
    ]


def tallies(ctx: Context, changes: Sequence[Change]) -> dict[str, dict[str, int]]:
    """How many rows of each table a run inserts, updates and deletes."""
    counts = {change.target.name: change.counts for change in changes}
    if gone := old_firings(ctx):
        counts[_FIRINGS] = {INSERT: 0, UPDATE: 0, DELETE: gone}
    return counts


def _parts(staged: Staged) -> dict[str, DataFrame | None]:
    return {
        "quarantine": staged.quarantine,
        "completeness": staged.completeness,
        "firings": staged.firings,
        "windows": staged.windows,
    }


def _diff(
    ctx: Context,
    target: out.Target,
    staged: DataFrame,
    plan: Plan,
    oldest_ms: int,
    well_formed: DataFrame | None,
) -> Change:
    within = plan.scope.windows
    name = "slot_start"
    if target.name in {"windows", "firings"}:
        name, oldest_ms = "window_start", within.start_ms
    is_quarantine = target.name == out.QUARANTINE.name
    leaves = well_formed if is_quarantine else None
    scope = TimeRange(oldest_ms, within.end_ms)
    small = _small_part(ctx, target)
    if leaves is None and not ctx.store.holds(target.name, started_in(name, scope)):
        return _whole(target, staged, small)
    if leaves is None and small is not None:
        change = _small_diff(ctx, target, small, plan, scope)
        if change is not None:
            return change
    start, oldest = F.col(name), F.timestamp_millis(F.lit(oldest_ms))
    in_scope = (start < F.timestamp_millis(F.lit(within.end_ms))) & (start >= oldest)
    in_scope &= F.col(target.partition) >= oldest.cast("date")
    there = out.published(ctx.spark, ctx.store, target, staged).where(in_scope)
    there = _judged(ctx, there, target, plan)
    if leaves is not None:
        there = there.unionByName(leaves)
    changes = diff(
        staged,
        there,
        target.keys,
        place=ctx.place(target.name),
        keep=is_quarantine,  # what the landing table has no more
    )
    if target.name == out.COMPLETENESS.name:  # an older slot stays, unless it has lost all it had
        may_go = start >= F.timestamp_millis(F.lit(within.start_ms))
        may_go |= F.unix_millis(start).isin(list(plan.scope.older_too))
        changes = changes.where((F.col(OP) != DELETE) | may_go)
    kept = ctx.staging.write(f"{target.name}_diff", changes)
    tally = out.tally(kept)
    if sum(tally.values()) > tally[INSERT]:
        _refuse_ambiguous(kept, target, ctx.place(target.name))
    return Change(target, kept, tally, whole=False)


def _small_part(ctx: Context, target: out.Target) -> pa.Table | None:
    """What a run has staged for a table, without Spark; None: it is not small."""
    rows = ctx.staging.small(target.name)
    return fired(rows) if rows is not None and target.name == "windows" else rows


def _small_diff(
    ctx: Context,
    target: out.Target,
    staged: pa.Table,
    plan: Plan,
    scope: TimeRange,
) -> Change | None:
    """`_diff` without Spark; None: what is published in the scope is not small, or needs Spark."""
    start = "window_start" if target.name in {"windows", "firings"} else "slot_start"
    within, since_ms = plan.scope.windows, plan.scope.older_since_ms
    judged = started_in(start, within)
    older = started_in(start, TimeRange(scope.start_ms, plan.scope.older_end_ms))
    if target.name == out.QUARANTINE.name and ctx.store.holds(target.name, older):
        return None  # when they arrived only the pipeline's expressions tell
    if target.name == out.COMPLETENESS.name and since_ms is not None:
        judged |= older
    table = ctx.store.table(target.name)
    there = None if table is None else published_rows(table, judged)
    changes = None if there is None else small_diff(staged, there, target.keys)
    if changes is None:
        return None
    if target.name == out.COMPLETENESS.name:  # an older slot stays, unless it has lost all it had
        looked_at = pa.array([ms * 1000 for ms in plan.scope.older_too], pa.timestamp("us", "UTC"))
        may_go = started_in(start, within) | ds.field(start).isin(looked_at)
        changes = changes.filter((ds.field(OP) != DELETE) | may_go)
    part = f"{target.name}_diff"
    rows = ctx.staging.put(part, changes)
    return Change(target, rows, out.tally_of(changes), whole=False, small=changes)


def _judged(ctx: Context, there: DataFrame, target: out.Target, plan: Plan) -> DataFrame:
    """Of published rows of a range and of older slots: those that go unless the run stages them.

    Of the older slots these are the late records that arrived between the run's base and its
    horizon, and of the calendar the slots that the run looks at.
    """
    since_ms, older_ms = plan.scope.older_since_ms, plan.scope.older_end_ms
    if target.name in {"windows", "firings"}:
        return there
    start_ms = F.unix_millis("slot_start")
    of_range = there.where(start_ms >= plan.scope.windows.start_ms)
    if since_ms is None:
        return of_range
    older = there.where(start_ms < older_ms)
    if target.name == out.QUARANTINE.name:
        older = arrived(ctx, older, arrived_in(since_ms, plan.clock.horizon_ms))
    return of_range.unionByName(older)


def _refuse_ambiguous(changes: DataFrame, target: out.Target, place: str) -> None:
    """Refuse changes of published rows that the keys of today do not tell apart."""
    same = changes.where(F.col(OP) != INSERT).groupBy(*target.keys).count().where("count > 1")
    if not same.isEmpty():
        raise InputError(
            place,
            "several published rows are one by the pipeline's key: they were published under "
            "another key",
            "give the pipeline with its new key a new name, or remove its published tables",
        )


def _whole(target: out.Target, staged: DataFrame, small: pa.Table | None = None) -> Change:
    rows = staged.withColumn(OP, F.lit(INSERT))
    if small is None:
        return Change(target, rows, out.tally(rows), whole=True)
    small = small.append_column(OP, pa.repeat(INSERT, len(small)))
    return Change(target, rows, out.tally_of(small), whole=True, small=small)


def publish(
    ctx: Context, changes: Sequence[Change], entry: Entry, completes_ms: int | None
) -> Entry:
    """Publish the changes, unless somebody has published into the range meanwhile.

    Args:
        ctx: the run.
        changes: its diffs.
        entry: what the ledger shall say; `base` is the position that the run is based on.
        completes_ms: the midnight up to which the run publishes everything, if it does.

    Returns:
        What the ledger says now, with the version of every table.

    Raises:
        InputError: a table cannot take a column without loss; nothing is begun.
        RetryableError: another run has published into the range since `base`.
    """
    with ctx.store.lock(ctx.spark):
        finish_dead_publish(ctx)
        entries = ctx.ledger.entries()
        if any(entry.run_id == ctx.run_id and entry.step == "dropped" for entry in entries):
            raise InputError(
                f"{ctx.spec.pipeline} run {ctx.run_id}",
                "was dropped while it ran, and publishes nothing",
                "run it again",
            )
        for other in published_since(entries, entry):
            raise RetryableError(
                f"{ctx.spec.pipeline} run {ctx.run_id}",
                f"run {other.run_id} has published into its range, or into older slots of its "
                "late records, meanwhile",
                "run it again",
            )
        for change in changes:
            if any(change.counts.values()):
                out.hold(ctx.store, change.target, out.without_op(change.rows.schema))
        entry = replace(entry, frontier_ms=frontier_after(entries, entry, completes_ms))
        begun = {
            "key": list(ctx.spec.source.key),
            "whole": [change.target.name for change in changes if change.whole],
            "parts": [change.target.name for change in changes],
            "emptied": [_FIRINGS] * (old_firings(ctx) > 0),
        }
        before = {name: v for name, v in ctx.store.versions().items() if name in _TABLES}
        ctx.note(replace(entry, step="publishing", publish=begun, versions=before))
        for change in changes:
            out.publish(
                ctx.store, change.target, change.rows, change.counts, ctx.run_id, change.small
            )
        for name in begun["emptied"]:
            ctx.store.empty(name, ctx.run_id)
        published = _published(ctx, entry)
        ctx.note(published)
    return published


def _published(ctx: Context, entry: Entry) -> Entry:
    """What the ledger says once everything is brought in."""
    opened = first_open(ctx.store, sessions=False)
    return replace(
        entry,
        step="published",
        versions=ctx.store.versions(),
        first_open_ms=None if opened is None else opened.start_ms,
    )


def old_firings(ctx: Context) -> int:
    """The firings that stand from when the pipeline kept them: they go with its next publish."""
    return 0 if ctx.spec.firings else ctx.store.rows(_FIRINGS)


def finish_dead_publish(ctx: Context) -> None:
    """Finish a publish that died, from its staging, or its drop, if one has begun.

    Call it under the lock, before anything.

    Raises:
        InputError: it cannot be finished; the message says how to drop it.
    """
    dead = unfinished_publish(ctx.ledger.entries())
    if dead is None or dead.publish is None or dead.run_id == ctx.run_id:
        return
    if finish_drop(ctx.store, dead) is not None:
        return
    with _said_how_to_drop(ctx, dead):
        changes = list(_changes_of(ctx, dead))
        for change in changes:
            out.publish(ctx.store, change.target, change.rows, change.counts, dead.run_id)
        for name in dead.publish.get("emptied", ()):
            ctx.store.empty(name, dead.run_id)
    message = f"finished by run {ctx.run_id}"
    ctx.note(replace(_published(ctx, dead), publish=None, message=message))


def _changes_of(ctx: Context, dead: Entry) -> Iterator[Change]:
    """What a publish that died was to bring in, as it lies in its staging.

    Raises:
        InputError: the staging holds less, or more, than the run has counted.
    """
    begun = dead.publish or {}
    staging = Staging(ctx.spark, ctx.store, dead.run_id)
    targets = _targets(begun["key"])
    for name in begun["parts"]:
        if name in begun["whole"]:
            rows = staging.read(name)
            change = _whole(targets[name], fired(rows) if name == "windows" else rows)
        else:
            rows = staging.read(f"{name}_diff")
            change = Change(targets[name], rows, out.tally(rows), whole=False)
        counted = (dead.diff or {}).get(name)
        if counted is not None and change.counts != counted:
            raise InputError(
                ctx.place(name), f"{change.counts} is staged, and {counted} was counted"
            )
        yield change


@contextmanager
def _said_how_to_drop(ctx: Context, dead: Entry) -> Iterator[None]:
    """Say of a publish that cannot be finished which it is, and what to type."""
    try:
        yield
    except (PySparkException, Py4JJavaError, DeltaError, pa.ArrowException, InputError) as error:
        pipeline = ctx.spec.pipeline
        # what py4j says of a JVM's exception begins with which of its own calls it was
        cause = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        raise InputError(
            f"{pipeline} run {dead.run_id}",
            f"has begun to publish, and cannot be finished ({cause.splitlines()[0]})",
            "mend what that names and run again, or take back what it has begun: "
            f"strandline runs drop {pipeline} {dead.run_id} --reason TEXT",
        ) from error


def _targets(key: Sequence[str]) -> dict[str, out.Target]:
    named = (out.QUARANTINE, out.COMPLETENESS, out.firings_target(key), out.windows_target(key))
    return dict(zip(_TABLES, named, strict=True))
