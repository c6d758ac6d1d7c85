"""The history of a pipeline: everything observed below a horizon, in the form that a run uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.days_to_read import DaysToRead
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.engine.records.days import on_days
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.timeline import CellQuery, Timeline
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.by_steps import ClockCrossings
from strandline.engine.watermark.channels import probe_order, with_ends
from strandline.engine.watermark.crossings import Crossings
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    day_of,
    last_day_before,
    midnight_of,
)
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class History:
    """Everything observed of a pipeline below a horizon.

    Attributes:
        spec: the pipeline.
        axis: the axis of instants.
        timeline: the observations of the arrival days below the horizon.
        crossings: when the combined watermark reached (crossed) thresholds.
        upstream: the pipeline whose watermark is used, if the records are results of its windows.
    """

    spec: PipelineSpec
    axis: Axis
    timeline: Timeline
    crossings: Crossings
    upstream: Upstream | None = None

    @property
    def of_sides(self) -> Mapping[str, History]:
        """The history of each source by the name of its side; of a single source by the name ""."""
        return {"": self}

    @cached_property
    def grid(self) -> Grid:
        """The grid of the pipeline's windows."""
        return Grid.of(self.spec)

    @cached_property
    def days(self) -> DaysToRead:
        """The arrival days, and which of them a query has to read."""
        return DaysToRead(self.timeline, self.spec)

    def known(self, records: DataFrame, horizon_ms: int, days: Collection[date]) -> DataFrame:
        """The well-formed records of some arrival days that arrived before a horizon.

        A filter that would exclude nothing, by the observations, is left out: testing every record
        of the history for every way of being malformed costs half as much as a plain aggregation.

        Args:
            records: the landing as `read_records` reads it, at most the days of `DaysToRead`.
            horizon_ms: the horizon.
            days: the arrival days to read.
        """
        chosen = self.of_days(records, days)
        bad = self.days.with_malformed
        if bad and (chosen is records or bad & set(days)):
            chosen = chosen.where(F.col(c.REASON).isNull())
        if any(midnight_of(day) + DAY_MS > horizon_ms for day in days):
            chosen = chosen.where(F.col(c.ARRIVAL) < horizon_ms)
        return chosen

    def of_days(self, records: DataFrame, days: Collection[date]) -> DataFrame:
        """The rows of some arrival days.

        Duplicates are marked only where observation has found some.
        """
        among = self.days.rebuilt
        if set(days) & self.days.with_duplicates:
            return with_duplicates(records, self.spec, days, among)
        return on_days(records, days, among)

    def cells_of(self, events: TimeRange, columns: Sequence[str]) -> pd.DataFrame:
        """The cells that may have a record with an event time in a range; some of their columns."""
        slots = events
        if events != EVERYTHING:
            slots = TimeRange(self.grid.newest_starts(events.start_ms), events.end_ms)
        days = self.days.of_events(events)
        return self.timeline.cells(CellQuery(days, slots=slots, columns=columns))

    def advance_days(self, within: TimeRange, clock: Clock) -> list[date]:
        """The days on which the watermark can reach a value of a range."""
        axis, grid = self.axis, self.grid
        first, last = axis.first_of(EVERYTHING.start_ms), axis.never
        if not grid.all_time:
            step_ms = grid.threshold_step_ms
            last_ms = min(within.end_ms + step_ms, MAX_WATERMARK - step_ms)  # the next edge: a long
            edges = grid.edges_around(TimeRange(within.start_ms, last_ms))
            (first, last), _ = self.crossings.reached(edges, clock.horizon_ms)
        days = {*self.days.every, *self.crossings.days_of_steps(clock.horizon_ms)}
        days |= _days_of_next_ticks(axis, days, clock.horizon_ms)
        rising = {
            day
            for day in days
            if axis.first_of(midnight_of(day)) <= last and axis.end_of(day) >= first
        }
        if clock.ends_by_channel:  # it advances to the least of the channels that have not ended
            rising.add(last_day_before(clock.horizon_ms))
        return sorted(rising)

    def in_probe_order(self, records: DataFrame) -> History:
        """The history with its channels in the order in which ticks probe them.

        A channel joins the order with its first record. Of that record, the timeline has only the
        instant. Where several channels joined at one instant, their first records are read, since
        sequence and event time decide. This order matters only for the watermarks that firings
        report.

        Args:
            records: the landing as `read_records` reads it, at least of the days on which a channel
                joined.
        """
        declared = self.spec.source.declared_channels is not None
        if declared or not self.crossings.from_cells:
            return self
        order = probe_order(self.timeline, self.spec, self.axis)
        if not order.tied:
            return self
        instants = sorted(set(order.tied.values()))
        first = (
            self.of_days(records, {day_of(self.axis.arrival_of(at)) for at in instants})
            .where(
                F.col(c.REASON).isNull()
                & F.col(c.INSTANT).isin([self.axis.literal(at) for at in instants])
                & F.col(c.CHANNEL).isin(sorted(order.tied))
            )
            .groupBy(c.CHANNEL)
            .agg(F.min(F.struct(c.INSTANT, c.SEQUENCE, c.TS)).alias("first"))
            .select(c.CHANNEL, f"first.{c.SEQUENCE}", f"first.{c.TS}")
        )
        behind = {str(row[0]): (int(row[1]), int(row[2])) for row in first.collect()}
        return replace(self, crossings=self.crossings.in_order(order.broken_by(behind)))


def _days_of_next_ticks(axis: Axis, days: Collection[date], horizon_ms: int) -> set[date]:
    """The days of the first ticks after some days, before a horizon; none without ticks."""
    if axis.ticks is None:
        return set()
    ticks = (axis.ticks.after(midnight_of(day) + DAY_MS - 1) for day in days)
    return {day_of(tick) for tick in ticks if tick < horizon_ms}


@dataclass(frozen=True)
class Upstream:
    """The pipeline whose results are the records of another one.

    Attributes:
        records: its landing as `read_records` reads it, at least of the days of its history.
        history: its history below the horizon, with its channels in probe order.
    """

    records: DataFrame
    history: History


def history_of(timeline: Timeline, spec: PipelineSpec, axis: Axis) -> History:
    """The history of a timeline whose channels cannot go idle."""
    order = probe_order(timeline, spec, axis)
    crossings: Crossings
    if spec.watermark.goes_by_the_clock:
        crossings = ClockCrossings.of(spec, axis, order)
    else:
        crossings = RecordCrossings(with_ends(timeline, spec, axis), spec, axis, order=order)
    return History(spec, axis, timeline, crossings)
