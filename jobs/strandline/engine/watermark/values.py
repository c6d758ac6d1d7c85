"""The watermark's values: what each channel has emitted, and the combined value at a position.

Telling late from accepted needs no values (see `History.crossings`); they are wanted where a
person or a firing asks for them: at late records and at firings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from itertools import accumulate
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.history import Clock, History
from strandline.engine.known import known_records
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS, Axis
from strandline.engine.records.read import candidate_of, first_of, tick_after
from strandline.engine.watermark.between_thresholds import first_reaching
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Candidate, Ticks

_UNTIL = "_strandline_until"
_HIGHEST = "_strandline_highest_ms"
_BELOW = "_strandline_below_ms"
_CARRIED = -1
"""The rank of what was emitted before a day began: ahead of all channels."""
_NUMBER = "_strandline_number"
_BEFORE = "_strandline_before"


class Emissions(Protocol):
    """What tells the watermark at any position of some days."""

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the combined WATERMARK at their position; MIN_WATERMARK: none yet.

        Args:
            probes: ARRIVAL_DAY, SEEN_FROM (an instant), RANK (the number of the channel whose
                emission at that instant is the last one seen), and whatever else is carried.
        """

    def at_hand(self) -> Emissions:
        """The same, computed now: for who asks more than once."""

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct THRESHOLDs with SEEN_FROM and RANK: when, and by which channel, reached.

        The watermark must reach them on these days, or not before the horizon: then SEEN_FROM is
        never, and RANK is of the channel that reaches it as the input ends there.
        """


@dataclass(frozen=True)
class ClockEmissions:
    """The watermark where ticks alone decide it: every channel offers the same on every tick."""

    history: History
    clock: Clock

    @property
    def _rule(self) -> tuple[Ticks, int]:
        """The ticks, and how far the watermark lags behind them."""
        ticks, watermark = self.history.axis.ticks, self.history.spec.watermark
        if ticks is None or watermark.lag_ms is None:
            msg = f"{watermark.strategy} does not go by ticks"
            raise TypeError(msg)
        return ticks, watermark.lag_ms

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK of the last tick that they see."""
        history, axis = self.history, self.history.axis
        ticks, lag_ms = self._rule
        seen = F.least(F.col(c.SEEN_FROM), F.lit(self.clock.horizon_ms - 1))
        tick = seen - F.pmod(seen - ticks.start_ms, F.lit(ticks.interval_ms))
        # the combined watermark moves with the last of the channels that are there
        joined = reduce(
            Column.__add__, ((tick > at).cast("int") for at in history.joined), F.lit(0)
        )
        unfinished = (F.col(c.SEEN_FROM) == tick) & (F.col(c.RANK) < joined - 1)
        last = F.when(unfinished, tick - ticks.interval_ms).otherwise(tick)
        first = history.clock_starts_after
        value = candidate_of(Candidate(lag_ms), last)
        watermark = F.when(last > first, value).otherwise(F.lit(MIN_WATERMARK))
        if self.clock.closes_now:
            at_end = F.col(c.SEEN_FROM) >= axis.end
            watermark = F.when(at_end, F.lit(MAX_WATERMARK)).otherwise(watermark)
        return probes.withColumn(c.WATERMARK, watermark).drop(c.CHANNEL, c.CANDIDATE, c.RANK)

    def at_hand(self) -> ClockEmissions:
        """Itself: nothing is to be computed before."""
        return self

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct thresholds with the first tick whose watermark reaches them."""
        history, axis = self.history, self.history.axis
        ticks, lag_ms = self._rule
        threshold = F.col(c.THRESHOLD)
        last = END_OF_INSTANTS_MS - lag_ms
        after = F.greatest(
            F.least(threshold, F.lit(last)) + lag_ms - 1, F.lit(history.clock_starts_after)
        )
        tick = tick_after(after, ticks)
        comes = (threshold < last) & (after < self.clock.horizon_ms)
        tick = F.when(comes, F.when(tick < self.clock.horizon_ms, tick))
        seen_from = F.coalesce(tick, F.lit(axis.never))
        joined = [(seen_from > at).cast("bigint") for at in history.joined]
        rank = reduce(Column.__add__, joined, F.lit(-1))
        return (
            thresholds.select(c.THRESHOLD)
            .distinct()
            .withColumns({c.SEEN_FROM: seen_from, c.RANK: rank})
        )


def _with_probes(emitted: DataFrame, probes: DataFrame) -> DataFrame:
    """What is emitted, and the probes, which come after what has their own rank."""
    rank = F.col(c.RANK).cast("bigint") * 2
    asked = probes.drop(c.CHANNEL, c.CANDIDATE).withColumn(c.RANK, rank + 1)
    return emitted.withColumn(c.RANK, rank).unionByName(asked, allowMissingColumns=True)


def _seen() -> WindowSpec:
    """What a probe among what is emitted on its day sees."""
    of_day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, c.RANK)
    return of_day.rowsBetween(Window.unboundedPreceding, Window.currentRow)


@dataclass(frozen=True)
class RecordEmissions:
    """What the channels emit on some days by their records.

    Attributes:
        offers: ARRIVAL_DAY, CHANNEL, SEEN_FROM, RANK, CANDIDATE. A day's rows begin with what
            the days before it have emitted.
        history: the channels, their order, and when each joined.
        clock: what is known.
        floors: (instant, watermark): what the combined watermark does not fall below after it. For
            discovered channels: its value just before each of them joined.
    """

    offers: DataFrame
    history: History
    clock: Clock
    floors: tuple[tuple[int, int], ...] = ()

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the combined WATERMARK at their position: see `Emissions.at`."""
        rows = _with_probes(self.offers, probes)
        axis = self.history.axis
        channels = list(zip(self.history.channels, self.history.joined, strict=True))
        offered = [
            F.when(
                F.col(c.SEEN_FROM) > axis.literal(joined),
                F.coalesce(
                    F.max(F.when(F.col(c.CHANNEL) == channel, F.col(c.CANDIDATE))).over(_seen()),
                    F.lit(MIN_WATERMARK),
                ),
            )
            for channel, joined in channels
        ]
        least = F.array_min(F.array(*offered).cast("array<bigint>"))  # of none: null
        floor = reduce(
            lambda chain, step: F.when(
                F.col(c.SEEN_FROM) > axis.literal(step[0]), step[1]
            ).otherwise(chain),
            self.floors,
            F.lit(MIN_WATERMARK),
        )
        return (
            rows.withColumn(c.WATERMARK, F.greatest(least, floor))
            .where(F.col(c.CHANNEL).isNull())
            .drop(c.CHANNEL, c.CANDIDATE, c.RANK)
        )

    def at_hand(self) -> RecordEmissions:
        """The same, its offers computed."""
        return replace(self, offers=self.offers.localCheckpoint())

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
            for number, channel in enumerate(self.history.channels)
        ]
        at_end = F.array_max(F.array(*behind).cast("array<bigint>"))
        never = F.col(c.SEEN_FROM) == axis.literal(axis.never)
        return reached.withColumn(c.RANK, F.when(never, at_end).otherwise(F.col(c.RANK)))

    def _rises(self) -> DataFrame:
        """Where the combined watermark rises on these days: SEEN_FROM, RANK, WATERMARK."""
        axis = self.history.axis
        number = F.col(c.RANK).cast("bigint")
        if self.history.spec.watermark.combine == "splits":  # all of a moment are merged at once
            number = F.when(number > _CARRIED, F.lit(ALL_SPLITS)).otherwise(number)
        emitted = self.offers.select(
            c.ARRIVAL_DAY, c.SEEN_FROM, number.alias(c.RANK), number.alias(_NUMBER)
        )
        over = first_of(axis, F.unix_date(c.ARRIVAL_DAY).cast("bigint") * DAY_MS + DAY_MS)
        # what later days' arrivals go into is told with them
        own = F.col(c.SEEN_FROM) < over + axis.literal(axis.known_below(0))
        day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, _NUMBER)
        before = F.coalesce(F.lag(c.WATERMARK).over(day), F.lit(MIN_WATERMARK))
        return (
            self.at(emitted.distinct())
            .withColumn(_BEFORE, before)
            .where((F.col(_NUMBER) > _CARRIED) & (F.col(c.WATERMARK) > F.col(_BEFORE)) & own)
            .select(c.SEEN_FROM, F.col(_NUMBER).alias(c.RANK), c.WATERMARK)
        )


