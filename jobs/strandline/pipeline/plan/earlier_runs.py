"""The state that earlier runs have left, as far as a run needs it: small queries of the tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from strandline.engine.kind import kind_of
from strandline.engine.sessions.reach import whole_within
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, TimeRange, last_day_before, midnight_of
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.open_slots import EdgeSlots, FirstOpen, first_open, states_in
from strandline.pipeline.plan.published_rows import (
    first_closed_since,
    has_slots_outside,
    last_end,
    last_slot,
    late_slots,
)
from strandline.pipeline.plan.results_changed import days_observed_since
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class LandedBefore:
    """The landing table when a run read it.

    Attributes:
        log: its log; None: the table has the same rows now, below the horizon of that run.
    """

    log: LandingLog | None


@dataclass(frozen=True)
class EarlierRuns:
    """The state that earlier runs have left, and the arrivals that a run evaluates again for it.

    Attributes:
        ctx: the run.
        request: its request.
        state: the pipeline's state, by its ledger.
        observation: the observations below the run's horizon.
    """

    ctx: Context
    request: Request
    state: PipelineState
    observation: Observation

    @cached_property
    def to_recompute(self) -> tuple[date, ...]:
        """The arrival days to recompute, including days that this run has found."""
        return tuple(sorted({*self.state.days_to_recompute, *self.observation.days_to_recompute}))

    @property
    def frontier_ms(self) -> int | None:
        """The published frontier, in ms; None: nothing is published.

        Of a scheduled run over results it is at most the midnight up to which these are known.
        """
        is_scheduled = self.request.kind == "advance"
        known_ms = self.ctx.landing.log.known_until_ms if is_scheduled else None
        return self.state.frontier_within(known_ms)

    def horizon_over(self, within: TimeRange, asked_ms: int) -> int:
        """The horizon of a scheduled run.

        The latest published one of the range, if the source is known so far.

        Args:
            within: the slots that the run rebuilds.
            asked_ms: the midnight of the request.
        """
        published_ms, known_ms = self.state.largest_horizon(within), self.ctx.landing.log.horizon_ms
        if published_ms is None or published_ms <= asked_ms:
            return asked_ms
        return published_ms if known_ms is None else max(asked_ms, min(published_ms, known_ms))

    def base_ms(self, until_ms: int) -> int | None:
        """P: the midnight since which a scheduled run evaluates all arrivals again; None: all.

        The earliest of the day before `until_ms`, the frontier, and the first day to recompute, or
        observed otherwise: earlier arrivals cannot have changed.
        """
        if self.frontier_ms is None:
            return None
        changed = [midnight_of(day) for day in (*self.to_recompute, *self._observed_since)]
        return min([until_ms - DAY_MS, self.frontier_ms, *changed])

    def settled_by(self, completes_ms: int | None) -> tuple[date, ...]:
        """The days to recompute that a run settles: all, or none if it leaves out windows."""
        if completes_ms is None:
            return ()
        if self.frontier_ms is not None and completes_ms < self.frontier_ms:
            return ()
        return tuple(day for day in self.to_recompute if midnight_of(day) < completes_ms)

    @cached_property
    def _observed_since(self) -> set[date]:
        """Over results, the days that the last run over everything has not known as they are."""
        status, ctx = self.observation.status, self.ctx
        if status.recomputes:
            return set()
        observed = days_observed_since(ctx.spec, self.state, ctx.store)
        return {*status.changes.changed, *status.changes.behind, *observed}

    # ------------------------------------------------------------------ what may have moved since

    @cached_property
    def rows_may_have_moved(self) -> bool:
        """Whether other rows, or other rules, may have led to what is published.

        The source may lack published rows though no observed day has changed. Runs by hand may have
        read rows of a day that was not whole, and that was not observed; the source may be known no
        further than before; other rules may have published rows.
        """
        state, spec = self.state, self.ctx.spec
        if self.request.recreate:  # all that is published is replaced
            return False
        if self.to_recompute or self._observed_since:
            return True
        reached_ms, largest_ms = self.frontier_ms, state.largest_horizon()
        if reached_ms is None or (largest_ms is not None and largest_ms > reached_ms):
            return True
        last = state.last_by_file
        if last is None or last.spec_fingerprint != spec.spec_fingerprint:
            return True
        return state.timeline_rules != {spec.timeline_fingerprint}

    @cached_property
    def last_slot_ms(self) -> int | None:
        """The start of the last published slot, if rows may have moved; else None."""
        return last_slot(self.ctx.store) if self.rows_may_have_moved else None

    def late_slots(self, before_ms: int, since_ms: int) -> frozenset[int]:
        """The slots before an instant with published late records that arrived since another one.

        Empty if no rows may have moved: then no slot has lost such a record.
        """
        if not self.rows_may_have_moved:
            return frozenset()
        return late_slots(self.ctx, before_ms, since_ms)

    def first_closed_since(self, since_ms: int) -> int | None:
        """The start of the first published slot, or session, closed since an instant, or open."""
        return first_closed_since(self.ctx.store, kind_of(self.ctx.spec), since_ms)

    # --------------------------------------------------------------------------- what is published

    @cached_property
    def first_open(self) -> FirstOpen | None:
        """The first published slot that is not closed; None: there is none."""
        return first_open(self.ctx.store, closed_before=kind_of(self.ctx.spec).cross_slots)

    def states_in(self, within: TimeRange) -> EdgeSlots:
        """The last closed and the first open published slot of a range."""
        return states_in(self.ctx.store, within)

    def last_end(self, within: TimeRange) -> int | None:
        """The last end of the published windows that start in a range; None: there is none."""
        return last_end(self.ctx.store, within)

    def has_slots_outside(self, within: TimeRange) -> bool:
        """Whether slots with records stay published outside a range."""
        return not self.request.recreate and has_slots_outside(self.ctx.store, within)

    # ------------------------------------------------------------ ranges with overridden settings

    def landed_before(self, one: OverriddenRange) -> LandedBefore | None:
        """The landing table at a range's run; None: later rows cannot be distinguished."""
        log = self.ctx.landing.log
        if one.landing_version is None or one.horizon_ms is None or log.is_another(one.landing_id):
            return None
        days_by = log.day_partition(self.ctx.spec.source.arrival_date)
        last_day = last_day_before(one.horizon_ms)
        if log.same_rows_since(one.landing_version, days_by=days_by, last_day=last_day):
            return LandedBefore(log=None)
        before = log.readable_at(one.landing_version)
        return None if before is None else LandedBefore(before)

    def whole_within(
        self, rules: PipelineSpec, within: TimeRange, horizon_ms: int, watermark_ms: int
    ) -> TimeRange | None:
        """The slots of a range whose sessions had been dropped, with no session across the edges.

        Args:
            rules: the pipeline with the settings of the range.
            within: the range.
            horizon_ms: the horizon of its run.
            watermark_ms: the watermark there.
        """
        history = self.observation.history
        records, by_rules = self.ctx.records(history), replace(history, spec=rules)
        return whole_within(
            records, by_rules, within, until_ms=horizon_ms, watermark_ms=watermark_ms
        )
