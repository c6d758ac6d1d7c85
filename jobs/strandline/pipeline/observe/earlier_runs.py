"""The state that earlier runs have left, and the arrivals that a run evaluates again for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class FirstOpen:
    """The first slot that was not closed at the horizon of the run that published it.

    Attributes:
        start_ms: its start.
        end_ms: its end.
        closed_until_ms: the end of the last closed slot before it; None: there is none. Sessions
            may extend over slots: sessions that ended by then were closed with that slot.
    """

    start_ms: int
    end_ms: int
    closed_until_ms: int | None


class EdgeSlots(NamedTuple):
    """The edges of a range's published slots: of closed slots, and of slots that are not closed.

    Attributes:
        last_closed_ms: the start of the last closed slot; None: there is none.
        first_open_ms: the start of the first slot that is not closed; None: there is none.
    """

    last_closed_ms: int | None = None
    first_open_ms: int | None = None


@dataclass(frozen=True)
class LandedBefore:
    """The landing table when a run read it.

    Attributes:
        log: its log; None: the table has the same rows now, below the horizon of that run.
    """

    log: LandingLog | None


@dataclass(frozen=True)
class EarlierRuns:
    """The state that earlier runs have left, for the plan of a run.

    Attributes:
        state: the pipeline's state, by its ledger.
        to_recompute: the arrival days to recompute, including days that this run has found.
        first_open: the first slot that is not closed; None: there is none.
        last_slot_ms: the start of the last published slot, if rows may be missing; None: no rows
            are.
        late_slots: gives the slots before an instant that have published late records which arrived
            since another instant.
        rows_may_have_moved: whether other rows, or other rules, may have led to what is published.
        first_closed_since: gives the start of the first published slot, or session, that was closed
            since an instant, or is not closed; None: there is none.
        has_slots_outside: whether slots with records are published outside a range.
        observed_since: over results, the arrival days that were observed otherwise since the last
            run over everything, or now.
        known_until_ms: the midnight up to which the results of the other pipeline are known; None:
            the source is a landing table.
        known_ms: the instant up to which they are known.
        states_in: gives the last closed and the first open published slot of a range.
        landed_before: for a range with overridden settings, gives the landing table at its run;
            None: rows that landed since cannot be distinguished from earlier ones.
        whole_within: for sessions, gives the slots of a range whose sessions a watermark had
            dropped at a horizon, with none across the edges; None: there are none.
        last_end: gives the last end of the published windows that start in a range; None: there is
            none.
    """

    state: PipelineState
    to_recompute: tuple[date, ...] = ()
    first_open: FirstOpen | None = None
    last_slot_ms: int | None = None
    late_slots: Callable[[int, int], frozenset[int]] = lambda before_ms, since_ms: frozenset()
    last_end: Callable[[TimeRange], int | None] = lambda within: None
    rows_may_have_moved: bool = False
    first_closed_since: Callable[[int], int | None] = lambda since_ms: None
    has_slots_outside: Callable[[TimeRange], bool] = lambda within: False
    observed_since: tuple[date, ...] = ()
    known_until_ms: int | None = None
    known_ms: int | None = None
    states_in: Callable[[TimeRange], EdgeSlots] = lambda within: EdgeSlots()
    landed_before: Callable[[OverriddenRange], LandedBefore | None] = lambda one: None
    whole_within: Callable[[PipelineSpec, TimeRange, int, int], TimeRange | None] = (
        lambda rules, within, horizon_ms, watermark_ms: None
    )

    @property
    def frontier_ms(self) -> int | None:
        """The published frontier, in ms, at most `known_until_ms`; None: nothing is published."""
        return self.state.frontier_within(self.known_until_ms)

    def horizon_over(self, within: TimeRange, asked_ms: int) -> int:
        """The horizon of a scheduled run.

        The latest published one of the range, if the source is known so far.

        Args:
            within: the slots that the run rebuilds.
            asked_ms: the midnight of the request.
        """
        published_ms = self.state.largest_horizon(within)
        if published_ms is None or published_ms <= asked_ms:
            return asked_ms
        if self.known_ms is None:
            return published_ms
        return max(asked_ms, min(published_ms, self.known_ms))

    def base_ms(self, until_ms: int) -> int | None:
        """P: the midnight since which a scheduled run evaluates all arrivals again; None: all.

        The earliest of the day before `until_ms`, the frontier, and the first day to recompute, or
        observed otherwise: earlier arrivals cannot have changed.
        """
        if self.frontier_ms is None:
            return None
        changed = [midnight_of(day) for day in (*self.to_recompute, *self.observed_since)]
        return min([until_ms - DAY_MS, self.frontier_ms, *changed])

    def settled_by(self, completes_ms: int | None) -> tuple[date, ...]:
        """The days to recompute that a run settles: all, or none if it leaves out windows."""
        if completes_ms is None or completes_ms < (self.frontier_ms or completes_ms):
            return ()
        return tuple(day for day in self.to_recompute if midnight_of(day) < completes_ms)
