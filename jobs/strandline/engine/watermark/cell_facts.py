"""The facts of days with too many cells for the driver, computed from cells by the executors.

The functions are the DataFrame forms of `timeline.channel_days_of`, `day_map_of` and
`malformed_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.frames import fields_of


def channel_days(cells: DataFrame) -> DataFrame:
    """Facts of each (arrival date, channel); columns `CHANNEL_COLUMNS`."""
    candidate = F.col("largest_candidate_ms")
    first = F.min(F.struct("first_arrival_ms", "first_sequence"))
    counted = (
        _well_formed(cells)
        .groupBy("arrival_date", "channel")
        .agg(
            F.max(F.when(~F.col("pending"), candidate)).alias("settled_ms"),
            F.max(F.when(F.col("pending"), candidate)).alias("pending_ms"),
            F.max("largest_ts_ms").alias("largest_ts_ms"),
            F.max("last_arrival_ms").alias("last_arrival_ms"),
            F.bit_or("arrival_hours").alias("arrival_hours"),
            first.alias("first"),
        )
    )
    return counted.select("*", *fields_of(counted, "first")).drop("first")


def day_map(cells: DataFrame) -> DataFrame:
    """Facts of the well-formed records of each (arrival date, event date): `DAY_COLUMNS`."""
    end = F.col("largest_end_ms")
    return (
        _well_formed(cells)
        .groupBy("arrival_date", "event_date")
        .agg(
            F.sum("records").alias("records"),
            F.min("least_ts_ms").alias("least_ts_ms"),
            F.max("largest_ts_ms").alias("largest_ts_ms"),
            F.when(F.count_if(end.isNull()) == 0, F.max(end)).alias("largest_end_ms"),
        )
    )


def malformed(cells: DataFrame) -> DataFrame:
    """The number of malformed rows of each (arrival date, reason); columns `MALFORMED_COLUMNS`."""
    bad = cells.where(F.col("reason").isNotNull())
    return bad.groupBy("arrival_date", "reason").agg(
        F.sum("records").alias("records"), F.max("last_arrival_ms").alias("last_arrival_ms")
    )


def _well_formed(cells: DataFrame) -> DataFrame:
    return cells.where(F.col("reason").isNull())
