"""publish: bring what differs into the published tables, under the pipeline's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from strandline.errors import InputError, RetryableError
from strandline.lake import publish as out
from strandline.lake.diff import INSERT, OP
from strandline.lake.ledger import (
    Entry,
    frontier_after,
    of_these_tables,
    published_since,
    unfinished_publish,
)
from strandline.lake.staging import Staging
from strandline.lake.store import PUBLISHED
from strandline.pipeline.context import Context
from strandline.pipeline.counts import fired
from strandline.pipeline.diff import (
    Change,
    old_firings,
    parts_of,
    whole_part,
)
from strandline.pipeline.drop import finish_drop
from strandline.pipeline.layout import require_same_layout
from strandline.pipeline.published_rows import first_open
from strandline.pipeline.rebuild import Staged
from strandline.tables import tables_of


def create_tables(ctx: Context, staged: Staged) -> None:
    """Create what is not there yet, empty: after the first run every table can be read."""
    targets = tables_of(ctx.spec.source.key)
    firings = out.firings_schema(staged.windows.schema)
    with ctx.store.lock(ctx.spark):
        for name, rows in parts_of(staged).items():
            out.create(ctx.store, targets[name], firings if rows is None else rows.schema)


def publish(
    ctx: Context,
    changes: Sequence[Change],
    entry: Entry,
    completes_ms: int | None,
    commit_with_it: Callable[[], None] | None = None,
) -> Entry:
    """Publish the changes, unless somebody has published into the range meanwhile.

    Args:
        ctx: the run.
        changes: its diffs.
        entry: what the ledger shall say; `base` is the position that the run is based on.
        completes_ms: the midnight up to which the run publishes everything, if it does.
        commit_with_it: commits to the timeline what counts only once the changes are published.

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
        require_same_layout(ctx.spec, entries, recreate=entry.recreated)
        for other in published_since(entries, entry):
            raise RetryableError(
                f"{ctx.spec.pipeline} run {ctx.run_id}",
                f"run {other.run_id} has published into its range, or into older slots of its "
                "late records, meanwhile",
                "run it again",
            )
        for change in changes:
            if any(change.counts.values()) and not change.anew:
                out.hold(ctx.store, change.target, out.without_op(change.rows.schema))
        published = of_these_tables(entries, anew=entry.recreated)
        entry = replace(entry, frontier_ms=frontier_after(published, entry, completes_ms))
        begun = {
            "key": list(ctx.spec.source.key),
            "whole": [change.target.name for change in changes if change.whole],
            "parts": [change.target.name for change in changes],
            "anew": [change.target.name for change in changes if change.anew],
            "emptied": ["firings"] * (old_firings(ctx) > 0),
        }
        written = PUBLISHED if commit_with_it is None else ("timeline", *PUBLISHED)
        before = {name: v for name, v in ctx.store.versions().items() if name in written}
        ctx.note(replace(entry, step="publishing", publish=begun, versions=before))
        for change in changes:
            _bring_in(ctx, change, ctx.run_id)
        for name in begun["emptied"]:
            ctx.store.empty(name, ctx.run_id)
        if commit_with_it is not None:
            commit_with_it()
        done = _published(ctx, entry)
        ctx.note(done)
    return done


def _bring_in(ctx: Context, change: Change, run_id: str) -> None:
    """Write a change into its table, in one commit."""
    if change.anew:
        out.publish_anew(ctx.store, change.target, change.rows.drop(OP), run_id)
    else:
        out.publish(ctx.store, change.target, change.rows, change.counts, run_id, change.small)


def _published(ctx: Context, entry: Entry) -> Entry:
    """What the ledger says once everything is brought in."""
    opened = first_open(ctx.store, closed_before=False)
    return replace(
        entry,
        step="published",
        versions=ctx.store.versions(),
        first_open_ms=None if opened is None else opened.start_ms,
    )


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
            _bring_in(ctx, change, dead.run_id)
        for name in dead.publish.get("emptied", ()):
            ctx.store.empty(name, dead.run_id)
    # what the run would have committed with it is gone: of an accepted loss nothing is repeated yet
    repeatable = None if dead.accepted_loss else dead.request_fingerprint
    done = replace(_published(ctx, dead), publish=None, request_fingerprint=repeatable)
    ctx.note(replace(done, message=f"finished by run {ctx.run_id}"))


def _changes_of(ctx: Context, dead: Entry) -> Iterator[Change]:
    """What a publish that died was to bring in, as it lies in its staging.

    Raises:
        InputError: the staging holds less, or more, than the run has counted.
    """
    begun = dead.publish or {}
    staging = Staging(ctx.spark, ctx.store, dead.run_id)
    targets = tables_of(begun["key"])
    for name in begun["parts"]:
        if name in begun["whole"]:
            rows = staging.read(name)
            change = whole_part(targets[name], fired(rows) if name == "windows" else rows)
        else:
            rows = staging.read(f"{name}_diff")
            change = Change(targets[name], rows, out.tally(rows), whole=False)
        counted = (dead.diff or {}).get(name)
        if name in begun.get("anew", ()):  # what it deletes may have gone already
            change = replace(change, anew=True, counts={**(counted or {}), **_inserts(change)})
        if counted is not None and change.counts != counted:
            raise InputError(
                ctx.place(name), f"{change.counts} is staged, and {counted} was counted"
            )
        yield change


def _inserts(change: Change) -> dict[str, int]:
    return {INSERT: change.counts[INSERT]}


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
