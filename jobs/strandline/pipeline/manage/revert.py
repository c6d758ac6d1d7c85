"""Reverts a run (`runs revert`): a new run restores what was published before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from strandline.errors import InputError
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.ledger import FINAL
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.publish.staged_diff import Change, Compared, stage_diff, to_publish
from strandline.lake.sessions.exceptions import FAILURES, refused_after
from strandline.lake.store.days import days_of_other_files
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import columns_of, rows_in_days
from strandline.lake.store.schema import fit, schema_of
from strandline.lake.store.store import Store
from strandline.model.intervals import EVERYTHING
from strandline.pipeline.diff.preview import preview_of
from strandline.pipeline.publish.abandon import rebuild_by_hand, require_not_begun
from strandline.pipeline.publish.publish import finish_dead_publish, publish
from strandline.pipeline.request.begin import begin_run
from strandline.pipeline.request.context import Context, Progress
from strandline.pipeline.request.driver import this_driver
from strandline.pipeline.request.failures import failures_recorded
from strandline.pipeline.request.opened import OpenedLog, staging_cleared
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import MOST_SHOWN
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.tables import PublishedTable, tables_of

_NOT_THERE: tuple[type[Exception], ...] = (*FAILURES, DeltaError, OSError)
"""Errors when a version is read whose log, or one of whose files, is missing."""


@dataclass(frozen=True)
class Reverted:
    """A run whose publish may be taken back.

    Attributes:
        begun: its step `publishing`, with the versions of its tables from before.
        done: its step `published`, with the versions after it: the difference is its own change.
        before: the pipeline's state before it.
        base: the ledger position that this is based on.
    """

    begun: Entry
    done: Entry
    before: PipelineState
    base: int

    @property
    def days_to_recompute(self) -> Sequence[date]:
        """The days to recompute that the run has settled: they have to be recomputed again."""
        return self.done.settled or ()

    def first_step(
        self, spark: SparkSession, spec: PipelineSpec, reason: str, requested_by: str | None
    ) -> Entry:
        """The first step of the reverting run, with the facts before the reverted one."""
        done, within = self.done, self.done.range
        known_ms = None if within is None else self.before.largest_horizon(within)
        return Entry(
            run_id="",
            attempt=0,
            step="started",
            kind="revert",
            range=within,
            touched_from_ms=done.touched_from_ms,
            touched_until_ms=done.touched_until_ms,
            horizon_ms=done.horizon_ms if known_ms is None else known_ms,
            reopened=done.closed,
            frontier_ms=self.before.frontier_ms,
            first_open_ms=self.before.first_open_ms if spec.window.merging else None,
            spec_fingerprint=spec.spec_fingerprint,
            timeline_fingerprint=done.timeline_fingerprint,
            landing_version=done.landing_version,
            landing_id=done.landing_id,
            reverts=done.run_id,
            base=self.base,
            publish=ToPublish(key=self.begun.to_publish.key),
            reason=reason,
            requested_by=requested_by,
            message=f"reverts run {done.run_id}",
            driver=this_driver(spark),
        )


def require_revertible(store: Store, state: PipelineState, run_id: str) -> Reverted:
    """A run whose publish may be taken back, by the ledger.

    Raises:
        InputError: there is no such run; it has not published; others have published into its range
            since; or the ledger lacks the versions before it.
    """
    pipeline, steps = store.pipeline, state.steps_of(run_id, store)
    place = f"{pipeline} run {run_id}"
    done = next((step for step in reversed(steps) if step.step == "published"), None)
    begun = next((step for step in reversed(steps) if step.step == "publishing"), None)
    if done is not None and begun is None:
        raise InputError(
            place,
            "the ledger no longer keeps the versions before it: maintain has removed its older "
            "steps (--ledger-days)",
            rebuild_by_hand(pipeline, done),
        )
    if done is None and steps[-1].kind in UPKEEP:
        raise InputError(place, f"a run of {steps[-1].kind} cannot be reverted")
    if done is None or begun is None:
        require_not_begun(pipeline, state, run_id)
        ended = steps[-1].step in FINAL
        way_out = f"list {pipeline} shows which have" if ended else f"cancel {pipeline} {run_id}"
        raise InputError(place, "has not published anything", f"strandline runs {way_out}")
    _require_last_of_its_range(pipeline, state, done)
    rebuild = rebuild_by_hand(pipeline, done)
    if begun.versions is None or done.versions is None:
        raise InputError(place, "the ledger is too old to have the versions before it", rebuild)
    if done.recreated:
        raise InputError(
            place,
            "has replaced all that was published (--recreate): the tables of before have another "
            "key or window than the pipeline has now",
            f"read them with strandline read {pipeline} TABLE --as-of-ledger "
            f"{begun.position - 1}; or give the pipeline file its old key and window, and go on "
            f"with strandline advance {pipeline} --to INSTANT --recreate --reason TEXT",
        )
    if done.accepted_loss is not None:
        raise InputError(place, "has accepted a loss, and days count as they are left", rebuild)
    before, within = state.until(begun.position - 1), done.range
    if within is not None and (done.closed or done.reopened) and before.closures_in(within):
        raise InputError(
            place,
            "has opened, or closed again, windows that --close had closed before",
            f"{rebuild} --close --as-of INSTANT",
        )
    return Reverted(begun, done, before, state.position)


def _require_last_of_its_range(pipeline: str, state: PipelineState, done: Entry) -> None:
    """Refuse a publish that is not in force, or whose slots a later one has changed.

    Raises:
        InputError: it was taken back; or others have published into its range since.
    """
    place = f"{pipeline} run {done.run_id}"
    for other, back in state.taken_back:
        if other.position == done.position:
            raise InputError(
                place,
                f"was reverted by run {back.run_id}",
                f"to publish its rows again: strandline runs revert {pipeline} "
                f"{back.run_id} --reason TEXT",
            )
    undone = {entry.position for pair in state.taken_back for entry in pair}
    since = state.published_since(replace(done, base=done.position))
    later = [entry for entry in since if entry.position not in undone]
    if any(entry.step == "erased" for entry in later):
        problem = "is older than an erasure, which has removed the older versions of the tables"
        raise InputError(place, problem, rebuild_by_hand(pipeline, done))
    if later:
        named = ", ".join(dict.fromkeys(entry.run_id for entry in later))
        raise InputError(
            place,
            f"is not the last to have published into its range; since then: {named}",
            f"revert the last of these first; or {rebuild_by_hand(pipeline, done)}",
        )


def revert_run(
    spec: PipelineSpec,
    lake: Lake,
    run_id: str,
    spark: SparkSession,
    *,
    reason: str,
    requested_by: str | None = None,
    dry_run: bool = False,
    progress: Progress = lambda step: None,
    opened: OpenedLog | None = None,
) -> Outcome:
    """Publish, as a new run, the state before a run published; a dry run shows the changes.

    The pipeline's state is restored with it: the frontier, the first open slot, the days to
    recompute. The earlier tables are read at the versions in the ledger. It may be killed at any
    point, like any run.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        run_id: as the ledger names it.
        spark: the session.
        reason: why; kept in the ledger.
        requested_by: who asks; kept in the ledger.
        dry_run: whether nothing is written.
        progress: called with each step as it begins.
        opened: the log of the landing table, where it is open already.

    Raises:
        InputError: see `require_revertible`; or an earlier version is no longer available.
        RetryableError: another run has published into the range, or rows were erased, since.
    """
    opened = opened or OpenedLog.newest(lake, spec)
    ledger = opened.ledger
    landing = open_landing(spark, lake, spec, log=opened.log)
    reverted = require_revertible(ledger.store, ledger.state(), run_id)
    if not dry_run:
        ledger.store.require_writable()
    step = reverted.first_step(spark, spec, reason, requested_by)
    first = begin_run(ledger, step, dry_run=dry_run)
    ctx = Context(spark, spec, lake, landing, ledger, first.run_id, dry_run=dry_run)

    def say_failed(message: str) -> None:
        ctx.append_step(replace(first, step="failed", message=message))

    with failures_recorded(spark, spec.pipeline, ctx.run_id, say_failed), staging_cleared(ctx):
        return _steps(ctx, first, reverted, progress)


def _steps(ctx: Context, first: Entry, reverted: Reverted, progress: Progress) -> Outcome:
    progress("diff")
    if not ctx.dry_run:
        with ctx.store.lock():
            finish_dead_publish(ctx)
        # by then a run that had died may have published into its range
        base = require_revertible(ctx.store, ctx.ledger.state(), reverted.done.run_id).base
        first = replace(first, base=base)
    changes = _changes_back(ctx, reverted)
    entry = replace(
        first,
        diff={change.target.name: change.counts for change in changes},
        publish=to_publish(first.to_publish.key, changes),
    )
    preview = preview_of(ctx, changes, first.range or EVERYTHING, None, MOST_SHOWN)
    if ctx.dry_run:
        entry = replace(entry, step="previewed")
    else:
        progress("publish")
        if reverted.days_to_recompute:
            ctx.append_step(replace(first, step="owed", owed=reverted.days_to_recompute))
        entry = publish(ctx, changes, entry)
        ctx.staging.drop()
    return replace(Outcome.of(ctx.spec.pipeline, entry), dry_run=ctx.dry_run, preview=preview)


def _changes_back(ctx: Context, reverted: Reverted) -> list[Change]:
    """The changes that restore the tables, on the days whose files the run has changed.

    Raises:
        InputError: a needed version is no longer available.
    """
    before, after = reverted.begun.versions or {}, reverted.done.versions or {}
    of_before = f"from before run {reverted.done.run_id}, is not there any more"
    changes = []
    for name, target in _tables(ctx.store, reverted).items():
        if name not in before.keys() & after.keys():
            continue
        with refused_after(
            _NOT_THERE,
            ctx.place(name),
            f"version {before[name]}, {of_before}",
            rebuild_by_hand(ctx.spec.pipeline, reverted.done),
        ):
            changes.append(_change_back(ctx, target, before[name], after[name]))
    return changes


def _tables(store: Store, reverted: Reverted) -> dict[str, PublishedTable]:
    """The tables that a run may have written; pairs are identified as in the earlier version."""
    version = (reverted.begun.versions or {}).get(PAIRS)
    pairs = None if version is None else store.table(PAIRS, version)
    by_windows = pairs is not None and "window_start" in columns_of(pairs).names
    return tables_of(reverted.begun.to_publish.key, pairs_of_windows=by_windows)


def _change_back(ctx: Context, target: PublishedTable, before: int, after: int) -> Change:
    uri, partition = ctx.store.uri(target.name), target.partition
    then, now = (DeltaTable(uri, version=version) for version in (before, after))
    days = days_of_other_files(partition, then, now)
    compared = Compared(
        target,
        staged=rows_in_days(then, partition, days),
        published=rows_in_days(now, partition, days),
        fitted=fit(schema_of(then), schema_of(now), ctx.place(target.name)),
    )
    return stage_diff(ctx.staging, f"{target.name}_diff", compared)
