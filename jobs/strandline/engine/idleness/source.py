"""The combined watermark where channels can go idle, day by day.

A few rows of a channel's records suffice: on which tick a new record became visible, and how long
the channel had been silent before. A small state is carried from day to day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

import pandas as pd

from strandline.engine.idleness.activity import Activity
from strandline.engine.idleness.by_clock import steps_by_clock
from strandline.engine.idleness.by_records import steps_by_records
from strandline.engine.idleness.received import Interval, channels_of
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import SourceState
from strandline.engine.idleness.valve import Valve
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec


class Source:
    """The channels of a pipeline with idleness.

    Attributes:
        rules: when they go idle.
    """

    def __init__(self, spec: PipelineSpec, axis: Axis, rules: IdlenessRules | None = None) -> None:
        """Prepare for a pipeline with ticks, or for one of two inputs with `rules` of its own."""
        self.rules = rules or IdlenessRules.of(spec, axis)

    def advance(
        self, carried: SourceState, activity: Activity, until_ms: int
    ) -> tuple[pd.DataFrame, SourceState]:
        """Add a day's activity and run the ticks before an instant; the steps and the new state.

        All activity must have arrived before that instant, and not before the previous one.
        """
        interval = Interval.of(carried, activity, until_ms, self.rules)
        steps_of = steps_by_records if self.rules.lag_ms is None else steps_by_clock
        steps, state = steps_of(self.rules, interval)
        return steps, replace(state, until_ms=until_ms)

    def advance_days(
        self, carried: SourceState, activity: Activity, days: Iterable[date], horizon_ms: int
    ) -> Iterator[tuple[date, pd.DataFrame, SourceState]]:
        """Add the activity of some days in order; of each day the steps and the state after it.

        The ticks of silent days belong to the next day that has activity.
        """
        for day in sorted(days):
            until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
            steps, carried = self.advance(carried, activity.of(day), until_ms)
            yield day, steps.assign(arrival_date=day), carried

    def at_end(self, carried: SourceState) -> tuple[tuple[int, int], ...]:
        """(rank, watermark) of each advance that the end of the input would cause at a state.

        Empty for an idle source of splits: Flink drops its last watermark.
        """
        if self.rules.splits:
            return () if carried.says_idle else ((TICK_RANK, MAX_WATERMARK),)
        if not carried.channels:
            return ()
        if self.rules.lag_ms is not None:
            active = [i for i, channel in enumerate(carried.channels) if channel.active]
            return ((TICK_RANK + max(active, default=0), MAX_WATERMARK),)
        valve = Valve(channels_of(carried.channels, carried))
        return tuple((TICK_RANK + channel, value) for channel, value in valve.end())
