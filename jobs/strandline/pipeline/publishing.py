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
from strandline.lake.diff import DELETE, INSERT, OP, diff
from strandline.lake.ledger import Entry, frontier_after, published_into, unfinished_publish
from strandline.lake.staging import Staging
from strandline.model.intervals import END_OF_INSTANTS_MS, TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.dropping import finish_drop
from strandline.pipeline.planning import Plan
from strandline.pipeline.rebuilding import Staged, fired

_TABLES = ("quarantine", "completeness", "firings", "windows")
"""In the order of publishing: who sees a window can see what it left behind."""


@dataclass(frozen=True)
class Change:
    """What a run changes in one table.

    Attributes:
        rows: the rows to insert, update and delete, with `OP`.
        whole: whether that is the staged part as it is: nothing stood in its scope.
    """

    target: out.Target
    rows: DataFrame
    counts: dict[str, int]
    whole: bool


def create_tables(ctx: Context, staged: Staged) -> None:
    """Create what is not there yet, empty: after the first run every table can be read."""
    targets = _targets(list(ctx.spec.source.key))
    firings = out.firings_schema(staged.windows.schema)
    with ctx.store.lock(ctx.spark):
        for name, rows in _parts(staged).items():
            out.create(ctx.store, targets[name], firings if rows is None else rows.schema)


def diffs(ctx: Context, staged: Staged, plan: Plan) -> list[Change]:
    """What the staged parts would change in the published tables."""
    targets = _targets(list(ctx.spec.source.key))
    return [
        _diff(ctx, targets[name], rows, plan, staged.oldest_ms)
        for name, rows in _parts(staged).items()
        if rows is not None
    ]


def _parts(staged: Staged) -> dict[str, DataFrame | None]:
    return {
        "quarantine": staged.quarantine,
        "completeness": staged.completeness,
        "firings": staged.firings,
        "windows": staged.windows,
    }


def _diff(
    ctx: Context, target: out.Target, staged: DataFrame, plan: Plan, oldest_ms: int
) -> Change:
    within = plan.scope.windows
    name = "slot_start"
    if target.name in {"windows", "firings"}:
        name, oldest_ms = "window_start", within.start_ms
    start, least = F.col(name), F.timestamp_millis(F.lit(within.start_ms))
    oldest = F.timestamp_millis(F.lit(oldest_ms))
    if not ctx.store.holds(target.name, _started_in(name, TimeRange(oldest_ms, within.end_ms))):
        return _whole(target, staged)
    scope = (start < F.timestamp_millis(F.lit(within.end_ms))) & (start >= oldest)
    scope &= F.col(target.partition) >= oldest.cast("date")
    there = out.published(ctx.spark, ctx.store, target, staged).where(scope)
    changes = diff(staged, there, target.keys, place=ctx.place(target.name))
    # of older slots, rows are only added or mended
    changes = changes.where((F.col(OP) != DELETE) | (start >= least))
    kept = ctx.staging.write(f"{target.name}_diff", changes)
    tally = out.tally(kept)
    if sum(tally.values()) > tally[INSERT]:
        _refuse_ambiguous(kept, target, ctx.place(target.name))
    return Change(target, kept, tally, whole=False)


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


def _started_in(name: str, within: TimeRange) -> ds.Expression:
    """The rows of a published table whose window or slot starts in a range."""
    first, end = (
        pa.scalar(ms * 1000, pa.timestamp("us", tz="UTC"))
        for ms in (within.start_ms, min(within.end_ms, END_OF_INSTANTS_MS - 1))
    )
    return (ds.field(name) >= first) & (ds.field(name) < end)


def _whole(target: out.Target, staged: DataFrame) -> Change:
    rows = staged.withColumn(OP, F.lit(INSERT))
    return Change(target, rows, out.tally(rows), whole=True)


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
        for other in published_into(entries, entry.range) if entry.range else ():
            if other.position > entry.base and other.run_id != ctx.run_id:
                raise RetryableError(
                    f"{ctx.spec.pipeline} run {ctx.run_id}",
                    f"run {other.run_id} has published into its range meanwhile",
                    "run it again",
                )
        entry = replace(entry, frontier_ms=frontier_after(entries, entry, completes_ms))
        begun = {
            "key": list(ctx.spec.source.key),
            "whole": [change.target.name for change in changes if change.whole],
            "parts": [change.target.name for change in changes],
        }
        before = {name: v for name, v in ctx.store.versions().items() if name in _TABLES}
        ctx.note(replace(entry, step="publishing", publish=begun, versions=before))
        for change in changes:
            out.publish(ctx.store, change.target, change.rows, change.counts, ctx.run_id)
        published = replace(entry, step="published", versions=ctx.store.versions())
        ctx.note(published)
    return published


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
    message = f"finished by run {ctx.run_id}"
    versions = ctx.store.versions()
    ctx.note(replace(dead, step="published", versions=versions, publish=None, message=message))


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