@dataclass(frozen=True)
class StepEmissions:
    """The watermark by the steps of the combined one: where channels can go idle.

    Attributes:
        rows: ARRIVAL_DAY, SEEN_FROM, RANK, CANDIDATE (the watermark), _UNTIL. A day's rows begin
            with the last step before it.
        history: knows the steps.
        clock: what is known.
    """

    rows: DataFrame
    history: History
    clock: Clock

    def at_hand(self) -> StepEmissions:
        """Itself: the steps are known."""
        return self

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK of the last step that they see."""
        rows = _with_probes(self.rows, probes)
        step = F.struct(c.CANDIDATE, c.SEEN_FROM, _UNTIL, c.RANK)
        last = F.max(F.when(F.col(c.CANDIDATE).isNotNull(), step)).over(_seen())
        reached = F.col("last." + c.CANDIDATE)
        axis = self.history.axis
        if axis.interval_ms:
            # a run of ticks: the watermark has risen with the clock since its first one
            interval = F.lit(axis.interval_ms)
            first = F.col("last." + c.SEEN_FROM)
            elapsed = F.least(F.col(c.SEEN_FROM), F.col("last." + _UNTIL)) - first
            whole = elapsed - F.pmod(elapsed, interval)
            unfinished = (F.col(c.SEEN_FROM) == first + whole) & (
                F.col(c.RANK) < F.col("last." + c.RANK)
            )
            reached += F.when(unfinished & (whole > 0), whole - interval).otherwise(whole)
        return (
            rows.withColumn("last", last)
            .where(F.col(c.CANDIDATE).isNull())
            .withColumn(c.WATERMARK, F.coalesce(reached, F.lit(MIN_WATERMARK)))
            .drop(c.CHANNEL, c.CANDIDATE, c.RANK, _UNTIL, "last")
        )

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct thresholds with the step that reaches them: see `Emissions.crossings`."""
        axis = self.history.axis
        steps = self.history.known_steps(self.clock.horizon_ms)
        if self.history.spec.watermark.goes_by_the_clock:
            reached = self._in_runs(thresholds)
        else:
            known = self.rows.where(F.col(c.SEEN_FROM) < axis.literal(axis.end))
            rises = known.select(
                c.SEEN_FROM, c.RANK, F.col(c.CANDIDATE).alias(c.WATERMARK)
            ).distinct()
            reached = first_reaching(thresholds, rises, self.history, self.clock)
        if not self.clock.closes_now:
            return reached
        at_end = F.lit(None).cast("bigint")
        for rank, watermark_ms in reversed(steps.at_end):
            at_end = F.when(F.col(c.THRESHOLD) <= watermark_ms, rank).otherwise(at_end)
        never = F.col(c.SEEN_FROM) == axis.literal(axis.never)
        return reached.withColumn(c.RANK, F.when(never, at_end).otherwise(F.col(c.RANK)))

    def _in_runs(self, thresholds: DataFrame) -> DataFrame:
        """The crossings where the steps are runs of ticks: as many as changes of status."""
        axis, steps = self.history.axis, self.history.known_steps(self.clock.horizon_ms).table
        highest = steps["watermark_ms"] + steps["until"] - steps["seen_from"]
        runs = thresholds.sparkSession.createDataFrame(
            pa.table(
                {
                    c.SEEN_FROM: pa.array(steps["seen_from"].tolist(), axis.kind),
                    c.RANK: pa.array(steps["rank"].tolist(), pa.int64()),
                    c.WATERMARK: pa.array(steps["watermark_ms"].tolist(), pa.int64()),
                    _HIGHEST: pa.array(highest.tolist(), pa.int64()),
                    _BELOW: pa.array([MIN_WATERMARK, *highest[:-1]][: len(steps)], pa.int64()),
                }
            )
        )
        threshold, interval = F.col(c.THRESHOLD), F.lit(axis.interval_ms)
        missing = F.greatest(threshold - F.col(c.WATERMARK), F.lit(0))
        ticks = F.ceil(missing / interval).cast("bigint")
        here = (threshold > F.col(_BELOW)) & (threshold <= F.col(_HIGHEST))
        return (
            thresholds.select(c.THRESHOLD)
            .distinct()
            .join(F.broadcast(runs), here, "left")
            .select(
                c.THRESHOLD,
                F.coalesce(
                    F.col(c.SEEN_FROM) + ticks * interval, F.lit(axis.literal(axis.never))
                ).alias(c.SEEN_FROM),
                c.RANK,
            )
        )


