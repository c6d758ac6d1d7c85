"""fire: the windows of every key, with what their last firing held."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.place import fires_at_once
from strandline.spec.pipeline import PipelineSpec


def fire(
    accepted: DataFrame, slots: DataFrame, spec: PipelineSpec, aggregates: dict[str, Column]
) -> DataFrame:
    """One row for each (key, window) that holds a record, those not fired yet (`open`) included.

    An open row is no row of `windows`: it is there to be counted. A window that has fired holds
    every accepted record, for each one that came later has fired it again.
    """
    counted = accepted.groupBy(*(c.key_column(name) for name in spec.source.key), c.SLOT).agg(
        *(column.alias(name) for name, column in aggregates.items()),
        F.count(F.lit(1)).alias("records"),
        F.count_if(fires_at_once()).alias("late_accepted"),
        F.min(c.ARRIVAL).alias(c.FIRST_ARRIVAL),
    )
    on_time = F.col("records") > F.col("late_accepted")
    fired_at = F.greatest(F.col(c.FIRE_AT), F.when(~on_time, F.col(c.FIRST_ARRIVAL)))
    return counted.join(F.broadcast(slots), c.SLOT).select(
        F.timestamp_millis(c.SLOT).cast("date").alias("window_date"),
        F.timestamp_millis(c.SLOT).alias("window_start"),
        F.timestamp_millis(c.SLOT_END).alias("window_end"),
        *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
        *aggregates,
        "records",
        "late_accepted",
        (F.col("late_accepted") + on_time.cast("bigint")).alias("firings"),
        F.col(c.SLOT_STATE).alias("state"),
        F.timestamp_millis(fired_at).alias("fired_at"),
        F.timestamp_millis(c.CLOSE_AT).alias("closed_at"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    )
