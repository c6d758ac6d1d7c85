"""The observation of arrivals: cells, the watermark's steps if channels go idle, and violations.

A *step* is an advance of the combined watermark: its position and its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import before_here, collected, small_table
from strandline.engine.history.history import History, history_of
from strandline.engine.idleness.source import Source, WatermarkSource
from strandline.engine.idleness.state import SourceState
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Observed, Timeline, concatenated
from strandline.engine.watermark.by_steps import KnownSteps, StepCrossings
from strandline.engine.watermark.cells import observe
from strandline.engine.watermark.channels import probe_order
from strandline.spec.pipeline import PipelineSpec

_MOST_ROWS = 4_000_000
"""The largest number of rows of activity that one query collects to the driver."""


@dataclass(frozen=True)
class ObservedDay:
    """The effect of an arrival day on the combined watermark, where channels can go idle.

    Attributes:
        day: the day.
        steps: the steps that are stored with the day; columns `STEP_COLUMNS`.
        carried: the state of the source at the end of the day, or at an earlier horizon.
        name: the name of the source; empty: it is the only one.
    """

    day: date
    steps: pd.DataFrame
    carried: SourceState
    name: str = ""


def cells_of(records: DataFrame, spec: PipelineSpec, axis: Axis) -> pd.DataFrame:
    """The cells of some records: counts by day, channel, window and threshold; see `observe`."""
    return collected(observe(records, spec, axis))


def observe_days(
    source: WatermarkSource,
    records: Mapping[str, DataFrame],
    fresh: Timeline,
    known: KnownSteps,
    horizon_ms: int,
    *,
    name: str = "",
) -> Iterator[ObservedDay]:
    """The effect of some arrival days on the combined watermark, in the order of the days.

    Args:
        source: the channels, with idleness in effect.
        records: the records of these days before the horizon by table, including malformed ones.
        fresh: the observations of the records.
        known: the steps of the days before.
        horizon_ms: the horizon.
        name: the name of the source, where there are two that have a watermark each.
    """
    carried, most = known.carried, source.ticks_a_day
    if len(fresh.malformed):
        well_formed = F.col(c.REASON).isNull()
        records = {of: rows.where(well_formed) for of, rows in records.items()}
    if most is not None:
        most *= max(1, fresh.channel_days["channel"].nunique())
    counts = fresh.day_map.groupby("arrival_date")["records"].sum()
    for days in in_batches(counts.clip(upper=most)):
        activities = source.observe(records, days, counts.index)
        for day, steps, after in source.advance_days(carried, activities, days, horizon_ms):
            carried = after
            yield ObservedDay(day, steps, after, name)


def assemble_history(
    timeline: Timeline,
    spec: PipelineSpec,
    source: WatermarkSource,
    known: KnownSteps | None = None,
    days: Sequence[ObservedDay] = (),
    *,
    horizon_ms: int,
) -> History:
    """The history of a timeline; with idleness, from the steps of known and of new days."""
    if known is None:
        return history_of(timeline, spec, source.axis)
    carried = days[-1].carried if days else known.carried
    # the ticks since the last day that has an arrival
    silent, now = source.advance(carried, source.silence, horizon_ms)
    states = (*(one.carried for one in days), now)
    crossings = StepCrossings(
        known.steps,
        concatenated(*(one.steps for one in days), silent),
        source.axis,
        horizon_ms,
        source.at_end(now),
        (*known.changes, *chain.from_iterable(one.changes for one in states)),
        order=probe_order(timeline, spec, source.axis, tuple(one.name for one in now.channels)),
    )
    return History(spec, source.axis, timeline, crossings)


def observed_history(
    records: DataFrame,
    spec: PipelineSpec,
    axis: Axis,
    horizon_ms: int,
    cells: Timeline | None = None,
) -> History:
    """The history of records that arrived before a horizon, where nothing was observed before.

    Args:
        records: the records.
        spec: the pipeline.
        axis: the axis of instants.
        horizon_ms: the horizon.
        cells: the observations of the records; None: all of them are observed now.
    """
    source = Source(spec, axis)
    cells = cells or Observed(cells_of(records, spec, axis))
    if not spec.watermark.idleness_in_effect:
        return assemble_history(cells, spec, source, horizon_ms=horizon_ms)
    known = KnownSteps.none(source)
    days = list(observe_days(source, {"": records}, cells, known, horizon_ms))
    return assemble_history(cells, spec, source, known, days, horizon_ms=horizon_ms)


def in_batches(rows: pd.Series[int]) -> Iterator[list[date]]:
    """Days, ascending, in batches of at most `_MOST_ROWS` rows; a day with more is a batch alone.

    Args:
        rows: the number of rows of each day, by day.
    """
    batch: list[date] = []
    total = 0
    for day, count in sorted(zip(rows.index, rows, strict=True)):
        if batch and total + count > _MOST_ROWS:
            yield batch
            batch, total = [], 0
        batch.append(day)
        total += count
    if batch:
        yield batch


_CARRIED = "_strandline_carried_ms"
"""The largest event time of the record's channel on earlier arrival days."""
_LARGEST = "_strandline_so_far_ms"


def violations(records: DataFrame, history: History) -> DataFrame:
    """The number of records behind an earlier one of their channel, by arrival day and channel.

    Flink: `AscendingTimestampExtractor#extractAscendingTimestamp`, which calls its handler for each
    record whose event time is below the largest of its channel so far; equality is no violation.
    Records are ordered as they are processed: by arrival, `sequence`, and ascending event time, so
    that ties violate nothing.

    Args:
        records: the landing as `read_records` reads it, of some whole arrival days, or of one up to
            the horizon.
        history: everything observed below the horizon; it has the largest times of earlier days.

    Returns:
        A row for each arrival day and channel with a violation: `arrival_date`, `channel`,
        `violations`, `behind_ms` (the largest distance) and `first_arrival_ms`.
    """
    in_order = Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL).orderBy(c.ARRIVAL, c.SEQUENCE, c.TS)
    carried = _carried(records.sparkSession, history)
    behind = F.greatest(_LARGEST, _CARRIED) - F.col(c.TS)  # null: nothing came before
    return (
        records.where(F.col(c.REASON).isNull())
        .select(c.ARRIVAL_DAY, c.CHANNEL, c.ARRIVAL, c.SEQUENCE, c.TS)
        .withColumn(_LARGEST, F.max(c.TS).over(before_here(in_order)))
        .join(F.broadcast(carried), [c.ARRIVAL_DAY, c.CHANNEL], "left")
        .where(behind > 0)
        .groupBy(F.col(c.ARRIVAL_DAY).alias("arrival_date"), F.col(c.CHANNEL).alias("channel"))
        .agg(
            F.count(F.lit(1)).alias("violations"),
            F.max(behind).alias("behind_ms"),
            F.min(c.ARRIVAL).alias("first_arrival_ms"),
        )
    )


def _carried(spark: SparkSession, history: History) -> DataFrame:
    """The largest event time of each channel before each of its arrival days."""
    days = history.timeline.channel_days
    by_day = days.set_index(["channel", "arrival_date"])["largest_ts_ms"].sort_index()
    earlier = by_day.groupby("channel").transform(lambda largest: largest.cummax().shift())
    known = earlier.dropna().reset_index()
    columns = {
        c.ARRIVAL_DAY: known["arrival_date"],
        c.CHANNEL: known["channel"],
        _CARRIED: known["largest_ts_ms"],
    }
    return small_table(spark, columns)
