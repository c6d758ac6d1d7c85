"""When the watermark reaches thresholds between those of the grid: of sessions and of timers."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import small_table, up_to_here
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock

_EDGE = "_strandline_edge_ms"
"""The first threshold of the grid at or above a threshold or a watermark."""
_VALUE = "_strandline_value_ms"
_IS_ADVANCE = "_strandline_is_rise"
_AT, _AT_RANK = "_strandline_at", "_strandline_at_rank"
"""The SEEN_FROM and the RANK of the watermark advance that reaches a threshold."""
_BEYOND_MS = 10**16
"""More than any watermark that a record can offer: Spark's timestamps end before it."""


def first_reaching(
    thresholds: DataFrame, advances: DataFrame, history: History, clock: Clock
) -> DataFrame:
    """The distinct thresholds, each with the position of the watermark advance that reaches it.

    Each threshold is looked up among the advances between it and the next threshold of the grid. If
    there is none, the watermark has passed both at once.

    Args:
        thresholds: THRESHOLD.
        advances: SEEN_FROM, RANK, WATERMARK: the advances of the combined watermark, at least all
            that reach a threshold but not the next one of the grid.
        history: the history, which has the crossings of the grid's thresholds.
        clock: the horizon and the inputs that have ended.

    Returns:
        THRESHOLD, SEEN_FROM (`Axis.never`: not before the horizon) and RANK (of the channel).
    """
    grid = history.grid
    last = grid.residues[0]

    def edge(value: Column) -> Column:
        known = F.least(value, F.lit(_BEYOND_MS))
        return known + F.pmod(last - known, F.lit(grid.threshold_step_ms))

    asked = thresholds.select(F.col(c.THRESHOLD).alias(_VALUE)).distinct()
    asked = asked.withColumn(_EDGE, edge(F.col(_VALUE)))
    steps = advances.select(
        F.col(c.WATERMARK).alias(_VALUE),
        edge(F.col(c.WATERMARK)).alias(_EDGE),
        F.col(c.SEEN_FROM).alias(_AT),
        F.col(c.RANK).cast("bigint").alias(_AT_RANK),
        F.lit(True).alias(_IS_ADVANCE),
    )
    here = F.broadcast(_at_edges(asked, history, clock))
    asked = asked.withColumn(_IS_ADVANCE, F.lit(False))
    both = steps.join(here.select(_EDGE), _EDGE).unionByName(asked, allowMissingColumns=True)
    downwards = (F.desc(name) for name in (_VALUE, _IS_ADVANCE, _AT, _AT_RANK))
    from_above = up_to_here(Window.partitionBy(_EDGE).orderBy(*downwards))
    # a watermark never falls: of all from above the least has come first
    first = {name: F.last(name, ignorenulls=True).over(from_above) for name in (_AT, _AT_RANK)}
    return (
        both.withColumns(first)
        .where(~F.col(_IS_ADVANCE))
        .join(here, _EDGE)
        .select(
            F.col(_VALUE).alias(c.THRESHOLD),
            F.coalesce(_AT, c.SEEN_FROM).alias(c.SEEN_FROM),
            F.when(F.col(_AT).isNull(), F.col(c.RANK)).otherwise(F.col(_AT_RANK)).alias(c.RANK),
        )
    )


def _at_edges(asked: DataFrame, history: History, clock: Clock) -> DataFrame:
    """When the grid's thresholds after the given ones are reached: _EDGE, SEEN_FROM and RANK."""
    edges = sorted(int(row[0]) for row in asked.select(_EDGE).distinct().collect())
    seen, number = history.crossings.reached(edges, clock.horizon_ms)
    columns = {_EDGE: edges, c.SEEN_FROM: history.axis.column(seen), c.RANK: number}
    return small_table(asked.sparkSession, columns)
