"""The watermark's values where the records of each channel decide about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, reduce
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import computed, from_arrow, long, union_by_name, up_to_here
from strandline.engine.past.history import History
from strandline.engine.past.known_records import known_records
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import first_of, tick_after
from strandline.engine.values.across_days import CARRIED, carried
from strandline.engine.values.between_thresholds import first_reaching
from strandline.engine.values.emissions import answered, with_probes
from strandline.engine.watermark.retired import ends_of
from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Ticks

_AFTER_ALL = 2**60
"""The rank of the end of a part of a day: behind all that is seen from its instant on."""
_STOOD = "_strandline_stood_ms"
_PART = "_strandline_part"
_NUMBER = "_strandline_number"
_BEFORE = "_strandline_before"


@dataclass(frozen=True)
class RecordEmissions:
    """What the channels emit on some days by their records.

    Attributes:
        offers: ARRIVAL_DAY, CHANNEL, SEEN_FROM, RANK, CANDIDATE. A day's rows begin with what
            the days before it have emitted.
        history: the channels, their order, and when each joined.
        clock: what is known.
        days: the days.
        floors: (instant, watermark): what the combined watermark does not fall below after it. For
            discovered channels: its value just before each of them joined.
    """

    offers: DataFrame
    history: History
    clock: Clock
    days: Sequence[date]
    floors: tuple[tuple[int, int], ...] = ()

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the combined WATERMARK at their position: see `Emissions.at`.

        It is the least of where the channels stand. As none of them falls, that is the least of
        where each stood just before anything that it emits later, or before the end.
        """
        axis = self.history.axis
        from_last = (F.desc(c.SEEN_FROM), F.desc(c.RANK))
        later = up_to_here(Window.partitionBy(c.ARRIVAL_DAY, _PART).orderBy(*from_last))
        floor = reduce(
            lambda chain, step: F.when(
                F.col(c.SEEN_FROM) > axis.literal(step[0]), long(step[1])
            ).otherwise(chain),
            self.floors,
            F.lit(MIN_WATERMARK),
        )
        joined_before = [
            (F.col(c.ARRIVAL_DAY) == F.lit(self._day_of(at)))
            & (F.col(c.SEEN_FROM) > axis.literal(at))
            for at in self._joins
        ]
        number = sum((joined.cast("int") for joined in joined_before), F.lit(0))
        stood = self._stood.drop(c.CHANNEL, c.CANDIDATE)
        rows = with_probes(stood, probes).withColumn(_PART, number)
        watermark = F.greatest(F.min(_STOOD).over(later), floor)
        return answered(rows.withColumn(c.WATERMARK, watermark), probes)

    @cached_property
    def _stood(self) -> DataFrame:
        """The offers, and the ends of parts of days, with where their channel STOOD just before."""
        before = (
            Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL)
            .orderBy(c.SEEN_FROM, c.RANK)
            .rowsBetween(Window.unboundedPreceding, -1)
        )
        rows = union_by_name(self.offers, self._ends_of_parts())
        stood = F.coalesce(F.max(c.CANDIDATE).over(before), F.lit(MIN_WATERMARK))
        return rows.withColumn(_STOOD, stood)

    def _ends_of_parts(self) -> DataFrame:
        """The ends of a day's parts, for each channel that takes part in them.

        A day is one part; where channels join on it, one ends as each of them does. Those that
        join on a later day take no part in it.
        """
        axis, order = self.history.axis, self.history.crossings
        ends = [
            (day, channel, end)
            for day in self.days
            for end in [*(at for at in self._joins if self._day_of(at) == day), axis.never]
            for channel, joined in zip(order.channels, order.joined, strict=True)
            if joined < min(end, axis.first_of(midnight_of(day) + DAY_MS))
        ]
        return from_arrow(
            self.offers.sparkSession,
            pa.table(
                {
                    c.ARRIVAL_DAY: pa.array([day for day, _, _ in ends], pa.date32()),
                    c.CHANNEL: pa.array([channel for _, channel, _ in ends], pa.string()),
                    c.SEEN_FROM: pa.array([end for _, _, end in ends], axis.kind),
                    c.RANK: pa.array([_AFTER_ALL] * len(ends), pa.int64()),
                }
            ),
        )

    @cached_property
    def _joins(self) -> list[int]:
        """The instants at which channels join on the days."""
        days = {*self.days}
        return sorted(at for at in {*self.history.crossings.joined} if self._day_of(at) in days)

    def _day_of(self, instant: int) -> date | None:
        """The arrival day of an instant; None: a declared channel has always taken part."""
        always = instant <= -self.history.axis.never
        return None if always else day_of(self.history.axis.arrival_of(instant))

    def at_hand(self) -> RecordEmissions:
        """The same, its offers computed."""
        return replace(self, offers=computed(self.offers))

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct thresholds with where they are reached: see `Emissions.crossings`."""
        reached = first_reaching(thresholds, self._rises(), self.history, self.clock)
        if not self.clock.closes_now or self.history.spec.watermark.combine == "splits":
            return reached
        # the channels end one after the other: the last one that is behind decides
        axis = self.history.axis
        emitted = self.offers.where(F.col(c.SEEN_FROM) < axis.literal(axis.end))
        largest = {
            str(row[0]): int(row[1])
            for row in emitted.groupBy(c.CHANNEL).agg(F.max(c.CANDIDATE)).collect()
        }
        behind = [
            F.when(F.col(c.THRESHOLD) > largest.get(channel, MIN_WATERMARK), number)
            for number, channel in enumerate(self.history.crossings.channels)
        ]
        at_end = F.array_max(F.array(*behind).cast("array<bigint>"))
        never = F.col(c.SEEN_FROM) == axis.literal(axis.never)
        return reached.withColumn(c.RANK, F.when(never, at_end).otherwise(F.col(c.RANK)))

    def _rises(self) -> DataFrame:
        """Where the combined watermark rises on these days: SEEN_FROM, RANK, WATERMARK."""
        axis = self.history.axis
        number = F.col(c.RANK).cast("bigint")
        if self.history.spec.watermark.combine == "splits":  # all of a moment are merged at once
            number = F.when(number > CARRIED, long(ALL_SPLITS)).otherwise(number)
        emitted = self.offers.select(
            c.ARRIVAL_DAY, c.SEEN_FROM, number.alias(c.RANK), number.alias(_NUMBER)
        )
        over = first_of(axis, F.unix_date(c.ARRIVAL_DAY).cast("bigint") * DAY_MS + DAY_MS)
        # what later days' arrivals go into is given with them
        own = F.col(c.SEEN_FROM) < over + axis.literal(axis.known_below(0))
        day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, _NUMBER)
        before = F.coalesce(F.lag(c.WATERMARK).over(day), F.lit(MIN_WATERMARK))
        return (
            self.at(emitted.distinct())
            .withColumn(_BEFORE, before)
            .where((F.col(_NUMBER) > CARRIED) & (F.col(c.WATERMARK) > F.col(_BEFORE)) & own)
            .select(c.SEEN_FROM, F.col(_NUMBER).alias(c.RANK), c.WATERMARK)
        )


def record_emissions(
    spark: SparkSession, records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> RecordEmissions:
    """The emissions of some arrival days: see `emissions`."""
    plain = _own_and_carried(spark, records, history, clock, days)
    channels, joined = history.crossings.channels, history.crossings.joined
    if clock.closes_now and not channels and history.spec.watermark.combine == "splits":
        # a source of splits ends by itself; a valve needs a channel that the end comes through
        return replace(plain, floors=((history.axis.end - 1, MAX_WATERMARK),))
    if history.spec.source.declared_channels is not None or len(joined) < 2:
        return plain
    axis = history.axis
    joins = sorted(set(joined[1:]))
    join_days = [day_of(axis.arrival_of(instant)) for instant in joins]
    probes = from_arrow(
        spark,
        pa.table(
            {
                c.ARRIVAL_DAY: pa.array(join_days, pa.date32()),
                c.SEEN_FROM: pa.array(joins, axis.kind),
                c.RANK: pa.array([AFTER_CHANNELS] * len(joins), pa.int64()),
            }
        ),
    )
    at_joins = _own_and_carried(spark, records, history, clock, sorted(set(join_days))).at(probes)
    values = {
        int(row[0]): int(row[1]) for row in at_joins.select(c.SEEN_FROM, c.WATERMARK).collect()
    }
    floors = zip(joins, accumulate((values[instant] for instant in joins), max), strict=True)
    return replace(plain, floors=tuple(floors))


def _own_and_carried(
    spark: SparkSession, records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> RecordEmissions:
    axis = history.axis
    names = (F.lit(channel) for channel in history.crossings.channels)
    channels = F.array(*names).cast("array<string>")
    own = (
        known_records(records, history, clock.horizon_ms, days)
        .select(
            c.ARRIVAL_DAY,
            c.CHANNEL,
            _seen_from(axis).alias(c.SEEN_FROM),
            c.CANDIDATE,
        )
        .where(F.col(c.CANDIDATE).isNotNull())
        .unionByName(_ends(spark, history, days))
        .where(F.col(c.SEEN_FROM) < axis.literal(axis.known_below(clock.horizon_ms)))
        .groupBy(c.ARRIVAL_DAY, c.CHANNEL, c.SEEN_FROM)
        .agg(F.max(c.CANDIDATE).alias(c.CANDIDATE))
        .withColumn(c.RANK, F.array_position(channels, F.col(c.CHANNEL)) - 1)
    )
    offers = own.unionByName(carried(spark, history, clock, days))
    return RecordEmissions(offers, history, clock, days)


def _ends(spark: SparkSession, history: History, days: Sequence[date]) -> DataFrame:
    """What the channels that end on some days offer by that."""
    axis, asked = history.axis, {*days}
    ends = [end for end in ends_of(history.spec, axis) if end.day in asked]
    return from_arrow(
        spark,
        pa.table(
            {
                c.ARRIVAL_DAY: pa.array([end.day for end in ends], pa.date32()),
                c.CHANNEL: pa.array([end.channel for end in ends], pa.string()),
                c.SEEN_FROM: pa.array([end.seen_from for end in ends], axis.kind),
                c.CANDIDATE: pa.array([MAX_WATERMARK] * len(ends), pa.int64()),
            }
        ),
    )


def _seen_from(axis: Axis) -> Column:
    """The set form of `Axis.all_seen_from`."""
    instant = F.col(c.INSTANT)
    if axis.interval_ms is None:
        return instant + 1
    if axis.interval_ms == 0:
        return F.lit(axis.literal(axis.never))
    return tick_after(instant, Ticks(axis.start_ms, axis.interval_ms))
