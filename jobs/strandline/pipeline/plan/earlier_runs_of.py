"""The state that earlier runs have left, as far as a run needs it: small queries of the tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial

from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.sessions.reach import whole_within
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import TimeRange, last_day_before
from strandline.pipeline.observe.earlier_runs import EarlierRuns, LandedBefore
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.late_records import late_slots
from strandline.pipeline.plan.published_rows import (
    first_closed_since,
    first_open,
    has_slots_outside,
    last_end,
    last_slot,
    states_in,
)
from strandline.pipeline.plan.results_changed import days_observed_since
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec


def earlier_runs_of(
    ctx: Context, request: Request, state: PipelineState, observation: Observation
) -> EarlierRuns:
    """The state that earlier runs have left, as far as this run needs it."""
    to_recompute = tuple(sorted({*state.days_to_recompute, *observation.days_to_recompute}))
    if request.kind == "backfill" or request.recreate:
        earlier = EarlierRuns(state, to_recompute, last_end=partial(last_end, ctx.store))
        if request.recreate:  # all that is published is replaced
            return earlier
        return replace(earlier, has_slots_outside=partial(has_slots_outside, ctx.store))
    log, status = ctx.landing.log, observation.status
    observed = set() if status.recomputes else _observed_otherwise(ctx, state, status)
    earlier = EarlierRuns(
        state,
        to_recompute,
        first_open(ctx.store, closed_before=kind_of(ctx.spec).cross_slots),
        known_until_ms=log.known_until_ms,
        known_ms=log.horizon_ms,
        states_in=partial(states_in, ctx.store),
        landed_before=partial(_landed_before, ctx),
        whole_within=partial(_whole_sessions, ctx, observation.history),
        observed_since=tuple(sorted(observed)),
    )
    if not (to_recompute or observed or _may_lack_rows(state, ctx)):
        return earlier
    return replace(
        earlier,
        rows_may_have_moved=True,
        last_slot_ms=last_slot(ctx.store),
        late_slots=partial(late_slots, ctx),
        first_closed_since=partial(first_closed_since, ctx.store, kind_of(ctx.spec)),
    )


def _may_lack_rows(state: PipelineState, ctx: Context) -> bool:
    """Whether the source may lack published rows though no observed day has changed.

    Runs by hand may have read rows of a day that was not whole, and that was not observed; the
    source may be known no further than before; other rules may have published rows.
    """
    reached_ms = state.frontier_within(ctx.landing.log.known_until_ms)
    largest_ms = state.largest_horizon()
    if reached_ms is None or (largest_ms is not None and largest_ms > reached_ms):
        return True
    last = state.last_by_file
    if last is None or last.spec_fingerprint != ctx.spec.spec_fingerprint:
        return True
    return state.timeline_rules != {ctx.spec.timeline_fingerprint}


def _observed_otherwise(ctx: Context, state: PipelineState, status: LandingStatus) -> set[date]:
    """The days of results that the last run over everything has not known as they are now."""
    return {
        *status.changes.changed,
        *status.changes.behind,
        *days_observed_since(ctx.spec, state, ctx.store),
    }


def _landed_before(ctx: Context, one: OverriddenRange) -> LandedBefore | None:
    """The landing table at a range's run; None: rows that landed since cannot be distinguished."""
    log = ctx.landing.log
    if one.landing_version is None or one.horizon_ms is None or log.is_another(one.landing_id):
        return None
    days_by = log.day_partition(ctx.spec.source.arrival_date)
    last_day = last_day_before(one.horizon_ms)
    if log.same_rows_since(one.landing_version, days_by=days_by, last_day=last_day):
        return LandedBefore(log=None)
    before = log.readable_at(one.landing_version)
    return None if before is None else LandedBefore(before)


def _whole_sessions(
    ctx: Context,
    history: History,
    rules: PipelineSpec,
    within: TimeRange,
    horizon_ms: int,
    watermark_ms: int,
) -> TimeRange | None:
    """The slots of a range whose sessions had been dropped, with no session across the edges."""
    by_rules = replace(history, spec=rules)
    return whole_within(
        ctx.records(history), by_rules, within, until_ms=horizon_ms, watermark_ms=watermark_ms
    )
