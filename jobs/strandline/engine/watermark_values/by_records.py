"""The values of the watermark where channels cannot go idle, so that their records determine it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import accumulate

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import before_here, first_of_cases, long, small_table
from strandline.engine.history.history import History
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import first_of, tick_after
from strandline.engine.watermark.channels import ProbeOrder, ends_of
from strandline.engine.watermark_values.across_days import carried
from strandline.engine.watermark_values.emissions import CARRIED, UNTIL, Emissions
from strandline.model.intervals import DAY_MS, day_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Ticks

_AFTER_ALL = 2**60
"""The rank of the end of a part of a day: after every event of its instant."""
_PREVIOUS = "_strandline_previous_ms"
_PART = "_strandline_part"
_BEFORE = "_strandline_before"


@dataclass(frozen=True)
class _Offers:
    """The watermarks that channels emit on some days, each by itself.

    Attributes:
        rows: ARRIVAL_DAY, CHANNEL, SEEN_FROM, RANK, CANDIDATE (the watermark). A day's first rows
            are the watermarks that it begins with: see `across_days`.
        history: everything observed below the horizon.
        order: the channels in probe order, and when each joined.
        days: the days.
    """

    rows: DataFrame
    history: History
    order: ProbeOrder
    days: Sequence[date]

    def combined(self, floors: Sequence[tuple[int, int]] = ()) -> DataFrame:
        """The rows of `Emissions`: the advances of the combined watermark.

        The combined watermark is the minimum over the channels. A channel's watermark never
        decreases, so it is enough to compare each channel's value just before its next offer, or
        before the end of the day.

        Args:
            floors: (instant, watermark): lower bounds of the combined watermark from an instant on;
                for discovered channels, its value just before each of them joined.
        """
        axis, splits = self.history.axis, self.history.spec.watermark.combine == "splits"
        from_last = (F.desc(c.SEEN_FROM), F.desc(c.RANK))
        later = Window.partitionBy(c.ARRIVAL_DAY, _PART).orderBy(*from_last)
        least = F.min(_PREVIOUS).over(before_here(later))
        rank = F.col(c.RANK).cast("bigint")
        if splits:  # all advances of one instant are one advance
            rank = F.when(rank > CARRIED, long(ALL_SPLITS)).otherwise(rank)
        over = first_of(axis, F.unix_date(c.ARRIVAL_DAY).cast("bigint") * DAY_MS + DAY_MS)
        at = F.col(c.SEEN_FROM)
        # advances after the end of a day are rows of later days
        own = (at < over + axis.literal(axis.known_below(0))) | (at >= axis.literal(axis.end))
        cases = ((at > axis.literal(since), long(value)) for since, value in reversed(floors))
        floor = first_of_cases(cases, long(MIN_WATERMARK))
        of_day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, c.RANK)
        before = F.max(c.CANDIDATE).over(before_here(of_day))
        return (
            self._with_previous.withColumn(_PART, self._joined_before())
            .withColumn(c.CANDIDATE, least)
            .where((F.col(c.RANK) < _AFTER_ALL) & own)
            .withColumns({c.CANDIDATE: F.greatest(c.CANDIDATE, floor), c.RANK: rank})
            .withColumn(_BEFORE, F.coalesce(before, long(MIN_WATERMARK)))
            .where(F.col(c.CANDIDATE) > F.col(_BEFORE))
            .select(c.ARRIVAL_DAY, c.SEEN_FROM, at.alias(UNTIL), c.RANK, c.CANDIDATE)
        )

    def _joined_before(self) -> Column:
        """The number of channels that have joined before a position, on its day."""
        axis = self.history.axis
        joined = (
            (F.col(c.ARRIVAL_DAY) == F.lit(self._day_of(at)))
            & (F.col(c.SEEN_FROM) > axis.literal(at))
            for at in self._joins
        )
        return sum((one.cast("int") for one in joined), F.lit(0))

    @property
    def _with_previous(self) -> DataFrame:
        """The offers, and the ends of the parts of days, with the channel's watermark before each.

        It is the column PREVIOUS. Only offers above it are included.
        """
        in_order = Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL).orderBy(c.SEEN_FROM, c.RANK)
        before = before_here(in_order)
        rows = self.rows.unionByName(self._ends_of_parts(), allowMissingColumns=True)
        previous = F.coalesce(F.max(c.CANDIDATE).over(before), F.lit(MIN_WATERMARK))
        offered = F.col(c.CANDIDATE)
        return rows.withColumn(_PREVIOUS, previous).where(
            offered.isNull() | (offered > F.col(_PREVIOUS))
        )

    def _ends_of_parts(self) -> DataFrame:
        """The ends of a day's parts, for each channel that has joined by then.

        A day on which no channel joins is one part; each channel that joins on it begins another
        part. A channel that joins on a later day is in none.
        """
        axis, order = self.history.axis, self.order
        ends = [
            (day, channel, end)
            for day in self.days
            for end in [*(at for at in self._joins if self._day_of(at) == day), axis.never]
            for channel, joined in zip(order.channels, order.joined, strict=True)
            if joined < min(end, axis.end_of(day))
        ]
        columns = {
            c.ARRIVAL_DAY: [day for day, _, _ in ends],
            c.CHANNEL: [channel for _, channel, _ in ends],
            c.SEEN_FROM: axis.column([end for _, _, end in ends]),
            c.RANK: [_AFTER_ALL] * len(ends),
        }
        return small_table(self.rows.sparkSession, columns)

    @cached_property
    def _joins(self) -> list[int]:
        """The instants at which channels join on these days."""
        days, joined = {*self.days}, {*self.order.joined}
        return sorted(at for at in joined if self._day_of(at) in days)

    def _day_of(self, instant: int) -> date | None:
        """The arrival day of an instant; None: the instant is the start of a declared channel."""
        always = instant <= -self.history.axis.never
        return None if always else day_of(self.history.axis.arrival_of(instant))


def record_emissions(
    records: DataFrame, history: History, order: ProbeOrder, clock: Clock, days: Sequence[date]
) -> Emissions:
    """The emissions of some arrival days: see `emissions`."""
    is_of_splits = history.spec.watermark.combine == "splits"
    if clock.ends_by_channel and is_of_splits and not order.channels:
        # a source of splits ends by itself; a valve needs a channel that the end comes through
        return Emissions(_end_of_source(records.sparkSession, history, days), history, clock)
    offers = _own_and_carried(records, history, order, clock, days)
    return Emissions(offers.combined(_floors(records, history, order, clock)), history, clock)


def _floors(
    records: DataFrame, history: History, order: ProbeOrder, clock: Clock
) -> list[tuple[int, int]]:
    """The combined watermark just before each discovered channel joined, as (instant, watermark).

    The combined watermark does not decrease as a channel joins. Declared channels, and the first
    discovered one, have no entry.
    """
    axis, joins = history.axis, sorted({*order.joined[1:]})
    if history.spec.source.declared_channels is not None or not joins:
        return []
    days = [day_of(axis.arrival_of(instant)) for instant in joins]
    probes = {
        c.ARRIVAL_DAY: days,
        c.SEEN_FROM: axis.column(joins),
        c.RANK: [AFTER_CHANNELS] * len(joins),
    }
    offers = _own_and_carried(records, history, order, clock, sorted({*days}))
    emitted = Emissions(offers.combined(), history, clock)
    at_joins = emitted.at(small_table(records.sparkSession, probes))
    rows = at_joins.select(c.SEEN_FROM, c.WATERMARK).collect()
    values = {int(instant): int(watermark_ms) for instant, watermark_ms in rows}
    highest = accumulate((values[instant] for instant in joins), max)
    return [*zip(joins, highest, strict=True)]


def _end_of_source(spark: SparkSession, history: History, days: Sequence[date]) -> DataFrame:
    """The rows of `Emissions` for a source of splits with no records: only its end."""
    axis, count = history.axis, len(days)
    ends = axis.column([axis.end] * count)
    columns = {
        c.ARRIVAL_DAY: days,
        c.SEEN_FROM: ends,
        UNTIL: ends,
        c.RANK: [ALL_SPLITS] * count,
        c.CANDIDATE: [MAX_WATERMARK] * count,
    }
    return small_table(spark, columns)


def _own_and_carried(
    records: DataFrame, history: History, order: ProbeOrder, clock: Clock, days: Sequence[date]
) -> _Offers:
    spark, axis = records.sparkSession, history.axis
    names = (F.lit(channel) for channel in order.channels)
    channels = F.array(*names).cast("array<string>")
    known = history.known(records, clock.horizon_ms, days)
    if history.spec.watermark.candidate is None:  # else every record offers one
        known = known.where(F.col(c.CANDIDATE).isNotNull())
    own = (
        known.where(_is_seen_before(axis, clock.horizon_ms))
        .select(
            c.ARRIVAL_DAY,
            c.CHANNEL,
            _seen_from(axis).alias(c.SEEN_FROM),
            c.CANDIDATE,
        )
        .unionByName(_ends(spark, history, clock, days))
        .groupBy(c.ARRIVAL_DAY, c.CHANNEL, c.SEEN_FROM)
        .agg(F.max(c.CANDIDATE).alias(c.CANDIDATE))
        .withColumn(c.RANK, F.array_position(channels, F.col(c.CHANNEL)) - 1)
    )
    offers = own.unionByName(carried(spark, history, order, clock, days))
    return _Offers(offers, history, order, days)


def _ends(spark: SparkSession, history: History, clock: Clock, days: Sequence[date]) -> DataFrame:
    """The MAX_WATERMARKs of channels that are retired on some days, before the horizon."""
    axis, asked = history.axis, {*days}
    known_below = axis.known_below(clock.horizon_ms)
    ends = [
        end
        for end in ends_of(history.spec, axis)
        if end.day in asked and end.seen_from < known_below
    ]
    columns = {
        c.ARRIVAL_DAY: [end.day for end in ends],
        c.CHANNEL: [end.channel for end in ends],
        c.SEEN_FROM: axis.column([end.seen_from for end in ends]),
        c.CANDIDATE: [MAX_WATERMARK] * len(ends),
    }
    return small_table(spark, columns)


def _seen_from(axis: Axis) -> Column:
    """The column form of `Axis.all_seen_from`."""
    instant = F.col(c.INSTANT)
    if axis.interval_ms is None:
        return instant + 1
    if axis.interval_ms == 0:
        return F.lit(axis.literal(axis.never))
    return tick_after(instant, Ticks(axis.start_ms, axis.interval_ms))


def _is_seen_before(axis: Axis, horizon_ms: int) -> Column:
    """Whether the watermark that a record offers is emitted before a horizon.

    This is decided by the arrival alone: engines test a filter before they compute `_seen_from`.
    """
    if axis.interval_ms is None:
        return F.lit(True)
    if axis.interval_ms == 0:
        return F.lit(False)
    return F.col(c.ARRIVAL) < axis.last_tick_before(horizon_ms)
