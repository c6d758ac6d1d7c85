"""The state of a run before it rebuilds: the landing status, the observation, the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from typing import Any

from strandline.engine.kind import kind_of
from strandline.engine.position.axis import Axis
from strandline.errors import InputError, RetryableError
from strandline.lake.ledger.state import PipelineState
from strandline.lake.sessions.settings import for_input_of
from strandline.model.intervals import day_of, days_named, text_of
from strandline.pipeline.observe.landing_status import LandingStatus, landing_status_of
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.observe.observe import observe_landing
from strandline.pipeline.plan.advance import plan_advance
from strandline.pipeline.plan.backfill import plan_backfill
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.plan import Plan, horizon_of, require_all, require_rows
from strandline.pipeline.plan.results_changed import left_to_scheduled_run
from strandline.pipeline.request.answered import request_fingerprint
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request
from strandline.visible import number_of


@dataclass(frozen=True)
class PlannedRun:
    """A planned run.

    Attributes:
        state: the pipeline's state that it is based on.
        observation: the observations below the horizon.
        plan: what it rebuilds.
        first_session_ms: the slot of the first session that can change once it is published; None:
            there are no sessions, or the run publishes nothing.
    """

    state: PipelineState
    observation: Observation
    plan: Plan
    first_session_ms: int | None = None

    @property
    def horizon_ms(self) -> int:
        """The instant before which the run knows records."""
        return self.plan.clock.horizon_ms

    @property
    def watermark_ms(self) -> int:
        """The watermark at the horizon, by the run's own rules; MIN_WATERMARK: none yet.

        Later runs observe by the pipeline's file, and know the watermark within a day at its
        windows alone.
        """
        return self.observation.history.crossings.watermark_reached(self.horizon_ms)

    @cached_property
    def days_of_range(self) -> list[date]:
        """The arrival days that may have records of the range."""
        return self.observation.history.days.of_windows(self.plan.scope.windows)

    @cached_property
    def days_to_rebuild(self) -> list[date]:
        """The arrival days whose records are rebuilt or evaluated again."""
        since_ms, days = self.plan.scope.older_since_ms, self.observation.history.days
        again = set() if since_ms is None else set(days.since(since_ms))
        return sorted(again | set(self.days_of_range))

    def days_read_to_rebuild(self, ctx: Context) -> list[date]:
        """`days_to_rebuild`, and the days that show the duplicates among them."""
        days = self.days_to_rebuild
        repeated = self.observation.history.days.with_duplicates
        return days if repeated.isdisjoint(days) else ctx.landing.days_read_for(days)

    def bytes_to_rebuild(self, ctx: Context) -> int:
        """The bytes that a rebuild reads, times the number of windows of a record."""
        read = ctx.landing.weight(self.days_to_rebuild)["bytes"]
        return read * self.observation.history.grid.most_windows

    def read(self, ctx: Context) -> Mapping[str, Any]:
        """The days and bytes of the range in the landing table, by its log."""
        days = self.days_of_range
        return {
            "arrival_days": len(days),
            "first": str(days[0]) if days else None,
            "last": str(days[-1]) if days else None,
            **ctx.landing.weight(days),
        }

    def ledger_says(self, ctx: Context, request: Request) -> dict[str, Any]:
        """The fields of the run's ledger steps that follow from the plan."""
        status = self.observation.status
        return {
            "range": self.plan.scope.windows,
            "horizon_ms": self.horizon_ms,
            # Flink drops the end of an idle source: it closes nothing
            "closed": request.close and self.plan.closes_now,
            "reopened": request.reopen,
            "request_fingerprint": _fingerprint(ctx, request, self.horizon_ms),
            "violations": self.observation.all_violations,
            "settled": self.plan.settles,
            "completes_ms": self.plan.completes_ms,
            "first_open_ms": self.first_session_ms,
            "lost": sorted(status.missing),
            "kept": [(one.start_ms, one.end_ms) for one in self.plan.scope.kept] or None,
            "accepted_loss": request.accept_loss if status.accepted else None,
            # nothing has landed yet: what lands first will start the clock
            "clock_start_ms": self.observation.history.axis.start_ms if ctx.landing.days else None,
        }


def planned_run_of(ctx: Context, request: Request, state: PipelineState) -> PlannedRun:
    """Observe, and plan.

    If the plan shows that a later horizon is published in the range, or that accepted losses
    concern its days, it is made again with these.

    Raises:
        InputError: rows that the range needs are missing, or the run would read more than allowed.
        RetryableError: another run has observed newer rows.
    """
    axis = ctx.landing.axis(state)
    horizon_ms = horizon_of(request, ctx.landing, axis, state)
    status = landing_status_of(ctx.landing, ctx.store, state)
    _require_newest(ctx, status)
    state = state.recreating if request.recreate else state
    if request.accept_loss and request.kind == "advance":
        status = status.accepting(status.missing)  # by hand, of the range alone
    while True:
        observation, plan = _planned(ctx, request, state, axis, horizon_ms, status)
        later_ms = plan.clock.horizon_ms  # as it is published into the range
        accepted = status.accepted | set(plan.missing if request.accept_loss else ())
        if later_ms == horizon_ms and accepted == status.accepted:
            break
        horizon_ms, status = later_ms, status.accepting(accepted)
    require_rows(ctx.spec, request, plan)
    require_all(request, plan, observation.history)
    first_ms = None if ctx.dry_run else _first_session(ctx, state, observation, plan)
    return PlannedRun(state, observation, plan, first_ms)


