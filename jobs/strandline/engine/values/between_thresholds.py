"""When the watermark reaches thresholds that are no thresholds of the grid: those of sessions."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import from_arrow, union_by_name, up_to_here
from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock

_EDGE = "_strandline_edge_ms"
"""The first threshold of the grid that is not below a threshold or a watermark."""
_VALUE = "_strandline_value_ms"
_IS_ADVANCE = "_strandline_is_rise"
_AT, _AT_RANK = "_strandline_at", "_strandline_at_rank"
"""Where a watermark comes that reaches a threshold."""
_BEYOND_MS = 10**16
"""No record can offer such a watermark: Spark's timestamps end before it."""


def first_reaching(
    thresholds: DataFrame, advances: DataFrame, history: History, clock: Clock
) -> DataFrame:
    """The distinct thresholds with the first instant that sees them reached, and by which channel.

    Every threshold is looked up among the advances to watermarks between it and the next threshold
    of the grid; if there is none, the watermark has passed it together with that one.

    Args:
        thresholds: THRESHOLD.
        advances: SEEN_FROM, RANK, WATERMARK: the advances of the combined watermark, at least
            those that reach one of the thresholds and not the one of the grid after it.
        history: knows when the thresholds of the grid are reached.
        clock: what is known.

    Returns:
        THRESHOLD, SEEN_FROM (never: not before the horizon) and RANK.
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
    both = union_by_name(
        steps.join(here.select(_EDGE), _EDGE), asked.withColumn(_IS_ADVANCE, F.lit(False))
    )
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
    """The distinct _EDGEs of thresholds with SEEN_FROM and RANK: when the grid's are reached."""
    edges = sorted(int(row[0]) for row in asked.select(_EDGE).distinct().collect())
    seen, number = history.crossings.reached(edges, clock.horizon_ms)
    table = pa.table(
        {
            _EDGE: pa.array(edges, pa.int64()),
            c.SEEN_FROM: pa.array([int(at) for at in seen], history.axis.kind),
            c.RANK: pa.array([int(n) for n in number], pa.int64()),
        }
    )
    return from_arrow(asked.sparkSession, table)
