"""The firing history: every emission of every window, in Flink's order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.engine.results.rows import window_columns
from strandline.engine.values.emissions import Emissions
from strandline.engine.windows.assign import fires_at_once
from strandline.engine.windows.last_firing import not_evicted
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_FIRST_HELD_BY = "_strandline_first_held_by"
FIRING = "_strandline_nth_firing"
"""The number of a firing in its window: 0 is the one on time, n the n-th late one."""
OF_CAUSE = (c.INSTANT, c.SEQUENCE, c.TS, c.ARRIVAL, c.ARRIVAL_DAY, c.RECORD_ID)
"""What is told of the record that fires a window."""


def firings(
    contents: DataFrame, windows: DataFrame, emitted: Emissions, spec: PipelineSpec
) -> DataFrame:
    """One row for each firing of each window, with its content, its watermark and its position.

    A window fires when the watermark reaches its end (`ON_TIME`), or at a record that comes before
    (`EARLY`) or after that (`LATE`), as its trigger says.

    Args:
        contents: what each firing holds, and where the record is that causes it.
        windows: the windows of the range.
        emitted: the emissions of the days on which something fires.
        spec: the pipeline.
    """
    placed = _placed(contents.join(F.broadcast(windows), c.WINDOW))
    firing = Window.partitionBy("window_start", "window_end", *spec.source.key).orderBy(FIRING)
    replaces = F.lit(not spec.fires_by.purging) & (F.col("firing") > 1)
    return (
        emitted.at(placed)
        .select(*_columns(spec), FIRING)
        .withColumn("firing", F.row_number().over(firing).cast("bigint"))
        .withColumn("supersedes", F.when(replaces, F.col("firing") - 1))
        .drop(FIRING)
    )


def contents_of_firings(
    accepted: DataFrame, spec: PipelineSpec, aggregates: dict[str, Column]
) -> DataFrame:
    """What the firings hold of windows that fire at their end, and again at each late record.

    All that has come by then; if firings purge, of a late one that record alone.

    Args:
        accepted: the accepted records, once for each window that took them; their RECORD_ID orders
            those of equal position, and is the `fired_by` of a LATE firing.
        spec: the pipeline.
        aggregates: the content of a firing.
    """
    return _contents(_members(accepted, spec), aggregates, spec)


def _members(accepted: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The accepted records of windows that have fired, once for each FIRING that holds them.

    A record belongs to the first firing that holds it (`FIRST_HELD_BY`: 0, the one on time; n, the
    n-th late one) and, unless that purges, to all that follow.
    """
    window = Window.partitionBy(*_window_of(spec))
    up_to_here = window.orderBy(c.INSTANT, c.SEQUENCE, c.TS, c.RECORD_ID).rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    last_firing = F.col(_FIRST_HELD_BY)
    if not spec.fires_by.purging:
        last_firing = F.max(_FIRST_HELD_BY).over(window)
    return (
        accepted.where(F.col(c.FIRE_AT).isNotNull())
        .withColumn(_FIRST_HELD_BY, F.count_if(fires_at_once()).over(up_to_here))
        .withColumn(FIRING, last_firing)
        .withColumn(FIRING, F.explode(F.sequence(_FIRST_HELD_BY, FIRING)))
    )


def _contents(members: DataFrame, aggregates: dict[str, Column], spec: PipelineSpec) -> DataFrame:
    """What each FIRING of each window holds; of a late one, where the record that causes it is."""
    firing = [*_window_of(spec), FIRING]
    is_cause = fires_at_once() & (F.col(_FIRST_HELD_BY) == F.col(FIRING))
    causes = [F.max(F.when(is_cause, F.col(name))).alias(name) for name in OF_CAUSE]
    contents = [
        *(column.alias(name) for name, column in aggregates.items()),
        F.count(F.lit(1)).alias("records"),
    ]
    if spec.evicts_by is None:
        return members.groupBy(*firing).agg(*contents, *causes)
    # a record may be evicted by the very firing that it causes
    kept = not_evicted(members, firing, spec).groupBy(*firing).agg(*contents)
    return kept.join(members.groupBy(*firing).agg(*causes), firing)


def _placed(firings: DataFrame) -> DataFrame:
    """Firings with their position: where the watermark fires the window, or the late record is."""
    fired_on = F.timestamp_millis(c.FIRE_AT).cast("date")
    return firings.withColumns(
        {
            c.SEEN_FROM: _on_time_or_late(F.col(c.FIRE_FROM), F.col(c.INSTANT)),
            c.RANK: _on_time_or_late(F.col(c.RANK), F.lit(AFTER_CHANNELS)),
            c.ARRIVAL_DAY: _on_time_or_late(fired_on, F.col(c.ARRIVAL_DAY)),
        }
    ).withColumn("order_rank", F.col(c.RANK))


def _columns(spec: PipelineSpec) -> list[Column]:
    """The columns of `windows.firings`, but for what numbers the firings."""
    fired_at = F.timestamp_millis(_on_time_or_late(F.col(c.FIRE_AT), F.col(c.ARRIVAL)))
    # a watermark fires by rising ends, a record its newest window first
    order_window = _on_time_or_late(F.col(c.SLOT_END), -F.col(c.SLOT_END))
    late_or_early = F.when(fires_at_once(), "LATE").otherwise("EARLY")
    return [
        *window_columns(c.SLOT, c.SLOT_END, spec),
        F.col("records"),
        _on_time_or_late(F.lit("ON_TIME"), late_or_early).alias("timing"),
        fired_at.alias("fired_at"),
        F.col(c.RECORD_ID).alias("fired_by"),
        F.nullif(F.col(c.WATERMARK), F.lit(MIN_WATERMARK)).alias("watermark_ms"),
        F.col(c.SEEN_FROM).cast("decimal(38,0)").alias("order_instant"),
        F.col("order_rank"),
        F.col(c.SEQUENCE).alias("order_sequence"),
        F.col(c.TS).alias("order_ts_ms"),
        order_window.alias("order_window_ms"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    ]


def _on_time_or_late(on_time: Column, late: Column) -> Column:
    """What holds of a firing on time, or of a late one."""
    return F.when(F.col(FIRING) == 0, on_time).otherwise(late)


def _window_of(spec: PipelineSpec) -> list[str]:
    """What tells a window of a key from every other one."""
    return [*keys_of(spec), c.WINDOW]