def _steps(
    spark: SparkSession, history: History, clock: Clock, days: Sequence[date]
) -> StepEmissions:
    axis, steps = history.axis, history.known_steps(clock.horizon_ms)
    seen = steps.table["seen_from"].to_numpy()
    until = steps.table["until"].to_numpy()
    parts = []
    for day in days:
        start = axis.first_of(midnight_of(day))
        # what a day's last instant emits at once is seen from the next midnight on
        chosen = (until >= start) & (seen <= start + DAY_MS * axis.scale)
        earlier = np.flatnonzero(until < start)
        chosen[earlier[-1:]] = True
        parts.append(steps.table[chosen].assign(day=day))
        if clock.closes_now:
            ends = pd.DataFrame(steps.at_end, columns=["rank", "watermark_ms"])
            parts.append(ends.assign(day=day, seen_from=axis.end, until=axis.end))
    rows = pd.concat(parts, ignore_index=True) if parts else steps.table.assign(day=None)[:0]
    table = pa.table(
        {
            c.ARRIVAL_DAY: pa.array(rows["day"].tolist(), pa.date32()),
            c.SEEN_FROM: pa.array(rows["seen_from"].tolist(), axis.kind),
            _UNTIL: pa.array(rows["until"].tolist(), axis.kind),
            c.RANK: pa.array(rows["rank"].tolist(), pa.int64()),
            c.CANDIDATE: pa.array(rows["watermark_ms"].tolist(), pa.int64()),
        }
    )
    return StepEmissions(spark.createDataFrame(table), history, clock)


