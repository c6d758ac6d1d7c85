"""One run from its request to its outcome; it can be killed at any step and started again.

observe → plan → rebuild → audit → diff → publish: each step makes a value from the values before
it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.staged_diff import to_publish
from strandline.lake.sessions.interruptions import in_threads
from strandline.lake.sessions.settings import for_input_of
from strandline.lake.store.lake import Lake
from strandline.pipeline.audit.arrivals import RunArrivals, checks_of, note_of_dates
from strandline.pipeline.audit.verdict import verdict_of, verdict_of_removals, verdict_of_tables
from strandline.pipeline.diff.diff import diffs, no_longer_kept, outside, tallies
from strandline.pipeline.notes.changed import of_rebuilt_first
from strandline.pipeline.notes.notes import notes_of, of_frontier, of_staged
from strandline.pipeline.observe.commit_observation import (
    Malformed,
    commit_observed,
    stage_malformed,
)
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.planned_run import PlannedRun, planned_run_of, too_much_to_read
from strandline.pipeline.plan.results_changed import of_changed_results
from strandline.pipeline.publish.publish import create_tables, finish_dead_publish, publish
from strandline.pipeline.rebuild.rebuild import Staged, rebuild_into_staging
from strandline.pipeline.request.answered import require_no_earlier_recreation
from strandline.pipeline.request.ask_engine import require_all_expressions
from strandline.pipeline.request.begin import begin_run
from strandline.pipeline.request.context import Context, Journal, Progress, started
from strandline.pipeline.request.failures import failures_recorded
from strandline.pipeline.request.layout import require_same_layout
from strandline.pipeline.request.opened import (
    OpenedLog,
    brought_up_to_date,
    require_nothing_erased,
    staging_cleared,
)
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request, command_of
from strandline.pipeline.request.thrown import thrown_by
from strandline.pipeline.run_outcome import (
    RebuiltRange,
    duration_to_show,
    of_run,
    preview_to_show,
    status_after,
    with_rebuilt_first,
)
from strandline.pipeline.views.changes import completed_by
from strandline.spec import PipelineSpec


def run(
    spec: PipelineSpec,
    lake: Lake,
    request: Request,
    spark: SparkSession,
    progress: Progress = lambda step: None,
    opened: OpenedLog | None = None,
) -> Outcome:
    """Rebuild a range, audit it, and publish the differences.

    An error is written into the ledger before it is raised.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        request: the requested run.
        spark: the session; one application a run.
        progress: called with each step as it begins.
        opened: the log of the landing table, if it is already open: it is used unless another run
            has written a ledger step since.

    Raises:
        InputError: the request, the spec or the landing table is wrong (exit 2).
        AuditFailedError: a critical expectation failed; nothing is published (exit 3).
        RetryableError: another run has published into the range, or erased rows, since it began
            (exit 4).
        UnexpectedError: anything else (exit 1); it too leaves a `failed` step.
    """
    opened = opened or OpenedLog.newest(lake, spec)
    landing = open_landing(spark, lake, spec, request.now_ms, opened.log)
    request = request.ready(spec.source.ready_after).known(opened.known_until_ms)
    ledger = opened.ledger
    state = ledger.state()
    require_same_layout(spec, state, recreate=request.recreate)
    require_no_earlier_recreation(request, state, opened.known_until_ms)
    of_changed = of_changed_results(landing, request, state, ledger.store)
    opened, before = _run_each(spec, lake, of_changed, spark, progress, opened)
    run_ids = [] if request.dry_run else [one.run_id for one in before]
    if not request.dry_run:
        ledger.store.require_writable()
    first = started(spec, landing, request)
    begun = begin_run(ledger, first, request.run_key, dry_run=request.dry_run)
    notes_before = [*of_rebuilt_first(spec, of_changed, run_ids, state)]
    ctx = Context(spark, spec, lake, landing, ledger, begun.run_id, dry_run=request.dry_run)
    journal = Journal(ctx, begun, progress)
    with failures_recorded(
        spark, spec.pipeline, ctx.run_id, journal.write_failed, partial(thrown_by, landing)
    ):
        ctx, state = _recovered(ctx, journal, opened.base, [*run_ids, ctx.run_id])
        with staging_cleared(ctx):
            outcome = _steps(ctx, request, journal, state, notes_before, before)
    if request.dry_run:
        return with_rebuilt_first(outcome, before)
    return replace(outcome, changed_first=[one.run_id for one in before if one.changed])


def _run_each(
    spec: PipelineSpec,
    lake: Lake,
    requests: Sequence[Request],
    spark: SparkSession,
    progress: Progress,
    opened: OpenedLog,
) -> tuple[OpenedLog, list[Outcome]]:
    """Run some requests in turn, each by its own rules.

    Returns:
        The log as the last run has opened it (without a request, the given one), and the outcome of
        each run.
    """
    outcomes: list[Outcome] = []
    for request in requests:
        opened = opened.after([one.run_id for one in outcomes])
        rules = spec.under(request.overrides)
        outcomes.append(run(rules, lake, request, spark, progress, opened))
    return opened, outcomes


def _steps(
    ctx: Context,
    request: Request,
    journal: Journal,
    state: PipelineState,
    notes_before: Sequence[str],
    before: Sequence[Outcome],
) -> Outcome:
    with journal.part("observe"):
        require_all_expressions(ctx.landing)
        planned = planned_run_of(ctx, request, state)
        arrivals = RunArrivals(request, planned)
        notes = [
            *request.notes,
            *notes_before,
            *too_much_to_read(ctx, request, planned),
            *notes_of(ctx, request, planned),
            *note_of_dates(arrivals),
        ]
        journal.add_facts(**planned.ledger_says(ctx, request))
    bytes_read, two_sources = planned.bytes_to_rebuild(ctx), ctx.spec.has_two_sources
    with for_input_of(ctx.spark, bytes_read, ctx.spec.spark, two_sources=two_sources):
        rebuilt = _rebuilt(
            ctx,
            request,
            journal,
            arrivals,
            shown=before if ctx.dry_run else (),
        )
    published = _published(ctx, request, journal, planned, rebuilt)
    moved_back = of_frontier(journal.entry, state, ctx.landing.log.known_until_ms)
    return replace(
        Outcome.of(ctx.spec.pipeline, published or journal.entry),
        **of_run(ctx, arrivals, rebuilt),
        dry_run=ctx.dry_run,
        status=status_after(request, rebuilt),
        completed=completed_by(ctx.ledger.state(), ctx.run_id) if published else (),
        took_before=duration_to_show(request, state, journal.entry.books or ()),
        # two ranges may have the same note
        notes=[*dict.fromkeys([*notes, *of_staged(rebuilt.staged, request), *moved_back])],
        quarantined=journal.quarantined,
        seconds=journal.seconds,
    )


def _rebuilt(
    ctx: Context,
    request: Request,
    journal: Journal,
    arrivals: RunArrivals,
    shown: Sequence[Outcome],
) -> RebuiltRange:
    """The staged range, its audit, and its differences from the published tables.

    Without the differences that a dry run has shown before: a run has published them by now.

    Raises:
        AuditFailedError: a critical expectation failed.
    """
    planned = arrivals.planned
    with journal.part("rebuild"):
        staged, malformed = _staged(ctx, journal, planned)
        books = [*malformed.books, *staged.books]
    with journal.part("audit"):
        if not ctx.dry_run:
            create_tables(ctx, staged)
        verdict = verdict_of(ctx, journal, staged, books, checks_of(ctx, arrivals, staged))
    with journal.part("diff"):
        changes = outside(diffs(ctx, staged, planned, recreate=request.recreate), shown)
        emptied = no_longer_kept(ctx)
        journal.add_facts(
            touched_from_ms=staged.touched.start_ms,
            touched_until_ms=staged.touched.end_ms,
            diff=tallies(changes, emptied),
            publish=replace(
                to_publish(ctx.spec.source.key, changes),
                emptied=tuple(emptied),
                accepted=tuple(sorted(planned.observation.status.accepted)),
                input_id=ctx.landing.log.input_id,
                watermark_ms=planned.watermark_ms if request.overrides else None,
                command=tuple(command_of(request)),
            ),
        )
        verdict += verdict_of_removals(ctx, request, journal, planned, staged, changes)
        verdict += verdict_of_tables(ctx, journal, planned, changes)
        verdict.reject(ctx, journal)
        rebuilt = RebuiltRange(staged, malformed, verdict, changes)
        return replace(rebuilt, preview=preview_to_show(ctx, request, planned, rebuilt))


def _published(
    ctx: Context, request: Request, journal: Journal, planned: PlannedRun, rebuilt: RebuiltRange
) -> Entry | None:
    """The step `published` of a run; None for a dry or prepared run, which publishes nothing."""
    if request.prepare:
        journal.write("prepared")
    if request.is_shown_first:
        return None
    with journal.part("publish"):
        # that rows have gone is accepted once what is left of them is published
        observation, status = planned.observation, planned.observation.status
        accepted = partial(commit_observed, ctx, journal, observation, rebuilt.malformed)
        with_it = accepted if status.accepted else None
        published = publish(ctx, rebuilt.changes, journal.entry, status, with_it)
    ctx.staging.drop()
    return published


def _recovered(
    ctx: Context, journal: Journal, base: int, own: Collection[str]
) -> tuple[Context, PipelineState]:
    """The context and state of a run, after finishing any dead publish."""
    if not ctx.dry_run:
        with ctx.store.lock():
            finish_dead_publish(ctx)
    ctx, state = brought_up_to_date(ctx, base, own)
    log = ctx.landing.log
    journal.add_facts(base=state.position, landing_version=log.version, landing_id=log.table_id)
    return ctx, state


def _staged(ctx: Context, journal: Journal, planned: PlannedRun) -> tuple[Staged, Malformed]:
    """The staged rebuild, and the malformed rows of the observed days.

    The observation is committed while the rebuild runs, which needs it only in memory and reads
    the tables as they were before.
    """
    before = ctx.as_published
    with in_threads(ctx.spark, 1) as pool:
        observed = pool.submit(_observed, ctx, journal, planned.observation)
        staged = rebuild_into_staging(before, planned)
        malformed = observed.result()
    if not journal.entry.overrides:
        journal.add_facts(first_accepted_ms=staged.gaps.first_accepted)
    journal.write("staged", books=staged.books)
    return staged, malformed


def _observed(ctx: Context, journal: Journal, observation: Observation) -> Malformed:
    """Stage malformed rows, and commit the observation.

    It is committed later if missing rows are accepted with it, and never for a run with overridden
    settings.
    """
    malformed = stage_malformed(observation, ctx.landing, ctx.staging)
    if not (ctx.dry_run or observation.status.accepted or journal.entry.overrides):
        with ctx.store.lock():
            finish_dead_publish(ctx)
            require_nothing_erased(ctx, journal.entry.base)
            commit_observed(ctx, journal, observation, malformed)
    return malformed
