"""The watermark's values where ticks alone decide it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import candidate_of, tick_after
from strandline.engine.watermark.by_clock import ClockCrossings
from strandline.model.intervals import END_OF_INSTANTS_MS
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Candidate, Ticks


@dataclass(frozen=True)
class ClockEmissions:
    """The watermark where ticks alone decide it: every channel offers the same on every tick."""

    ticking: ClockCrossings
    clock: Clock

    @property
    def _rule(self) -> tuple[Ticks, int]:
        """The ticks, and how far the watermark lags behind them."""
        ticks, watermark = self.ticking.axis.ticks, self.ticking.spec.watermark
        if ticks is None or watermark.lag_ms is None:
            msg = f"{watermark.strategy} does not go by ticks"
            raise TypeError(msg)
        return ticks, watermark.lag_ms

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK of the last tick that they see."""
        ticking, axis = self.ticking, self.ticking.axis
        ticks, lag_ms = self._rule
        seen = F.least(F.col(c.SEEN_FROM), F.lit(self.clock.horizon_ms - 1))
        tick = seen - F.pmod(seen - ticks.start_ms, F.lit(ticks.interval_ms))
        # the combined watermark moves with the last of the channels that are there
        joined = reduce(
            Column.__add__, ((tick > at).cast("int") for at in ticking.joined), F.lit(0)
        )
        unfinished = (F.col(c.SEEN_FROM) == tick) & (F.col(c.RANK) < joined - 1)
        last = F.when(unfinished, tick - ticks.interval_ms).otherwise(tick)
        first = ticking.starts_after
        value = candidate_of(Candidate(lag_ms), last)
        watermark = F.when(last > first, value).otherwise(F.lit(MIN_WATERMARK))
        if self.clock.closes_now:
            all_ended = F.col(c.RANK) >= max(len(ticking.joined) - 1, 0)
            at_end = (F.col(c.SEEN_FROM) >= axis.end) & all_ended
            watermark = F.when(at_end, F.lit(MAX_WATERMARK)).otherwise(watermark)
        return probes.withColumn(c.WATERMARK, watermark).drop(c.CHANNEL, c.CANDIDATE, c.RANK)

    def at_hand(self) -> ClockEmissions:
        """Itself: nothing is to be computed before."""
        return self

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct thresholds with the first tick whose watermark reaches them."""
        ticking, axis = self.ticking, self.ticking.axis
        ticks, lag_ms = self._rule
        threshold = F.col(c.THRESHOLD)
        last = END_OF_INSTANTS_MS - lag_ms
        after = F.greatest(
            F.least(threshold, F.lit(last)) + lag_ms - 1, F.lit(ticking.starts_after)
        )
        tick = tick_after(after, ticks)
        comes = (threshold < last) & (after < self.clock.horizon_ms)
        tick = F.when(comes, F.when(tick < self.clock.horizon_ms, tick))
        seen_from = F.coalesce(tick, F.lit(axis.never))
        joined = [(seen_from > at).cast("bigint") for at in ticking.joined]
        rank = reduce(Column.__add__, joined, F.lit(-1))
        return (
            thresholds.select(c.THRESHOLD)
            .distinct()
            .withColumns({c.SEEN_FROM: seen_from, c.RANK: rank})
        )
