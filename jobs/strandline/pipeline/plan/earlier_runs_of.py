"""The state that earlier runs have left, as far as a run needs it: small queries of the tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial

from strandline.engine.kind import kind_of
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.observe.earlier_runs import EarlierRuns
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.late_records import late_slots
from strandline.pipeline.plan.overridden_rows import landed_before, whole_sessions
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
        landed_before=partial(landed_before, ctx),
        whole_within=partial(whole_sessions, ctx, observation.history),
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
    if reached_ms is None or state.has_later_horizon(reached_ms):
        return True
    last = [run.spec_fingerprint for run in state.in_force if not run.overrides][-1:]
    rules = (state.timeline_rules, {*last})
    return rules != ({ctx.spec.timeline_fingerprint}, {ctx.spec.spec_fingerprint})


def _observed_otherwise(ctx: Context, state: PipelineState, status: LandingStatus) -> set[date]:
    """The days of results that the last run over everything has not known as they are now."""
    return {
        *status.changes.changed,
        *status.changes.behind,
        *days_observed_since(ctx.spec, state, ctx.store),
    }
