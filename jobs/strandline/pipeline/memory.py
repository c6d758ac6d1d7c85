"""What a scheduled run must know of the runs before it, and from where it judges again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from strandline.lake.in_force import OverriddenRange
from strandline.lake.landing_log import LandingLog
from strandline.lake.state import PipelineState
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class FirstOpen:
    """The first slot that was not closed at the horizon of the run that published it.

    Attributes:
        start_ms: its start.
        end_ms: its end.
        closed_until_ms: the end of the last closed slot before it; None: there is none. Sessions
            reach across slots: what ended by then was closed with these.
    """

    start_ms: int
    end_ms: int
    closed_until_ms: int | None


@dataclass(frozen=True)
class Remembered:
    """What a run must know of the runs before it.

    Attributes:
        state: what is known of the pipeline by its ledger.
        owed: the arrival days that are to be judged again, those that this run finds too.
        first_open: the first slot that is not closed; None: there is none.
        last_slot_ms: the start of the last published slot, where what it holds may have gone; None:
            nothing has.
        late_slots: gives the slots before an instant that hold published late records which arrived
            from another instant on.
        known_until_ms: the midnight up to which the source is known, where that is the results of
            another pipeline; None: the clock alone decides.
        known_ms: the instant up to which it is.
        states_in: gives the start of the last closed published slot of a range, and that of the
            first one that is not closed; None: there is no such slot.
        landed_before: gives whether rows that have landed since a range by other rules was judged
            can be distinguished from those before, and the landing table of before; None: of the
            days below its horizon it holds just these rows now.
        whole_within: of sessions, by some rules: gives the slots of a range whose sessions a
            watermark had dropped at a horizon, and none of which cross an edge; None: there are
            none.
        last_end: gives the last end of the published windows that start in a range; None: there is
            none.
    """

    state: PipelineState
    owed: tuple[date, ...] = ()
    first_open: FirstOpen | None = None
    last_slot_ms: int | None = None
    late_slots: Callable[[int, int], frozenset[int]] = lambda before_ms, since_ms: frozenset()
    last_end: Callable[[TimeRange], int | None] = lambda within: None
    known_until_ms: int | None = None
    known_ms: int | None = None
    states_in: Callable[[TimeRange], tuple[int | None, int | None]] = lambda within: (None, None)
    landed_before: Callable[[OverriddenRange], tuple[bool, LandingLog | None]] = lambda one: (
        False,
        None,
    )

    whole_within: Callable[[PipelineSpec, TimeRange, int, int], TimeRange | None] = (
        lambda rules, within, horizon_ms, watermark_ms: None
    )

    @property
    def frontier_ms(self) -> int | None:
        """The midnight up to which everything is published that the source still stands for."""
        return self.state.frontier_within(self.known_until_ms)

    def horizon_over(self, within: TimeRange, asked_ms: int) -> int:
        """The horizon of a scheduled run: as later runs have published, if the source is known so.

        Args:
            within: the slots that the run brings up to date.
            asked_ms: the midnight that it is asked for.
        """
        published_ms = self.state.largest_horizon(within)
        if published_ms is None or published_ms <= asked_ms:
            return asked_ms
        if self.known_ms is None:
            return published_ms
        return max(asked_ms, min(published_ms, self.known_ms))

    def base_ms(self, until_ms: int) -> int | None:
        """P: from here on all is judged again by a scheduled run up to a midnight; None: all is.

        The day before, the frontier, or the first day to recompute, whichever is the earliest:
        what arrived before cannot have changed.
        """
        if self.frontier_ms is None:
            return None
        owed = [midnight_of(day) for day in self.owed]
        return min([until_ms - DAY_MS, self.frontier_ms, *owed])

    def settled_by(self, completes_ms: int | None) -> tuple[date, ...]:
        """The days to recompute that a run settles: all, or none if it leaves windows out."""
        if completes_ms is None or completes_ms < (self.frontier_ms or completes_ms):
            return ()
        return tuple(day for day in self.owed if midnight_of(day) < completes_ms)