def emissions(
    spark: SparkSession, records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> Emissions:
    """The emissions of some arrival days.

    Args:
        spark: the session.
        records: the well-formed records, at least of these days and of those on which a
            discovered channel joined.
        history: everything observed below the horizon.
        clock: what is known.
        days: the days at which positions will be asked for.
    """
    if history.steps is not None:
        return _steps(spark, history, clock, days)
    if history.spec.watermark.goes_by_the_clock:
        return ClockEmissions(history, clock)
    plain = _emissions(spark, records, history, clock, days)
    if history.ends_without_channels and clock.closes_now:
        return replace(plain, floors=((history.axis.end - 1, MAX_WATERMARK),))
    if history.spec.source.declared_channels is not None or len(history.joined) < 2:
        return plain
    axis = history.axis
    joins = sorted(set(history.joined[1:]))
    join_days = [day_of(axis.arrival_of(instant)) for instant in joins]
    probes = spark.createDataFrame(
        pa.table(
            {
                c.ARRIVAL_DAY: pa.array(join_days, pa.date32()),
                c.SEEN_FROM: pa.array(joins, axis.kind),
                c.RANK: pa.array([AFTER_CHANNELS] * len(joins), pa.int64()),
            }
        )
    )
    at_joins = _emissions(spark, records, history, clock, sorted(set(join_days))).at(probes)
    values = {
        int(row[0]): int(row[1]) for row in at_joins.select(c.SEEN_FROM, c.WATERMARK).collect()
    }
    floors = zip(joins, accumulate((values[instant] for instant in joins), max), strict=True)
    return replace(plain, floors=tuple(floors))


def _emissions(
    spark: SparkSession, records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> RecordEmissions:
    axis = history.axis
    channels = F.array(*(F.lit(channel) for channel in history.channels)).cast("array<string>")
    own = (
        known_records(records, history, clock.horizon_ms, days)
        .select(
            c.ARRIVAL_DAY,
            c.CHANNEL,
            _seen_from(axis).alias(c.SEEN_FROM),
            c.CANDIDATE,
        )
        .where(F.col(c.CANDIDATE).isNotNull())
        .where(F.col(c.SEEN_FROM) < axis.literal(axis.known_below(clock.horizon_ms)))
        .groupBy(c.ARRIVAL_DAY, c.CHANNEL, c.SEEN_FROM)
        .agg(F.max(c.CANDIDATE).alias(c.CANDIDATE))
        .withColumn(c.RANK, F.array_position(channels, F.col(c.CHANNEL)) - 1)
    )
    return RecordEmissions(own.unionByName(_carried(spark, history, clock, days)), history, clock)


def _carried(
    spark: SparkSession, history: History, clock: Clock, days: Sequence[date]
) -> DataFrame:
    """What earlier days' arrivals offer on each of the days, and what the end of input does."""
    axis = history.axis
    known = axis.known_below(clock.horizon_ms)
    rows: list[tuple[date, str, int, int, int]] = []
    for number, channel in enumerate(history.channels):
        # (seen from, rank, candidate): settled ones by the midnight that ends their day at the
        # latest, pending ones at the first tick that is not before it
        offers: list[tuple[int, int, int]] = []
        of_channel = history.channel_days[history.channel_days["channel"] == channel]
        for day, settled, pending in zip(
            of_channel["arrival_date"],
            of_channel["settled_ms"],
            of_channel["pending_ms"],
            strict=True,
        ):
            midnight = midnight_of(day) + DAY_MS
            if not pd.isna(settled):
                offers.append((axis.first_of(midnight), _CARRIED, int(settled)))
            if not pd.isna(pending) and axis.ticks is not None:
                tick = axis.ticks.after(midnight - 1)
                if tick < known:
                    offers.append((tick, number, int(pending)))
        offers.sort()
        largest = list(accumulate((candidate for _, _, candidate in offers), max))
        for day in days:
            start = axis.first_of(midnight_of(day))
            before = bisect_left(offers, (start, _CARRIED + 1, MIN_WATERMARK))
            if before:
                rows.append((day, channel, start, _CARRIED, largest[before - 1]))
            until = bisect_left(offers, (start + DAY_MS * axis.scale, _CARRIED, MIN_WATERMARK))
            rows += [(day, channel, *offers[i]) for i in range(before, until)]
            if clock.closes_now:
                rows.append((day, channel, axis.end, number, MAX_WATERMARK))
    return spark.createDataFrame(
        pa.table(
            {
                c.ARRIVAL_DAY: pa.array([row[0] for row in rows], pa.date32()),
                c.CHANNEL: pa.array([row[1] for row in rows], pa.string()),
                c.SEEN_FROM: pa.array([row[2] for row in rows], axis.kind),
                c.CANDIDATE: pa.array([row[4] for row in rows], pa.int64()),
                c.RANK: pa.array([row[3] for row in rows], pa.int32()),
            }
        )
    )


def _seen_from(axis: Axis) -> Column:
    """The set form of `Axis.all_seen_from`."""
    instant = F.col(c.INSTANT)
    if axis.interval_ms is None:
        return instant + 1
    if axis.interval_ms == 0:
        return F.lit(axis.literal(axis.never))
    return tick_after(instant, Ticks(axis.start_ms, axis.interval_ms))
