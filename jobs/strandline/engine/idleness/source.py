"""The combined watermark where channels can go idle, day by day.

A few rows of a channel's records suffice: on which tick a new record became visible, and how long
the channel had been silent before. A small state is carried from day to day.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

import pandas as pd
from pyspark.sql import DataFrame

from strandline.engine.idleness.activity import SILENCE, Activity, observe_activity
from strandline.engine.idleness.by_clock import steps_by_clock
from strandline.engine.idleness.by_records import steps_by_records
from strandline.engine.idleness.received import Interval, channels_of
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import SourceState
from strandline.engine.idleness.valve import Valve
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.engine.records.days import on_days
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec


class WatermarkSource(ABC):
    """The source of a combined watermark with steps: the channels of one table, or of two.

    Attributes:
        axis: the axis of the steps' instants.
        silence: the activity of a day without a record, for each table.
        ticks_a_day: the largest number of rows of activity of a channel on a day; None: no limit.
    """

    axis: Axis
    silence: tuple[Activity, ...] = (SILENCE,)
    ticks_a_day: int | None = None

    @abstractmethod
    def at_the_start(self) -> SourceState:
        """The state before any tick."""

    @abstractmethod
    def observe(
        self, records: Mapping[str, DataFrame], days: Collection[date], among: Iterable[date]
    ) -> tuple[Activity, ...]:
        """The activity on some days, by table.

        Args:
            records: the well-formed records by table.
            days: the days.
            among: all days of the records.
        """

    @abstractmethod
    def advance(
        self, carried: SourceState, activities: Sequence[Activity], until_ms: int
    ) -> tuple[pd.DataFrame, SourceState]:
        """Add a day's activity and run the ticks before an instant.

        All activity must have arrived before this instant, and not before the previous one.

        Returns:
            The steps of the watermark (`STEP_COLUMNS`), and the state at the instant.
        """

    @abstractmethod
    def at_end(self, carried: SourceState) -> tuple[tuple[int, int], ...]:
        """(rank, watermark) of each advance that the end of the input would cause in a state.

        There is none for an idle source of splits: Flink drops its last watermark.
        """

    def advance_days(
        self,
        carried: SourceState,
        activities: Sequence[Activity],
        days: Iterable[date],
        horizon_ms: int,
    ) -> Iterator[tuple[date, pd.DataFrame, SourceState]]:
        """Add the activity of some days in order; yield each day, its steps, the state after it.

        The ticks of silent days belong to the next day that has activity.
        """
        for day in sorted(days):
            until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
            steps, carried = self.advance(carried, [one.of(day) for one in activities], until_ms)
            yield day, steps.assign(arrival_date=day), carried


class Source(WatermarkSource):
    """The channels (source partitions) of one table.

    Attributes:
        rules: the idleness settings of the channels.
    """

    def __init__(self, spec: PipelineSpec, axis: Axis) -> None:
        """Prepare for a pipeline, or for one of two inputs."""
        self.spec, self.axis, self.rules = spec, axis, IdlenessRules.of(spec, axis)
        self.ticks_a_day = DAY_MS // self.rules.ticks.interval_ms

    def at_the_start(self) -> SourceState:
        """See `WatermarkSource`."""
        return SourceState.at_the_start(self.spec, self.axis)

    def observe(
        self, records: Mapping[str, DataFrame], days: Collection[date], among: Iterable[date]
    ) -> tuple[Activity, ...]:
        """See `WatermarkSource`."""
        (rows,) = records.values()
        return (observe_activity(on_days(rows, days, among), self.spec, self.rules),)

    def advance(
        self, carried: SourceState, activities: Sequence[Activity], until_ms: int
    ) -> tuple[pd.DataFrame, SourceState]:
        """See `WatermarkSource`."""
        (activity,) = activities
        interval = Interval.of(carried, activity, until_ms, self.rules)
        steps_of = steps_by_records if self.rules.lag_ms is None else steps_by_clock
        steps, state = steps_of(self.rules, interval)
        return steps, replace(state, until_ms=until_ms)

    def at_end(self, carried: SourceState) -> tuple[tuple[int, int], ...]:
        """See `WatermarkSource`."""
        if self.rules.splits:
            return () if carried.says_idle else ((TICK_RANK, MAX_WATERMARK),)
        if not carried.channels:
            return ()
        if self.rules.lag_ms is not None:
            active = [i for i, channel in enumerate(carried.channels) if channel.active]
            return ((TICK_RANK + max(active, default=0), MAX_WATERMARK),)
        channels = [(carried.channels, len(carried.channels))]
        valve = Valve(channels_of(channels, carried.combined_ms))
        return tuple((TICK_RANK + channel, value) for channel, value in valve.end())
