"""The values of the combined watermark at positions.

Whether a record is late is decided without them (see `Crossings`). They are needed only where late
records and firings report the watermark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.frames import computed, first_of_cases, long, small_table, up_to_here
from strandline.engine.history.history import History
from strandline.engine.idleness.steps import highest_of
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import arrival_probe
from strandline.engine.records.expressions import quoted
from strandline.engine.watermark_values.between_thresholds import first_reaching
from strandline.model.intervals import last_day_before
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

CARRIED = -1
"""The rank of watermarks that were emitted before a day: before all channels."""
UNTIL = "_strandline_until"
_BROUGHT, _IS_PROBE = "_strandline_brought", "_strandline_is_probe"
_POSITION = {c.ARRIVAL_DAY, c.SEEN_FROM, c.RANK, c.CHANNEL, c.CANDIDATE}
"""The columns of a probe's position, and the columns of emissions."""
_HIGHEST = "_strandline_highest_ms"
_BELOW = "_strandline_below_ms"
_LAST = "_strandline_last"
_FEW = 64
"""The largest number of runs of ticks that become an expression; more are sorted with the
probes."""


@dataclass(frozen=True)
class Emissions:
    """The combined watermarks emitted on some days, each higher than the one before.

    Attributes:
        rows: ARRIVAL_DAY, SEEN_FROM, RANK, CANDIDATE (the watermark), UNTIL: the last tick of a run
            of ticks, on each of which the watermark advances with the clock; else SEEN_FROM. A
            day's rows begin with the last watermark before it, and end with the advances that the
            end of the input causes, if it ends at the horizon.
        history: everything observed below the horizon.
        clock: the horizon and the inputs that have ended.
        runs: the runs of ticks, on the driver and without the end; None: `rows` has none.
        at_end: (rank, watermark) of each advance that the end of the input causes; None: see
            `rows`.
        is_computed: whether the rows are computed.
    """

    rows: DataFrame
    history: History
    clock: Clock
    runs: pd.DataFrame | None = None
    at_end: tuple[tuple[int, int], ...] | None = None
    is_computed: bool = False

    def computed_once(self) -> Emissions:
        """These emissions with their rows computed, for repeated use."""
        return (
            self if self.is_computed else replace(self, rows=computed(self.rows), is_computed=True)
        )

    def at(self, probes: DataFrame) -> DataFrame:
        """Rows (*probes*) with the combined WATERMARK at their position; MIN_WATERMARK: none yet.

        Args:
            probes: ARRIVAL_DAY, SEEN_FROM (an instant), RANK (of the last emission that counts at
                that instant), and any further columns.
        """
        if self.runs is not None and len(self.runs) <= _FEW:
            return self._at_few(self.runs, probes)
        rows = _with_probes(self.rows, probes)
        seen = up_to_here(Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, c.RANK))
        if self.runs is None:
            reached = F.max(c.CANDIDATE).over(seen)
        else:
            step = F.struct(c.CANDIDATE, c.SEEN_FROM, UNTIL, c.RANK)
            last = F.max(F.when(F.col(c.CANDIDATE).isNotNull(), step)).over(seen)
            rows = rows.withColumn(_LAST, last)
            names = (c.SEEN_FROM, UNTIL, c.RANK, c.CANDIDATE)
            reached = self._in_run(*(F.col(_LAST)[name] for name in names))
        watermark = F.coalesce(reached, F.lit(MIN_WATERMARK))
        return _answered(rows.withColumn(c.WATERMARK, watermark), probes)

    def at_arrival(self, records: DataFrame, spec: PipelineSpec) -> DataFrame:
        """Records of a pipeline with the combined WATERMARK at their arrival; see `at`."""
        return self.at(records.withColumns(arrival_probe(spec))).drop(c.SEEN_FROM)

    def highest(self, *, before_end: bool = False) -> int:
        """The combined watermark after all advances; MIN_WATERMARK: none yet.

        `before_end`: without the advances that the end of the input at the horizon causes.
        """
        rows, axis = self.rows, self.history.axis
        if before_end:
            rows = rows.where(F.col(c.SEEN_FROM) < axis.literal(axis.end))
        run_on = (F.col(UNTIL) - F.col(c.SEEN_FROM)).cast("bigint")
        highest = rows.agg(F.max(F.col(c.CANDIDATE) + run_on)).collect()[0][0]
        return MIN_WATERMARK if highest is None else int(highest)

    def _at_few(self, runs: pd.DataFrame, probes: DataFrame) -> DataFrame:
        """`at` for a few runs of ticks, by one expression: the probes are not sorted."""
        columns = ("seen_from", "until", "rank", "watermark_ms")
        steps = [*zip(*(runs[name].tolist() for name in columns), strict=True)]
        if self.clock.ends_by_channel:
            end = self.history.axis.end
            steps += [(end, end, rank, value) for rank, value in self._at_end]
        seen_from, rank = F.col(c.SEEN_FROM), F.col(c.RANK)

        def case(step: tuple[int, ...]) -> tuple[Column, Column]:
            first, until, own_rank, value = map(long, step)
            is_seen = (seen_from > first) | ((seen_from == first) & (rank >= own_rank))
            return is_seen, self._in_run(first, until, own_rank, value)

        watermark = first_of_cases(map(case, reversed(steps)), long(MIN_WATERMARK))
        return probes.withColumn(c.WATERMARK, watermark).drop(c.CHANNEL, c.CANDIDATE, c.RANK)

    def _in_run(self, first: Column, until: Column, rank: Column, value: Column) -> Column:
        """The watermark reached within a run of ticks, at the position of a probe."""
        interval = F.lit(self.history.axis.interval_ms)
        elapsed = F.least(F.col(c.SEEN_FROM), until) - first
        whole = elapsed - F.pmod(elapsed, interval)
        unfinished = (F.col(c.SEEN_FROM) == first + whole) & (F.col(c.RANK) < rank)
        return value + F.when(unfinished & (whole > 0), whole - interval).otherwise(whole)

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct THRESHOLDs, each with SEEN_FROM and RANK of the advance that reached it.

        A threshold must be reached on these days, or not before the horizon. In the latter case
        SEEN_FROM is `Axis.never`, and RANK is the channel that reaches it if the input ends there.
        """
        axis = self.history.axis
        if self.runs is not None:
            crossed = self._reached_in(self.runs, thresholds)
        else:
            known = self.rows.where(F.col(c.SEEN_FROM) < axis.literal(axis.end))
            advances = known.where(F.col(c.RANK) > CARRIED).select(
                c.SEEN_FROM, c.RANK, F.col(c.CANDIDATE).alias(c.WATERMARK)
            )
            crossed = first_reaching(thresholds, advances.distinct(), self.history, self.clock)
        if not self.clock.ends_by_channel:
            return crossed
        cases = ((F.col(c.THRESHOLD) <= reached, long(rank)) for rank, reached in self._at_end)
        at_end = first_of_cases(cases, long(None))
        never = F.col(c.SEEN_FROM) == axis.literal(axis.never)
        return crossed.withColumn(c.RANK, F.when(never, at_end).otherwise(F.col(c.RANK)))

    @cached_property
    def _at_end(self) -> list[tuple[int, int]]:
        """(rank, watermark) of each advance that the end of the input causes, in order."""
        if self.at_end is not None:
            return [*self.at_end]
        axis = self.history.axis
        last_day = F.lit(last_day_before(self.clock.horizon_ms))
        ends = (F.col(c.SEEN_FROM) == axis.literal(axis.end)) & (F.col(c.ARRIVAL_DAY) == last_day)
        rows = self.rows.where(ends).select(c.RANK, c.CANDIDATE).collect()
        return sorted((int(row[0]), int(row[1])) for row in rows)

    def _reached_in(self, steps: pd.DataFrame, thresholds: DataFrame) -> DataFrame:
        """`crossings`, if the steps are runs of ticks, of which there are few."""
        axis = self.history.axis
        highest = highest_of(steps)
        columns = {
            c.SEEN_FROM: axis.column(steps["seen_from"]),
            c.RANK: steps["rank"],
            c.WATERMARK: steps["watermark_ms"],
            _HIGHEST: highest,
            _BELOW: [MIN_WATERMARK, *highest[:-1]][: len(steps)],
        }
        table = small_table(thresholds.sparkSession, columns)
        threshold, interval = F.col(c.THRESHOLD), F.lit(axis.interval_ms)
        missing = F.greatest(threshold - F.col(c.WATERMARK), F.lit(0))
        ticks = F.ceil(missing / interval).cast("bigint")
        in_row = (threshold > F.col(_BELOW)) & (threshold <= F.col(_HIGHEST))
        return (
            thresholds.select(c.THRESHOLD)
            .distinct()
            .join(F.broadcast(table), in_row, "left")
            .select(
                c.THRESHOLD,
                F.coalesce(
                    F.col(c.SEEN_FROM) + ticks * interval, F.lit(axis.literal(axis.never))
                ).alias(c.SEEN_FROM),
                c.RANK,
            )
        )


def _with_probes(emitted: DataFrame, probes: DataFrame) -> DataFrame:
    """The emissions and the probes in one DataFrame; a probe comes after emissions of its rank.

    A probe's further columns are packed into one struct, null for emissions: emissions are many,
    and are sorted with the probes. `_answered` unpacks the struct.
    """
    carried = _carried(probes)
    rank = F.col(c.RANK).cast("bigint") * 2
    asked = probes.select(
        c.ARRIVAL_DAY,
        c.SEEN_FROM,
        (rank + 1).alias(c.RANK),
        F.struct(F.lit(1).alias(_IS_PROBE), *(quoted(f.name) for f in carried)).alias(_BROUGHT),
    )
    of_probe = T.StructType([T.StructField(_IS_PROBE, T.IntegerType()), *carried])
    rows = emitted.withColumn(c.RANK, rank)
    rows = rows.withColumn(_BROUGHT, F.lit(None).cast(of_probe))
    return rows.unionByName(asked, allowMissingColumns=True)


def _answered(rows: DataFrame, probes: DataFrame) -> DataFrame:
    """The probes of `_with_probes`, with their own columns and the WATERMARK at their position."""
    own = [F.col(_BROUGHT)[f.name].alias(f.name) for f in _carried(probes)]
    of_probes = rows.where(F.col(_BROUGHT).isNotNull())
    return of_probes.select(c.ARRIVAL_DAY, c.SEEN_FROM, *own, c.WATERMARK)


def _carried(probes: DataFrame) -> list[T.StructField]:
    """The columns of probes other than their position."""
    return [field for field in probes.schema.fields if field.name not in _POSITION]
