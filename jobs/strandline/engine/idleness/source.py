"""The combined watermark where channels can go idle, day by day.

Of a channel's records few rows are enough: on which tick something new became known, and how long
it had been silent before. From one day to the next a small state is carried.
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
    """The channels of a pipeline whose idleness is in effect.

    Attributes:
        rules: by which they go idle.
    """

    def __init__(self, spec: PipelineSpec, axis: Axis, rules: IdlenessRules | None = None) -> None:
        """Prepare for a pipeline with ticks, or for one of two inputs with `rules` of its own."""
        self.rules = rules or IdlenessRules.of(spec, axis)

    def advance(
        self, carried: SourceState, activity: Activity, until_ms: int
    ) -> tuple[pd.DataFrame, SourceState]:
        """Take in a day's activity and run the ticks before an instant: the steps, and the state.

        Everything in the activity arrived before that instant, and not before the last one.
        """
        interval = Interval.of(carried, activity, until_ms, self.rules)
        steps_of = steps_by_records if self.rules.lag_ms is None else steps_by_clock
        steps, state = steps_of(self.rules, interval)
        return steps, replace(state, until_ms=until_ms)

    def advance_days(
        self, carried: SourceState, activity: Activity, days: Iterable[date], horizon_ms: int
    ) -> Iterator[tuple[date, pd.DataFrame, SourceState]]:
        """Take in the activity of some days in their order: each day's steps, and where it ends.

        The ticks of silent days before a day are among its steps.
        """
        for day in sorted(days):
            until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
            steps, carried = self.advance(carried, activity.of(day), until_ms)
            yield day, steps.assign(arrival_date=day), carried

    def at_end(self, carried: SourceState) -> tuple[tuple[int, int], ...]:
        """(rank, watermark) of the advances if the input ended where the state stands.

        Flink drops the last watermark of a source of splits that is idle: there are none.
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
