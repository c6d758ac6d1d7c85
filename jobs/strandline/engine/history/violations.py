"""Violations of the ascending order that `legacy_ascending` assumes, counted where they happen."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import before_here, small_table
from strandline.engine.history.history import History

_CARRIED = "_strandline_carried_ms"
"""The largest event time of the record's channel on earlier arrival days."""
_LARGEST = "_strandline_so_far_ms"


def violations(records: DataFrame, history: History) -> DataFrame:
    """The number of records behind an earlier one of their channel, by arrival day and channel.

    Flink: `AscendingTimestampExtractor#extractAscendingTimestamp`, which calls its handler for each
    record whose event time is below the largest of its channel so far; equality is no violation.
    Records are ordered as they are processed: by arrival, `sequence`, and ascending event time, so
    that ties violate nothing.

    Args:
        records: the landing as `read_records` reads it, of some whole arrival days, or of one up to
            the horizon.
        history: everything observed below the horizon; it has the largest times of earlier days.

    Returns:
        A row for each arrival day and channel with a violation: `arrival_date`, `channel`,
        `violations`, `behind_ms` (the largest distance) and `first_arrival_ms`.
    """
    in_order = Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL).orderBy(c.ARRIVAL, c.SEQUENCE, c.TS)
    carried = _carried(records.sparkSession, history)
    behind = F.greatest(_LARGEST, _CARRIED) - F.col(c.TS)  # null: nothing came before
    return (
        records.where(F.col(c.REASON).isNull())
        .select(c.ARRIVAL_DAY, c.CHANNEL, c.ARRIVAL, c.SEQUENCE, c.TS)
        .withColumn(_LARGEST, F.max(c.TS).over(before_here(in_order)))
        .join(F.broadcast(carried), [c.ARRIVAL_DAY, c.CHANNEL], "left")
        .where(behind > 0)
        .groupBy(F.col(c.ARRIVAL_DAY).alias("arrival_date"), F.col(c.CHANNEL).alias("channel"))
        .agg(
            F.count(F.lit(1)).alias("violations"),
            F.max(behind).alias("behind_ms"),
            F.min(c.ARRIVAL).alias("first_arrival_ms"),
        )
    )


def _carried(spark: SparkSession, history: History) -> DataFrame:
    """The largest event time of each channel before each of its arrival days."""
    days = history.timeline.channel_days
    by_day = days.set_index(["channel", "arrival_date"])["largest_ts_ms"].sort_index()
    earlier = by_day.groupby("channel").transform(lambda largest: largest.cummax().shift())
    known = earlier.dropna().reset_index()
    columns = {
        c.ARRIVAL_DAY: known["arrival_date"],
        c.CHANNEL: known["channel"],
        _CARRIED: known["largest_ts_ms"],
    }
    return small_table(spark, columns)
