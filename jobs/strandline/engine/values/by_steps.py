"""The watermark's values where its steps are known: channels can go idle, or ticks alone decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import from_arrow, long
from strandline.engine.idleness.steps import Steps
from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.values.between_thresholds import first_reaching
from strandline.engine.values.emissions import answered, seen_of_day, with_probes
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MIN_WATERMARK

_UNTIL = "_strandline_until"
_HIGHEST = "_strandline_highest_ms"
_BELOW = "_strandline_below_ms"
_LAST = "_strandline_last"
_FEW = 64
"""So many runs of ticks are an expression; more are sorted with what asks for them."""


@dataclass(frozen=True)
class StepEmissions:
    """The watermark by the steps of the combined one.

    Attributes:
        rows: ARRIVAL_DAY, SEEN_FROM, RANK, CANDIDATE (the watermark), _UNTIL. A day's rows begin
            with the last step before it.
        steps: those known at the horizon.
        history: everything observed below it.
        clock: what is known.
    """

    rows: DataFrame
    steps: Steps
    history: History
    clock: Clock

    def at_hand(self) -> StepEmissions:
        """Itself: the steps are known."""
        return self

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK of the last step that they see."""
        if self.history.spec.watermark.goes_by_the_clock and len(self.steps.table) <= _FEW:
            return self._at_few(probes)
        rows = with_probes(self.rows, probes)
        step = F.struct(c.CANDIDATE, c.SEEN_FROM, _UNTIL, c.RANK)
        last = F.max(F.when(F.col(c.CANDIDATE).isNotNull(), step)).over(seen_of_day())
        names = (c.SEEN_FROM, _UNTIL, c.RANK, c.CANDIDATE)
        reached = self._risen(*(F.col(_LAST)[name] for name in names))
        watermark = F.coalesce(reached, F.lit(MIN_WATERMARK))
        return answered(rows.withColumn(_LAST, last).withColumn(c.WATERMARK, watermark), probes)

    def _at_few(self, probes: DataFrame) -> DataFrame:
        """The same of few runs of ticks: no probe has to be sorted among them."""
        columns = ("seen_from", "until", "rank", "watermark_ms")
        runs = [*zip(*(self.steps.table[name].tolist() for name in columns), strict=True)]
        if self.clock.closes_now:
            end = self.history.axis.end
            runs += [(end, end, rank, value) for rank, value in self.steps.at_end]
        seen_from, rank, watermark = F.col(c.SEEN_FROM), F.col(c.RANK), long(MIN_WATERMARK)
        for run in runs:
            first, until, own_rank, value = map(long, run)
            is_seen = (seen_from > first) | ((seen_from == first) & (rank >= own_rank))
            here = self._risen(first, until, own_rank, value)
            watermark = F.when(is_seen, here).otherwise(watermark)
        return probes.withColumn(c.WATERMARK, watermark).drop(c.CHANNEL, c.CANDIDATE, c.RANK)

    def _risen(self, first: Column, until: Column, rank: Column, value: Column) -> Column:
        """What a step has let the watermark rise to, at the position of a probe that sees it."""
        axis = self.history.axis
        if not axis.interval_ms:
            return value
        # a run of ticks: the watermark has risen with the clock since its first one
        interval = F.lit(axis.interval_ms)
        elapsed = F.least(F.col(c.SEEN_FROM), until) - first
        whole = elapsed - F.pmod(elapsed, interval)
        unfinished = (F.col(c.SEEN_FROM) == first + whole) & (F.col(c.RANK) < rank)
        return value + F.when(unfinished & (whole > 0), whole - interval).otherwise(whole)

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct thresholds with the step that reaches them: see `Emissions.crossings`."""
        axis = self.history.axis
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
        for rank, watermark_ms in reversed(self.steps.at_end):
            at_end = F.when(F.col(c.THRESHOLD) <= watermark_ms, long(rank)).otherwise(at_end)
        never = F.col(c.SEEN_FROM) == axis.literal(axis.never)
        return reached.withColumn(c.RANK, F.when(never, at_end).otherwise(F.col(c.RANK)))

    def _in_runs(self, thresholds: DataFrame) -> DataFrame:
        """The crossings where the steps are runs of ticks: as many as changes of status."""
        axis, steps = self.history.axis, self.steps.table
        highest = steps["watermark_ms"] + steps["until"] - steps["seen_from"]
        runs = from_arrow(
            thresholds.sparkSession,
            pa.table(
                {
                    c.SEEN_FROM: pa.array(steps["seen_from"].tolist(), axis.kind),
                    c.RANK: pa.array(steps["rank"].tolist(), pa.int64()),
                    c.WATERMARK: pa.array(steps["watermark_ms"].tolist(), pa.int64()),
                    _HIGHEST: pa.array(highest.tolist(), pa.int64()),
                    _BELOW: pa.array([MIN_WATERMARK, *highest[:-1]][: len(steps)], pa.int64()),
                }
            ),
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


def step_emissions(
    spark: SparkSession,
    steps: Steps,
    history: History,
    clock: Clock,
    days: Sequence[date],
) -> StepEmissions:
    """The emissions of some arrival days, by the steps known at the horizon."""
    axis = history.axis
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
    return StepEmissions(from_arrow(spark, table), steps, history, clock)