def _require_newest(ctx: Context, status: LandingStatus) -> None:
    """Refuse to go on if another run has observed rows that this run does not read.

    Raises:
        RetryableError: another run has: to this run the rows would seem to be missing.
    """
    newer = sorted(status.known_of_newer)
    if newer and not ctx.landing.log.is_newest:
        raise RetryableError(
            f"{ctx.spec.pipeline} run {ctx.run_id}",
            f"another run has observed newer rows of {days_named(newer)} since this one began",
            "run it again",
        )


def too_much_to_read(ctx: Context, request: Request, planned: PlannedRun) -> list[str]:
    """Why a dry run would be refused otherwise; a run that reads more than allowed is refused.

    Raises:
        InputError: the run would read more than allowed.
    """
    start = text_of(planned.plan.scope.windows.start_ms)
    observed = ctx.landing.days_read_for(planned.observation.new_days)
    asked = {
        "observing them": observed,
        f"the range from {start} on": sorted({*observed, *planned.days_read_to_rebuild(ctx)}),
    }
    problems = [_too_many_bytes(ctx, request, days, what) for what, days in asked.items()]
    return [f"the run would be refused: {problem}" for problem in problems if problem]


def _too_many_bytes(
    ctx: Context, request: Request, days: Sequence[date], what_for: str
) -> str | None:
    """The problem if some arrival days exceed the run's limit of bytes; None: they do not.

    Raises:
        InputError: they do, and it is not a dry run.
    """
    limit = request.max_bytes or ctx.spec.max_bytes
    weight = ctx.landing.weight(days)["bytes"] if limit and days else 0
    if limit is None or weight <= limit:
        return None
    problem = (
        f"{what_for} reads {weight:,} bytes of {number_of(len(days), 'arrival day')}, from "
        f"{min(days)} to {max(days)}, and {limit:,} are allowed"
    )
    if ctx.dry_run:
        return problem
    way_out = "give a larger --max-bytes, or max_bytes in the pipeline's file"
    place = "--max-bytes" if request.max_bytes else f"{ctx.spec.pipeline}: max_bytes"
    raise InputError(place, problem, way_out)


def _planned(
    ctx: Context,
    request: Request,
    state: PipelineState,
    axis: Axis,
    horizon_ms: int,
    status: LandingStatus,
) -> tuple[Observation, Plan]:
    """The observations at a horizon, and the plan."""
    to_observe = ctx.landing.days_read_for(status.days_to_observe(ctx.spec, horizon_ms))
    _too_many_bytes(ctx, request, to_observe, "observing them")
    scanned = ctx.landing.weight([*to_observe, day_of(horizon_ms)])["bytes"]
    with for_input_of(ctx.spark, scanned, ctx.spec.spark, two_sources=ctx.spec.has_two_sources):
        observation = observe_landing(ctx.landing, ctx.staging, axis, horizon_ms, status)
    earlier = EarlierRuns(ctx, request, state, observation)
    if request.kind == "backfill":
        return observation, plan_backfill(request, observation.history, horizon_ms, earlier, status)
    first = partial(_first_not_final, ctx, request, state, observation)
    return observation, plan_advance(request, observation.history, earlier, status, first)


def _first_not_final(
    ctx: Context,
    request: Request,
    state: PipelineState,
    observation: Observation,
    watermark_ms: int,
) -> int:
    """The start of the first window that a watermark does not make final.

    Over results, or of the first window that the rebuilds of changed results leave to this run.
    """
    history = observation.history
    records = partial(ctx.records, history)
    first = kind_of(ctx.spec).first_not_final(records, history, request.until_ms, watermark_ms)
    return first if observation.status.recomputes else min(first, left_to_scheduled_run(state))


def _first_session(
    ctx: Context, state: PipelineState, observation: Observation, plan: Plan
) -> int | None:
    """The slot of the first session that can change once a plan is published; None: no sessions.

    A session outlives the slot that it starts in. A run by hand leaves the sessions that later
    scheduled runs go on with as they are.
    """
    if not ctx.spec.window.merging:
        return None
    if plan.completes_ms is None and state.frontier_ms is not None:
        return state.first_open_ms
    history, horizon_ms = observation.history, plan.clock.horizon_ms
    records = partial(ctx.records, history)
    watermark_ms = history.crossings.watermark_reached(horizon_ms)
    return kind_of(ctx.spec).first_not_final(records, history, horizon_ms, watermark_ms)


def _fingerprint(ctx: Context, request: Request, horizon_ms: int) -> str | None:
    """The fingerprint of a request; None: it depends on the current time, so no run repeats it."""
    by_arrivals = request.kind == "backfill" and request.as_of_ms is None
    if by_arrivals and (horizon_ms == request.now_ms or ctx.landing.days_to_come):
        return None
    return request_fingerprint(ctx.spec, request, ctx.landing.log.input_id)
