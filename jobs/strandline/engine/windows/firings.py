"""The firing history: every emission of every window, in Flink's order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.engine.records.read import keys_of
from strandline.engine.results.rows import window_columns
from strandline.engine.values.emissions import Emissions
from strandline.engine.windows.assign import fires_at_once
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_NUMBER = "_strandline_number"
_AT = "_strandline_at"


def firings(
    accepted: DataFrame,
    windows: DataFrame,
    emitted: Emissions,
    spec: PipelineSpec,
    aggregates: dict[str, Column],
    identity: Column,
) -> DataFrame:
    """One row for each firing of each window, with its content, its watermark and its position.

    A window fires when the watermark reaches its end, if it holds a record by then (`ON_TIME`),
    and again at each record that it accepts later (`LATE`), with all that it holds by then.

    Args:
        accepted: the accepted records, once for each window that took them.
        windows: the windows of the range.
        emitted: the emissions of the days on which something fires.
        spec: the pipeline.
        aggregates: the content of a firing.
        identity: orders records of equal position; its value is the `fired_by` of a LATE firing.
    """
    window = [*keys_of(spec), c.WINDOW]
    whole = Window.partitionBy(*window)
    until_here = whole.orderBy(c.INSTANT, c.SEQUENCE, c.TS, c.RECORD_ID).rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    # a record belongs to the first firing that holds it (0: the one on time, n: the n-th late one)
    # and to all that follow
    members = (
        accepted.where(F.col(c.FIRE_AT).isNotNull())
        .withColumn(c.RECORD_ID, identity)
        .withColumn(_NUMBER, F.count_if(fires_at_once()).over(until_here))
        .withColumn(_AT, F.max(_NUMBER).over(whole))
        .withColumn(_AT, F.explode(F.sequence(_NUMBER, _AT)))
    )
    causes = fires_at_once() & (F.col(_NUMBER) == F.col(_AT))
    held = members.groupBy(*window, _AT).agg(
        *(column.alias(name) for name, column in aggregates.items()),
        F.count(F.lit(1)).alias("records"),
        *(
            F.max(F.when(causes, F.col(name))).alias(name)
            for name in (c.INSTANT, c.SEQUENCE, c.TS, c.ARRIVAL, c.ARRIVAL_DAY, c.RECORD_ID)
        ),
    )
    on_time = F.col(_AT) == 0
    placed = (
        held.join(F.broadcast(windows), c.WINDOW)
        .withColumn(c.SEEN_FROM, F.when(on_time, F.col(c.FIRE_FROM)).otherwise(F.col(c.INSTANT)))
        .withColumn(c.RANK, F.when(on_time, F.col(c.RANK)).otherwise(F.lit(AFTER_CHANNELS)))
        .withColumn("order_rank", F.col(c.RANK))
        .withColumn(
            c.ARRIVAL_DAY,
            F.when(on_time, F.timestamp_millis(c.FIRE_AT).cast("date")).otherwise(
                F.col(c.ARRIVAL_DAY)
            ),
        )
    )
    order = Window.partitionBy("window_start", "window_end", *spec.source.key).orderBy(_AT)
    return (
        emitted.at(placed)
        .select(
            *window_columns(c.SLOT, c.SLOT_END, spec),
            "records",
            F.when(on_time, "ON_TIME").otherwise("LATE").alias("timing"),
            F.timestamp_millis(F.when(on_time, F.col(c.FIRE_AT)).otherwise(F.col(c.ARRIVAL))).alias(
                "fired_at"
            ),
            F.col(c.RECORD_ID).alias("fired_by"),
            F.nullif(F.col(c.WATERMARK), F.lit(MIN_WATERMARK)).alias("watermark_ms"),
            F.col(c.SEEN_FROM).cast("decimal(38,0)").alias("order_instant"),
            "order_rank",
            F.col(c.SEQUENCE).alias("order_sequence"),
            F.col(c.TS).alias("order_ts_ms"),
            # a watermark fires by rising ends, a record its newest window first
            F.when(on_time, F.col(c.SLOT_END))
            .otherwise(-F.col(c.SLOT_END))
            .alias("order_window_ms"),
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
            _AT,
        )
        .withColumn("firing", F.row_number().over(order).cast("bigint"))
        .withColumn("supersedes", F.when(F.col("firing") > 1, F.col("firing") - 1))
        .drop(_AT)
    )
