"""One run from its request to its outcome; any step can be killed, and the run started again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from functools import partial

from pyspark.sql import SparkSession

from strandline.engine.past.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.sessions.reach import first_not_final
from strandline.errors import AuditFailedError, InputError
from strandline.lake.landing import Landing
from strandline.lake.ledger import Entry, Ledger, owed_days
from strandline.lake.session import for_input_of
from strandline.lake.store import Lake
from strandline.lake.timeline_rows import SCHEMA as TIMELINE_SCHEMA
from strandline.model.intervals import day_of, midnight_before, text_of
from strandline.pipeline.context import Context, Progress
from strandline.pipeline.failures import failures_told
from strandline.pipeline.memory import Remembered
from strandline.pipeline.notes import notes_of
from strandline.pipeline.observe import (
    Observation,
    commit_observation,
    observe_landing,
    stage_malformed,
)
from strandline.pipeline.plan import (
    Plan,
    axis_of,
    horizon_of,
    plan_advance,
    plan_backfill,
    require_rows,
)
from strandline.pipeline.publish import (
    Change,
    create_tables,
    diffs,
    finish_dead_publish,
    publish,
    tallies,
)
from strandline.pipeline.published_rows import first_open, last_slot, late_since, slots_of
from strandline.pipeline.rebuild import Staged, rebuild_into_staging
from strandline.pipeline.removals import may_shrink, removals_of
from strandline.pipeline.request import Outcome, Request
from strandline.pipeline.world import World, world_of
from strandline.quality.audit.result import AuditResult
from strandline.spec import PipelineSpec
from strandline.spec.window import Session


def run(
    spec: PipelineSpec,
    lake: Lake,
    request: Request,
    spark: SparkSession,
    progress: Progress = lambda step: None,
) -> Outcome:
    """Rebuild a range, judge it, and publish what differs.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        request: what is asked.
        spark: the session; one application a run.
        progress: told each step as it begins.

    Raises:
        InputError: the request, the spec or the landing table is wrong (exit 2).
        AuditFailedError: a critical expectation failed; nothing is published (exit 3).
        RetryableError: somebody else published into the range meanwhile (exit 4).
        UnexpectedError: anything else (exit 1); it too leaves a `failed` step.
    """
    landing = Landing.open(spark, lake, spec, request.now_ms)
    ledger = Ledger(lake.pipeline(spec.pipeline))
    attempt = 1 + max((e.attempt for e in ledger.entries() if _is_of(e, request)), default=0)
    run_id = f"{request.run_hash}-{attempt}"
    ctx = Context(spark, spec, lake, landing, ledger, run_id, dry_run=request.dry_run)
    return _Run(ctx, request, attempt, progress).execute()


def _is_of(entry: Entry, request: Request) -> bool:
    return request.run_key is not None and entry.run_id.startswith(f"{request.run_hash}-")


class _Run:
    """The steps of one run; `entry` is what the ledger says of it so far."""

    def __init__(
        self,
        ctx: Context,
        request: Request,
        attempt: int,
        progress: Progress,
    ) -> None:
        self.ctx = ctx
        self.request = request
        self.entries: list[Entry] = []
        self.progress = progress
        self.outcome = Outcome(ctx.spec.pipeline, request.kind, request.dry_run, ctx.run_id)
        self.entry = Entry(
            run_id=ctx.run_id,
            attempt=attempt,
            step="started",
            kind=request.kind,
            range=request.range,
            spec_fingerprint=ctx.spec.spec_fingerprint,
            timeline_fingerprint=ctx.spec.timeline_fingerprint,
            landing_version=ctx.landing.version,
            reason=request.reason,
            requested_by=request.requested_by,
        )

    def execute(self) -> Outcome:
        """All steps; what stops them is in the ledger before it is raised."""
        ctx = self.ctx
        ctx.spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", ctx.run_id)
        ctx.note(self.entry)
        with failures_told(ctx.spec.pipeline, ctx.run_id, self._say_failed):
            return self._steps()

    def _steps(self) -> Outcome:
        ctx = self.ctx
        try:
            with self._step("observe"):
                self._take_stock()
                seen, plan, axis = self._observe()
            with for_input_of(ctx.spark, self._size_of_input(seen, plan), ctx.spec.spark):
                changes = self._judged(seen, plan, axis)
            if ctx.dry_run:
                if self.outcome.status == "started":
                    self.outcome.status = "previewed"
                return self.outcome
            with self._step("publish"):
                entry = replace(self.entry, diff=self.outcome.diff)
                published = publish(ctx, changes, entry, plan.completes_ms)
                self.outcome.versions = published.versions or {}
                self.outcome.frontier_ms = published.frontier_ms
            ctx.staging.drop()
            self.outcome.status = "published"
        finally:
            if ctx.dry_run:
                ctx.staging.drop()
        return self.outcome

    def _judged(self, seen: Observation, plan: Plan, axis: Axis) -> list[Change]:
        """Rebuild, audit, and hold what is staged against what is published: what would change."""
        ctx = self.ctx
        # what is observed is committed while the rebuild, which needs it only in memory, runs
        with self._step("rebuild"), ThreadPoolExecutor(1) as pool:
            settled = pool.submit(self._settle, seen)
            staged = rebuild_into_staging(ctx, seen, plan, axis)
            settled.result()
            self._say(step="staged", books=[book.to_json() for book in staged.books])
        with self._step("audit"):
            if not ctx.dry_run:
                create_tables(ctx, staged)
            self._audit(staged)
        with self._step("diff"):
            changes = diffs(ctx, staged, plan, seen)
            self.outcome.diff = tallies(ctx, changes)
            self.entry = replace(self.entry, touched_from_ms=staged.oldest_ms)
            self._audit_removals(staged, plan, changes)
        return changes

    def _size_of_input(self, seen: Observation, plan: Plan) -> int:
        """The bytes that a rebuild reads, each as often as a record has windows."""
        read = self.ctx.landing.weight(sorted(self._days_to_read(seen, plan)))["bytes"]
        return read * seen.history.grid.most_windows

    def _take_stock(self) -> None:
        """What the run is based on: the ledger, once a publish that died is finished."""
        ctx = self.ctx
        if not ctx.dry_run:
            with ctx.store.lock(ctx.spark):
                finish_dead_publish(ctx)
        self.entries = ctx.ledger.entries()
        base = self.entries[-1].position if self.entries else 0
        self.entry = replace(self.entry, base=base)

    def _observe(self) -> tuple[Observation, Plan, Axis]:
        ctx, request = self.ctx, self.request
        axis = axis_of(ctx.landing, self.entries)
        horizon_ms = horizon_of(request, ctx.landing, axis, self.entries)
        world = world_of(ctx.landing, ctx.store, self.entries)
        if request.accept_loss and request.kind == "advance":
            world = world.accepting(world.lost)  # by hand, of the range alone
        seen, plan = self._planned(axis, horizon_ms, world)
        while True:
            later = plan.clock.horizon_ms != horizon_ms  # a later one is published into the range
            accepted = world.accepted | set(plan.lost if request.accept_loss else ())
            if not later and accepted == world.accepted:
                break
            horizon_ms, world = plan.clock.horizon_ms, world.accepting(accepted)
            seen, plan = self._planned(axis, horizon_ms, world)
        require_rows(request, plan)
        self._describe(seen, plan, axis)
        self.entry = replace(
            self.entry,
            range=plan.scope.windows,
            horizon_ms=plan.clock.horizon_ms,
            # the end of an idle source is not heard, and closes nothing
            closed=request.close and plan.clock.closes_now,
            reopened=request.reopen,
            violations=seen.all_violations,
            settled=plan.settles,
            lost=sorted(world.lost),
            accepted_loss=request.accept_loss if world.accepted else None,
            # nothing has landed yet: what lands first will start the clock
            clock_start_ms=axis.start_ms if ctx.landing.days else None,
        )
        return seen, plan, axis

    def _settle(self, seen: Observation) -> None:
        """Make what is observed count: malformed rows, the days' books, the timeline."""
        ctx = self.ctx
        malformed = stage_malformed(seen, ctx.landing, ctx.staging)
        self.outcome.books = list(malformed.books)
        if ctx.dry_run:
            return
        with ctx.store.lock(ctx.spark):
            ctx.store.create("timeline", TIMELINE_SCHEMA, ["arrival_date"])
        commit_observation(
            seen,
            malformed.rows,
            ctx.store,
            ctx.staging,
            finish=lambda: finish_dead_publish(ctx),
            note_owed=self._note_owed,
        )
        self._say(step="observed", books=[book.to_json() for book in malformed.books])

    def _note_owed(self, days: Sequence[date]) -> None:
        self._say(step="owed", owed=days)

    def _planned(self, axis: Axis, horizon_ms: int, world: World) -> tuple[Observation, Plan]:
        ctx, request = self.ctx, self.request
        to_observe = world.days_to_observe(ctx.spec, horizon_ms)
        self._require_few_bytes(to_observe, "observing them")
        scanned = ctx.landing.weight([*to_observe, day_of(horizon_ms)])["bytes"]
        with for_input_of(ctx.spark, scanned, ctx.spec.spark):
            seen = observe_landing(ctx.landing, ctx.staging, axis, horizon_ms, world)
        owed = sorted({*owed_days(self.entries), *seen.owed_days})
        if request.kind == "backfill":
            remembered = Remembered(self.entries, tuple(owed))
            return seen, plan_backfill(request, seen.history, horizon_ms, remembered, world)
        opened = first_open(ctx.store, sessions=isinstance(ctx.spec.window, Session))
        remembered = Remembered(self.entries, tuple(owed), opened)
        rules = {e.timeline_fingerprint for e in self.entries if e.step == "published"}
        if owed or rules - {ctx.spec.timeline_fingerprint}:  # then what is published may have gone
            last = last_slot(ctx.store)
            remembered = replace(remembered, last_slot_ms=last, late_slots=self._late_slots)
        first = partial(self._first_not_final, seen.history, axis)
        return seen, plan_advance(request, seen.history, remembered, world, first)

    def _late_slots(self, before_ms: int, since_ms: int) -> frozenset[int]:
        return slots_of(late_since(self.ctx, before_ms, since_ms))

    def _require_few_bytes(self, days: Sequence[date], what_for: str) -> None:
        """The arrival days that the run is to read are no more than it may; a dry run says so.

        Raises:
            InputError: they are.
        """
        limit = self.request.max_bytes or self.ctx.spec.max_bytes
        weight = self.ctx.landing.weight(days)["bytes"] if limit and days else 0
        if limit is None or weight <= limit:
            return
        problem = (
            f"{what_for} reads {weight:,} bytes of {len(days):,} arrival days, from {min(days)} to "
            f"{max(days)}, and {limit:,} are allowed"
        )
        if self.ctx.dry_run:
            self.outcome.notes.append(f"the run would be refused: {problem}")
            return
        way_out = "give a larger --max-bytes, or max_bytes in the pipeline's file"
        raise InputError("--max-bytes", problem, way_out)

    def _first_not_final(self, history: History, axis: Axis, watermark_ms: int) -> int:
        """Where the windows begin that a watermark does not leave as they are."""
        if not isinstance(history.spec.window, Session):
            return history.grid.first_not_final(watermark_ms)
        records = self.ctx.landing.records(axis, history.days.rebuilt)
        until_ms = midnight_before(self.request.to_ms or 0)
        return first_not_final(records, history, until_ms=until_ms, watermark_ms=watermark_ms)

    def _describe(self, seen: Observation, plan: Plan, axis: Axis) -> None:
        outcome, within = self.outcome, plan.scope.windows
        days = seen.history.days.of_windows(within)
        read = sorted({*seen.new_days, *self._days_to_read(seen, plan)})
        self._require_few_bytes(read, f"the range from {text_of(within.start_ms)} on")
        world = seen.world
        outcome.owed = [str(day) for day in plan.owed]
        outcome.judged_from_ms = plan.scope.older_since_ms
        outcome.lost = [str(day) for day in sorted(world.lost)]
        outcome.range, outcome.horizon_ms = within, plan.clock.horizon_ms
        outcome.notes += notes_of(self.ctx, seen, plan, axis, self.entries)
        outcome.observed_days = [str(day) for day in (*seen.new_days, *seen.partial_days) if day]
        outcome.malformed = seen.malformed_by_reason
        outcome.violations = seen.all_violations
        outcome.read = {
            "arrival_days": len(days),
            "first": str(days[0]) if days else None,
            "last": str(days[-1]) if days else None,
            **self.ctx.landing.weight(days),
        }

    def _days_to_read(self, seen: Observation, plan: Plan) -> set[date]:
        """The arrival days whose records are rebuilt, or judged again."""
        since_ms = plan.scope.older_since_ms
        days = seen.history.days
        fresh = set() if since_ms is None else set(days.since(since_ms))
        return fresh | set(days.of_windows(plan.scope.windows))

    def _audit(self, staged: Staged) -> None:
        from strandline.quality.audit.run import audit  # noqa: PLC0415 - takes seconds to import

        outcome = self.outcome
        outcome.books += staged.books
        outcome.gaps = staged.gaps
        states = staged.calendar["state"].value_counts()
        outcome.slots = {str(state): int(count) for state, count in states.items()}
        result = audit(
            self.ctx.spec,
            windows=staged.windows,
            completeness=staged.calendar,
            books=outcome.books,
            slots_expected=staged.slots_expected,
            gaps=staged.gaps,
            late=staged.late,
            accepted=staged.accepted,
            run_id=self.ctx.run_id,
            # given none, Great Expectations takes it from the run id, where it looks like a date
            audited_at=datetime.now(UTC),
            context_folder=self.ctx.validations_folder,
        )
        outcome.audit = result.to_json()
        self.entry = replace(
            self.entry,
            audit=outcome.audit,
            gaps=staged.gaps,
            books=[book.to_json() for book in outcome.books],
        )
        self._say(step="audited")
        if result.blocked:
            see = f"see strandline runs show {self.ctx.spec.pipeline} {self.ctx.run_id}"
            self._reject(result.failures, see)

    def _audit_removals(self, staged: Staged, plan: Plan, changes: Sequence[Change]) -> None:
        """A range that shrinks is a question: is it meant?"""
        from strandline.quality.audit.run import audit_removals  # noqa: PLC0415 - takes seconds

        spec, within = self.ctx.spec, plan.scope.windows
        limit = spec.quality.max_removed_share
        if limit is None or may_shrink(self.request, self.entries, within, plan.clock.horizon_ms):
            return
        (windows,) = (change for change in changes if change.target.name == "windows")
        removals = removals_of(self.ctx, windows, staged.windows, within)
        if removals is None:
            return
        result = audit_removals(
            removals.removed,
            removals.published,
            max_share=limit,
            run_id=self.ctx.run_id,
            audited_at=datetime.now(UTC),
        )
        self.outcome.audit.append(asdict(result))
        self.entry = replace(self.entry, audit=self.outcome.audit)
        if not result.success:
            self._reject(
                [result],
                "find out where their records are; if they are to go, say --allow-removals",
            )

    def _reject(self, failures: Sequence[AuditResult], way_out: str) -> None:
        """Publish nothing, and say why; a dry run goes on, to show what it would change."""
        what = "; ".join(f"{one.expectation}: {one.figures}" for one in failures)
        self.outcome.status = "rejected"
        if self.ctx.dry_run:
            self.outcome.status = "would be rejected"
            return
        self._say(step="rejected", message=what)
        raise AuditFailedError(
            f"{self.ctx.spec.pipeline} run {self.ctx.run_id}",
            f"the audit failed, nothing is published: {what}",
            way_out,
        )

    def _say_failed(self, message: str) -> None:
        self._say(step="failed", message=message)

    def _say(self, **what: object) -> int:
        return self.ctx.note(replace(self.entry, **what))  # type: ignore[arg-type]

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self.progress(name)
        begun = time.perf_counter()
        yield
        self.outcome.seconds[name] = round(time.perf_counter() - begun, 2)
