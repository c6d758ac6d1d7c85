"""The position of a record, or of an instant, among the advances of the watermark."""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS, Axis
from strandline.spec.pipeline import PipelineSpec


def arrival_probe(spec: PipelineSpec) -> dict[str, Column]:
    """The columns SEEN_FROM and RANK at which a record looks up the watermark at its arrival.

    The watermark at a position is the value of the last advance at or before it (SEEN_FROM first,
    then RANK). A record comes after all advances at its instant. Only a result of another
    pipeline's windows that an advance fired (ADVANCE is not null) comes just before that advance,
    as in Flink, where a window emits its results before it forwards the watermark. The splits of
    one source advance together, at one rank (ALL_SPLITS).
    """
    if not advance_column(spec):
        return {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
    advance = F.col(c.ADVANCE)
    before_advance = F.when(advance == ALL_SPLITS, long(-1)).otherwise(advance - 1)
    return {
        c.SEEN_FROM: F.col(c.INSTANT) + F.when(advance.isNull(), 0).otherwise(1),
        c.RANK: F.coalesce(before_advance, long(AFTER_CHANNELS)),
    }


def probe_at(instant: int, day: date, axis: Axis, spark: SparkSession) -> DataFrame:
    """One row with the position after all advances at an instant of `axis`, on an arrival day."""
    return spark.range(1).select(
        F.lit(day).alias(c.ARRIVAL_DAY),
        F.lit(axis.literal(instant)).alias(c.SEEN_FROM),
        F.lit(AFTER_CHANNELS).alias(c.RANK),
    )


def advance_column(spec: PipelineSpec) -> list[str]:
    """The column ADVANCE, for a pipeline over results; else none."""
    return [] if spec.reads_results_of is None else [c.ADVANCE]
