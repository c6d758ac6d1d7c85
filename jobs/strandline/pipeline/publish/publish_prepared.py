"""Publishes exactly what a run has staged and shown (`runs publish`); nothing is rebuilt."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from strandline.errors import InputError, StaleStagingError
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.sessions.exceptions import FAILURES, refused_after
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.model.books import books_off
from strandline.model.command import as_options
from strandline.model.intervals import TimeRange, midnight_of
from strandline.pipeline.audit.verdict import BOOKS_ARE_OFF
from strandline.pipeline.observe.commit_observation import commit_observed, stage_malformed
from strandline.pipeline.observe.landing_status import landing_status_of
from strandline.pipeline.observe.observe import observe_landing
from strandline.pipeline.publish.publish import changes_of, finish_dead_publish, publish_unchecked
from strandline.pipeline.publish.stale import changed_since
from strandline.pipeline.request.context import Context, Journal, Progress
from strandline.pipeline.request.driver import state_of, this_driver
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import known_command_of
from strandline.pipeline.views.changes import completed_by
from strandline.spec import PipelineSpec

_WITH_STAGING = ("prepared", "rejected")
"""The last steps of runs that keep their staging, so that it can be published."""
_CANNOT_BE_READ: tuple[type[Exception], ...] = (
    *FAILURES,
    pa.ArrowException,
    OSError,
    InputError,
)


def publish_prepared(
    spec: PipelineSpec,
    lake: Lake,
    run_id: str,
    spark: SparkSession,
    *,
    accept: str | None = None,
    requested_by: str | None = None,
    progress: Progress = lambda step: None,
    opened: OpenedLog | None = None,
) -> Outcome:
    """Publish the staging of a prepared run, or of a rejected one that somebody accepts.

    Exactly the counted changes are published, under the lock. The call may be killed at any point:
    the next run, or the same call, finishes it. It is idempotent.

    Args:
        spec: the pipeline, with the run's overridden settings (`overrides_of`).
        lake: where its tables lie.
        run_id: as the ledger names it.
        spark: the session.
        accept: the reason to publish a rejected run.
        requested_by: who asks; kept in the ledger.
        progress: called with each step as it begins.
        opened: the log of the landing table, where it is open already.

    Raises:
        InputError: the run cannot be published (`require_publishable`).
        RetryableError: the lock was held for a quarter of an hour.
    """
    progress("publish")
    opened = opened or OpenedLog.newest(lake, spec)
    landing = open_landing(spark, lake, spec, log=opened.log)
    ctx = Context(spark, spec, lake, landing, opened.ledger, run_id, dry_run=False)
    ctx.store.require_writable()
    require = partial(require_publishable, spec, ctx.ledger.store, run_id=run_id, accept=accept)
    run = require(ctx.ledger.state(), log=landing.log)
    kept = replace(
        run,
        reason=accept or run.reason,
        requested_by=requested_by or run.requested_by,
        message=None,
        driver=this_driver(spark),
    )
    commit_with_it = _accepted_loss(ctx, kept) if kept.step in _WITH_STAGING else None
    with ctx.store.lock():
        finish_dead_publish(ctx)
        run = require(ctx.ledger.state(), log=landing.log)
        if run.step in _WITH_STAGING:
            run = _publish_kept(ctx, kept, commit_with_it)
    ctx.staging.drop()
    completed = completed_by(ctx.ledger.state(), run_id)
    return replace(Outcome.of(spec.pipeline, run), completed=completed)


def _publish_kept(ctx: Context, kept: Entry, commit_with_it: Callable[[], None] | None) -> Entry:
    """Publish the staging that a run has kept, under the lock; its step `published`.

    Raises:
        InputError: a part of the staging is missing or broken.
    """
    pipeline = ctx.spec.pipeline
    steps = ctx.ledger.state().runs[kept.run_id]
    place, again = f"{pipeline} run {kept.run_id}", _command_to_repeat(pipeline, steps)
    # upkeep removes a staging whole
    with refused_after(_CANNOT_BE_READ, place, "its staging is broken", again):
        changes = changes_of(ctx, kept)
    return publish_unchecked(ctx, changes, kept, commit_with_it)


def _accepted_loss(ctx: Context, run: Entry) -> Callable[[], None] | None:
    """Commits days with accepted missing rows as they are now; None: the run has accepted none.

    The days are observed again; the landing below the run's horizon is unchanged.
    """
    if run.accepted_loss is None or run.horizon_ms is None:
        return None
    state = ctx.ledger.state()
    status = landing_status_of(ctx.landing, ctx.store, state)
    accepted = [
        day for day in status.missing - {*(run.lost or ())} if midnight_of(day) < run.horizon_ms
    ]
    axis = ctx.landing.axis(state)
    observation = observe_landing(
        ctx.landing, ctx.staging, axis, run.horizon_ms, status.accepting(accepted)
    )
    malformed = stage_malformed(observation, ctx.landing, ctx.staging)
    journal = Journal(ctx, run, lambda step: None)
    return partial(commit_observed, ctx, journal, observation, malformed)


def overrides_of(state: PipelineState, run_id: str) -> Mapping[str, str]:
    """The settings that a run has overridden; publishing it uses them, too."""
    overrides = [step.overrides for step in state.runs.get(run_id, ()) if step.overrides]
    return overrides[-1] if overrides else {}


def require_publishable(
    spec: PipelineSpec,
    store: Store,
    state: PipelineState,
    run_id: str,
    accept: str | None,
    log: LandingLog | None,
) -> Entry:
    """The last step of a run whose staging may be published, or has been.

    Args:
        spec: the pipeline.
        store: its tables.
        state: the pipeline's state, by its ledger.
        run_id: as the ledger names the run.
        accept: the reason to publish a rejected run.
        log: the landing table's log; None: its place is known to a catalog alone, and it is not
            checked.

    Raises:
        StaleStagingError: another run has published into its range since, or has erased rows; or
            the pipeline's rules or landing have changed.
        InputError: there is no such run; it has staged nothing to publish; it was rejected without
            being accepted, or its books do not balance; or its staging is missing.
    """
    steps = state.steps_of(run_id, store)
    if state.unfinished is not None and state.unfinished.run_id == run_id:
        return state.unfinished.begun  # who takes the lock ends it
    outcome = state_of(steps)
    if outcome == "published":
        return next(step for step in reversed(steps) if step.step == "published")
    run = steps[-1]
    again = _command_to_repeat(spec.pipeline, steps)
    place = f"{spec.pipeline} run {run_id}"
    if outcome not in _WITH_STAGING or run.publish is None:
        raise InputError(place, f"keeps nothing that could be published: {outcome}", again)
    if outcome == "rejected" and (off := books_off(run.books or ())):
        raise InputError(
            place, f"was rejected, and its books do not balance: {'; '.join(off)}", BOOKS_ARE_OFF
        )
    if outcome == "rejected" and accept is None:
        way_out = f"publish it with --accept REASON, or {again}"
        raise InputError(place, f"was rejected: {run.message}", way_out)
    if outcome == "prepared" and accept is not None:
        raise InputError(place, "was not rejected: there is nothing to accept", "omit --accept")
    changed = changed_since(spec, state, run, log)
    if changed is not None:
        raise StaleStagingError(place, changed, again)
    if not store.keeps_staging(run_id):
        raise InputError(place, "its staging is missing", again)
    return run


def _command_to_repeat(pipeline: str, steps: Sequence[Entry]) -> str:
    """The command that repeats a run, with all options of its request."""
    run, command = steps[-1], known_command_of(steps)
    if command is not None:
        kind, *options = command
        verb = "prepare it again" if "--prepare" in options else "run it again"
        return f"{verb}: strandline {kind} {pipeline} {shlex.join(options)}"
    if run.kind == "backfill" and run.range is not None:
        options_known = _options_by_facts(run, run.range)
        return f"prepare it again: strandline backfill {pipeline} {options_known}"
    return "run it again"


def _options_by_facts(run: Entry, within: TimeRange) -> str:
    """The options of a run of an earlier version, which has not kept them, as far as is known."""
    options = [
        *([as_options(run.overrides), "--reason …"] if run.overrides else ()),
        *(["--close"] if run.closed else ()),
        *(["--reopen"] if run.reopened else ()),
    ]
    return " ".join([within.as_options, *options, "--prepare"])
