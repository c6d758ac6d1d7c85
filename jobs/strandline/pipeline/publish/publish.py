"""Brings the changes of a run into the published tables, under the pipeline's lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date

import pyarrow as pa
from deltalake.exceptions import DeltaError

from strandline.engine.columns import is_ours
from strandline.errors import InputError, RetryableError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.in_force import with_missing_days
from strandline.lake.ledger.publications import no_further_than
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish import apply_diff
from strandline.lake.publish.arrow_diff import INSERT
from strandline.lake.publish.staged_diff import Change, counts_of, whole_part
from strandline.lake.publish.staging import Staging
from strandline.lake.sessions.exceptions import FAILURES, refused_after
from strandline.lake.store.days import dates_between
from strandline.lake.store.store import PUBLISHED
from strandline.lake.timeline.timeline import read_facts
from strandline.pipeline.diff.fitting import fit_of
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.plan.open_slots import complete_until, first_open
from strandline.pipeline.publish.abandon import take_back
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.driver import attempt_of, this_driver
from strandline.pipeline.request.layout import require_same_layout
from strandline.pipeline.request.opened import require_nothing_erased

_CANNOT_BE_FINISHED: tuple[type[Exception], ...] = (
    *FAILURES,
    DeltaError,
    pa.ArrowException,
    OSError,
    InputError,
)


def create_tables(ctx: Context, staged: Staged) -> None:
    """Create missing tables, empty, so that every table can be read after the first run."""
    schemas = {name: part.schema for name, part in staged.parts.items()}
    if ctx.spec.result == "windows" and not ctx.spec.firings:
        schemas["firings"] = apply_diff.firings_schema(schemas["windows"])
    with ctx.store.lock():
        for name, schema in schemas.items():
            apply_diff.create(ctx.store, ctx.spec.tables[name], schema)


def publish(
    ctx: Context,
    changes: Sequence[Change],
    entry: Entry,
    status: LandingStatus | None = None,
    commit_with_it: Callable[[], None] | None = None,
) -> Entry:
    """Publish the changes, unless another run has published into the range since `base`.

    Days with rows that another run has observed meanwhile, and that this run has not read, are to
    be recomputed by the next scheduled run: it would find no change of them.

    Args:
        ctx: the run.
        changes: its diffs.
        entry: the step to write; `base` is the ledger position that the run is based on, `publish`
            the parts to publish.
        status: the landing status that the run has read; None: it has read no landing.
        commit_with_it: commits observations to the timeline that count only with the changes.

    Returns:
        The written step, with the version of every table.

    Raises:
        InputError: a table cannot take a column without loss; nothing is begun.
        RetryableError: another run has published into the range, or rows were erased, since `base`.
    """
    with ctx.store.lock():
        finish_dead_publish(ctx)
        state = ctx.ledger.state()
        if state.has_step(ctx.run_id, "dropped"):
            raise InputError(
                f"{ctx.spec.pipeline} run {ctx.run_id}",
                "was dropped while it ran, and publishes nothing",
                "run it again",
            )
        require_nothing_erased(ctx, entry.base)
        require_same_layout(ctx.spec, state, recreate=entry.recreated)
        for other in state.published_since(entry):
            raise RetryableError(
                f"{ctx.spec.pipeline} run {ctx.run_id}",
                f"run {other.run_id} has published into its range, or into older slots of its "
                "late records, meanwhile",
                "run it again",
            )
        if not_read := _observed_meanwhile(ctx, state, entry, status):
            ctx.append_step(replace(entry, step="owed", owed=not_read))
        return publish_unchecked(ctx, changes, entry, commit_with_it)


def _observed_meanwhile(
    ctx: Context, state: PipelineState, entry: Entry, status: LandingStatus | None
) -> list[date]:
    """The days that a run completes without having read their newest observed rows.

    Days that the other run has noted itself are left out. With `LandingStatus.recomputes` False
    there are none: changed results are found by `results_changed`.
    """
    if status is None or entry.completes_ms is None or not status.recomputes:
        return []
    newest = read_facts(status.timeline.newest(ctx.store))
    noted = {day for day, note in state.noted.items() if note.position > entry.base}
    others = status.observed_otherwise(newest, entry.completes_ms)
    return [day for day in others if day not in noted]


def publish_unchecked(
    ctx: Context,
    changes: Sequence[Change],
    entry: Entry,
    commit_with_it: Callable[[], None] | None = None,
) -> Entry:
    """`publish` without its checks; the caller holds the lock, and no publish is unfinished."""
    for change in changes:
        table = ctx.store.table(change.target.name)
        if table is not None and not (change.is_empty or change.replaces_all):
            fit_of(ctx, table, change.target, change.rows.schema)
    state = ctx.ledger.state()
    state = state.recreating if entry.recreated else state
    after_ms = state.frontier_after(entry, entry.completes_ms)
    after_ms = no_further_than(ctx.landing.log.known_until_ms, after_ms)
    entry = replace(entry, frontier_ms=after_ms, lost=_missing_after(entry, state))
    written = PUBLISHED if commit_with_it is None else ("timeline", *PUBLISHED)
    begun = replace(entry, step="publishing", versions=ctx.store.versions(written))
    ctx.append_step(begun)
    _write(ctx, changes, entry)
    if commit_with_it is not None:
        commit_with_it()
    published = _published(ctx, begun)
    ctx.append_step(published)
    return published


def _missing_after(entry: Entry, state: PipelineState) -> Sequence[date] | None:
    """The days with missing rows after a run, by the run that has read the landing last."""
    others = (step for step in with_missing_days(state.steps) if step.run_id != entry.run_id)
    newest = next(others, None)
    if newest is None or newest.position <= entry.base:
        return entry.lost
    return [day for day in newest.lost or () if day not in entry.to_publish.accepted]


def _write(ctx: Context, changes: Sequence[Change], entry: Entry) -> None:
    """Write the changes of a run into their tables, and empty the tables that it empties."""
    attempt = attempt_of(entry.run_id)
    for change in changes:
        apply_diff.apply(ctx.store, change, attempt)
    for name in entry.to_publish.emptied:
        ctx.store.empty(name, entry.run_id)


def _published(ctx: Context, begun: Entry) -> Entry:
    """The step `published` for a begun publish whose tables are all written."""
    versions, first_open_ms = ctx.store.versions(), _first_open(ctx, begun)
    return replace(
        begun,
        step="published",
        publish=None,
        versions=versions,
        first_open_ms=first_open_ms,
        dates=dates_between(ctx.store, begun.versions or {}, versions),
        complete_ms=complete_until(ctx.store, ctx.ledger.state(), begun, first_open_ms),
    )


def _first_open(ctx: Context, begun: Entry) -> int | None:
    """The start of the first slot that is not closed, or has a session that can change."""
    opened = first_open(ctx.store, closed_before=False)
    found = [] if opened is None else [opened.start_ms]
    if begun.first_open_ms is not None:
        after = ctx.ledger.state().after([replace(begun, step="published")])
        found.append(after.not_closed_by_hand(begun.first_open_ms))
    return min(found, default=None)


def finish_dead_publish(ctx: Context) -> None:
    """Finish a dead publish from its staging, or take it back if that has begun.

    The caller holds the lock and has not written anything yet.

    Raises:
        InputError: it cannot be finished; the message says how to drop it.
    """
    unfinished = ctx.ledger.state().unfinished
    if unfinished is None:
        return
    if unfinished.drop is not None:
        take_back(ctx.ledger, unfinished.drop)
        return
    dead = unfinished.begun
    pipeline = ctx.spec.pipeline
    undo = f"strandline runs drop {pipeline} {dead.run_id} --reason TEXT"
    with refused_after(
        _CANNOT_BE_FINISHED,
        f"{pipeline} run {dead.run_id}",
        "has begun to publish, and cannot be finished",
        f"remove the cause and run again, or undo the publish: {undo}",
    ):
        _write(ctx, changes_of(ctx, dead), dead)
    # what the run would have committed with it is gone: of an accepted loss nothing is repeated yet
    repeatable = None if dead.accepted_loss else dead.request_fingerprint
    done = replace(
        _published(ctx, dead), request_fingerprint=repeatable, driver=this_driver(ctx.spark)
    )
    by = "runs publish" if dead.run_id == ctx.run_id else f"run {ctx.run_id}"
    ctx.append_step(replace(done, message=f"finished by {by}"))


def changes_of(ctx: Context, run: Entry) -> list[Change]:
    """The changes that a run was to publish, as they lie in its staging.

    Args:
        ctx: whose session reads it.
        run: its last step, with `publish` and `diff`.

    Raises:
        InputError: the staging holds less, or more, than the run has counted, or other columns.
    """
    if run.publish is None:
        raise InputError(
            ctx.place(run.run_id),
            "its step of the ledger lists no staged tables, so that it cannot be published",
            f"strandline runs drop {ctx.spec.pipeline} {run.run_id} --reason TEXT, and run again",
        )
    begun, found = run.publish, []
    staging = Staging(ctx.spark, ctx.store, run.run_id, second_of=ctx.second_of)
    targets = begun.tables
    for name in begun.parts:
        counted = (run.diff or {}).get(name)
        if counted is not None and not any(counted.values()) and name not in begun.replaced:
            continue  # of no rows an engine may have written no file, which alone has the columns
        if name in begun.whole:
            part = staging.part(name)
            if any(map(is_ours, part.schema.names)):
                problem = "was staged by an earlier version of Strandline, in another form"
                raise InputError(ctx.place(name), problem)
            change = whole_part(targets[name], part)
        else:
            rows = staging.part(f"{name}_diff")
            change = Change(targets[name], rows, counts_of(rows))
        if name in begun.replaced:  # what it deletes may have gone already
            counts = {**(counted or {}), INSERT: change.counts[INSERT]}
            change = replace(change, replaces_all=True, counts=counts)
        if counted is not None and change.counts != counted:
            staged, expected = _in_words(change.counts), _in_words(counted)
            problem = f"its staged rows are {staged}; the run counted {expected}"
            raise InputError(ctx.place(name), problem)
        found.append(change)
    return found


def _in_words(counts: Mapping[str, int]) -> str:
    """The numbers of rows of a diff: `3 to insert, 0 to update, 1 to delete`."""
    return ", ".join(f"{count:,} to {op}" for op, count in counts.items())
