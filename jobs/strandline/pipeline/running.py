"""One run from its request to its outcome; any step can be killed, and the run started again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)
from pyspark.sql import SparkSession

from strandline.engine.axis import Axis
from strandline.engine.history import History
from strandline.engine.known import days_to_read
from strandline.engine.session_reach import first_not_final
from strandline.errors import AuditFailedError, InputError, StrandlineError
from strandline.lake.landing import Landing
from strandline.lake.ledger import Entry, Ledger
from strandline.lake.store import Lake
from strandline.lake.timeline import SCHEMA as TIMELINE_SCHEMA
from strandline.model.intervals import midnight_before
from strandline.pipeline.context import Context, Progress
from strandline.pipeline.notes import notes_of
from strandline.pipeline.observing import (
    Observation,
    commit_observation,
    observe_landing,
    stage_malformed,
)
from strandline.pipeline.planning import Plan, axis_of, horizon_of, plan_advance, plan_backfill
from strandline.pipeline.publishing import create_tables, diffs, finish_dead_publish, publish
from strandline.pipeline.rebuilding import Staged, rebuild_into_staging
from strandline.pipeline.request import Outcome, Request
from strandline.spec import PipelineSpec
from strandline.spec.window import Session

_THROWN = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)
"""What an expression of a pipeline throws on a value that it cannot take."""


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
    """
    landing = Landing.open(spark, lake, spec)
    entries = Ledger(lake.pipeline(spec.pipeline)).entries()
    attempt = 1 + max((e.attempt for e in entries if _is_of(e, request)), default=0)
    ctx = Context(
        spark, spec, lake, landing, f"{request.run_hash}-{attempt}", dry_run=request.dry_run
    )
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
        try:
            with self._step("observe"):
                self._take_stock()
                seen, plan, axis = self._observe()
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
                changes = diffs(ctx, staged, plan)
                self.outcome.diff = {change.target.name: change.counts for change in changes}
            if ctx.dry_run:
                if self.outcome.status == "started":
                    self.outcome.status = "previewed"
                return self.outcome
            with self._step("publish"):
                entry = replace(self.entry, diff=self.outcome.diff)
                published = publish(ctx, changes, entry, plan.completes_ms)
                self.outcome.versions = published.versions or {}
                self.outcome.frontier_ms = published.frontier_ms
            ctx.store.drop_staging(ctx.run_id)
            self.outcome.status = "published"
        except AuditFailedError:
            raise
        except StrandlineError as error:
            self._say(step="failed", message=str(error))
            raise
        except _THROWN as error:
            problem = str(error).splitlines()[0]
            self._say(step="failed", message=problem)
            raise InputError(
                ctx.spec.pipeline,
                f"Spark cannot compute it ({problem})",
                "if an expression of the pipeline throws on some value, use its try_… form",
            ) from error
        finally:
            if ctx.dry_run:
                ctx.spark.catalog.clearCache()
        return self.outcome

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
        seen, plan = self._planned(axis, horizon_ms)
        if plan.clock.horizon_ms != horizon_ms:  # a later one is published into the range
            seen, plan = self._planned(axis, plan.clock.horizon_ms)
        self._describe(seen, plan, axis)
        self.entry = replace(
            self.entry,
            range=plan.scope.windows,
            horizon_ms=plan.clock.horizon_ms,
            # the end of an idle source is not heard, and closes nothing
            closed=request.close and plan.clock.closes_now,
            reopened=request.reopen,
            violations=seen.all_violations,
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
        )
        self._say(step="observed", books=[book.to_json() for book in malformed.books])

    def _planned(self, axis: Axis, horizon_ms: int) -> tuple[Observation, Plan]:
        ctx = self.ctx
        seen = observe_landing(ctx.landing, ctx.store, axis, horizon_ms)
        if self.request.kind == "advance":
            first = partial(self._first_not_final, seen.history, axis)
            return seen, plan_advance(self.request, seen.history, self.entries, first)
        return seen, plan_backfill(self.request, seen.history, horizon_ms, self.entries)

    def _first_not_final(self, history: History, axis: Axis, watermark_ms: int) -> int:
        """Where the windows begin that a watermark does not leave as they are."""
        if not isinstance(history.spec.window, Session):
            return history.grid.first_not_final(watermark_ms)
        records = self.ctx.landing.records(axis, days_to_read(history))
        until_ms = midnight_before(self.request.to_ms or 0)
        return first_not_final(records, history, until_ms=until_ms, watermark_ms=watermark_ms)

    def _describe(self, seen: Observation, plan: Plan, axis: Axis) -> None:
        outcome, within = self.outcome, plan.scope.windows
        days = seen.history.arrival_days(within)
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

    def _audit(self, staged: Staged) -> None:
        from strandline.quality.audit import audit  # noqa: PLC0415 - takes seconds to import

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
            what = "; ".join(f"{one.expectation}: {one.figures}" for one in result.failures)
            outcome.status = "rejected"
            if self.ctx.dry_run:
                outcome.status = "would be rejected"
                return
            self._say(step="rejected", message=what)
            raise AuditFailedError(
                f"{self.ctx.spec.pipeline} run {self.ctx.run_id}",
                f"the audit failed, nothing is published: {what}",
                f"see strandline runs show {self.ctx.spec.pipeline} {self.ctx.run_id}",
            )

    def _say(self, **what: object) -> int:
        return self.ctx.note(replace(self.entry, **what))  # type: ignore[arg-type]

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self.progress(name)
        begun = time.perf_counter()
        yield
        self.outcome.seconds[name] = round(time.perf_counter() - begun, 2)
