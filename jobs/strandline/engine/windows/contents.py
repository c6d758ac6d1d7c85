"""The windows of every key, with the contents of their last firing."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import long, named
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import floor
from strandline.engine.results.aggregates import Partial, parts_of
from strandline.engine.results.rows import window_rows
from strandline.engine.windows.assign import fires_at_once, is_accepted, is_kept_elsewhere
from strandline.spec.pipeline import PipelineSpec

_ACCEPTED = "_strandline_accepted"
_BLOCK = "_strandline_block_ms"
"""The first id of a block of windows, which are counted in one partition."""
_BLOCK_IN_SIZES = 8
"""The length of a block in window sizes: few panes are in two blocks, and there are many blocks."""


def fire(counted: DataFrame, windows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """A row for each (key, window) with a record, also for windows that have not fired (`open`).

    A fired window contains all its accepted records, since each later record has fired it again.
    """
    filled = counted.where(F.col("records") > 0)
    on_time = F.col("records") > F.col("late_accepted")
    fired_at = F.greatest(F.col(c.FIRE_AT), F.when(~on_time, F.col(c.FIRST_ARRIVAL)))
    firings = F.col("late_accepted") + on_time.cast("bigint")
    rows = filled.join(F.broadcast(windows), c.WINDOW).withColumn("firings", firings)
    return window_rows(rows, (c.SLOT, c.SLOT_END), fired_at, F.col(c.CLOSE_AT), spec)


def by_slot(counted: DataFrame) -> DataFrame:
    """The record counts of windows over all keys: see `Rebuild.accepted_by_slot`."""
    counts = {
        "records": "records",
        "late_accepted": "late_accepted",
        c.IN_NEWEST_WINDOW: "in_newest",
        c.MISSED_PAIRS: "missed_pairs",
    }
    sums = (F.sum(name).alias(alias) for name, alias in counts.items())
    return counted.groupBy(F.col(c.WINDOW).alias(c.SLOT)).agg(*sums)


def count_each(
    assigned: DataFrame, spec: PipelineSpec, aggregates: dict[str, Column], grid: Grid
) -> DataFrame:
    """The aggregates of each window over its records, window by window.

    Refused pairs (record, window) are counted in separate rows, which have no records.
    """
    keys = keys_of(spec)
    contents = named(aggregates)
    if grid.one_window_each:
        return (
            assigned.where(is_accepted())
            .groupBy(*keys, c.WINDOW)
            .agg(*contents, *_counts())
            .withColumns({c.IN_NEWEST_WINDOW: F.col("records"), c.MISSED_PAIRS: long(0)})
        )
    counted = (
        assigned.withColumn(_ACCEPTED, is_accepted())
        .where(is_accepted() | is_kept_elsewhere())
        .groupBy(*keys, c.WINDOW, _ACCEPTED)
        .agg(
            *contents,
            *_counts(),
            F.count_if(F.col(c.WINDOW) == F.col(c.NEWEST_WINDOW)).alias(c.IN_NEWEST_WINDOW),
        )
    )
    return _accepted_or_missed(counted)


def count_panes(
    records: DataFrame,
    panes: DataFrame,
    windows: DataFrame,
    spec: PipelineSpec,
    aggregates: dict[str, Partial],
    grid: Grid,
) -> DataFrame:
    """The aggregates of each window, from partial aggregates of panes.

    Records of a key and a pane that are on time for all windows of the pane are one partial
    aggregate. The few others are combined by instant, since each window accepts either all or none
    of one instant. The partial aggregates are then assigned to the windows one by one.
    """
    keys = keys_of(spec)
    sure = F.col(c.INSTANT) < F.col(c.SURE_BEFORE)
    grouped = (
        records.join(F.broadcast(panes.select(c.PANE, c.SURE_BEFORE)), c.PANE)
        .withColumn(c.INSTANT, F.when(~sure, F.col(c.INSTANT)))
        .groupBy(*keys, c.PANE, c.INSTANT)
        .agg(
            *parts_of(aggregates),
            F.count(F.lit(1)).alias("records"),
            F.min(c.ARRIVAL).alias(c.FIRST_ARRIVAL),
        )
    )
    assigned = (
        _in_windows(grouped.join(F.broadcast(panes), c.PANE), keys, grid)
        .join(F.broadcast(windows.select(c.WINDOW, c.FIRE_FROM, c.CLOSE_FROM)), c.WINDOW)
        .withColumn(_ACCEPTED, F.coalesce(is_accepted(), F.lit(True)))
        .where(F.col(_ACCEPTED) | is_kept_elsewhere())
    )
    counted = assigned.groupBy(*keys, _BLOCK, c.WINDOW, _ACCEPTED).agg(
        *(partial.whole.alias(name) for name, partial in aggregates.items()),
        F.sum("records").alias("records"),
        _records_where(fires_at_once()).alias("late_accepted"),
        F.min(c.FIRST_ARRIVAL).alias(c.FIRST_ARRIVAL),
        _records_where(F.col(c.WINDOW) == F.col(c.NEWEST_WINDOW)).alias(c.IN_NEWEST_WINDOW),
    )
    return _accepted_or_missed(counted)


def _in_windows(grouped: DataFrame, keys: list[str], grid: Grid) -> DataFrame:
    """Each row once for each WINDOW from OLDEST to NEWEST, partitioned by key and block.

    All rows of a window are in one partition. The exchange has a few rows for each pane, before
    they are multiplied by its windows; this makes sliding windows cheap.
    """
    step, length_ms = F.lit(grid.step_ms), _BLOCK_IN_SIZES * grid.most_windows * grid.step_ms
    first, last = (floor(F.col(name), length_ms, grid.offset_ms) for name in (c.OLDEST, c.NEWEST))
    in_blocks = grouped.withColumn(
        _BLOCK, F.explode(F.sequence(first, last, F.lit(length_ms)))
    ).repartition(*keys, _BLOCK)
    oldest = F.greatest(c.OLDEST, _BLOCK)
    newest = F.least(F.col(c.NEWEST), F.col(_BLOCK) + (length_ms - grid.step_ms))
    return in_blocks.withColumn(c.WINDOW, F.explode(F.sequence(oldest, newest, step)))


def _records_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("records")).otherwise(F.lit(0)))


def _counts() -> list[Column]:
    return [
        F.count(F.lit(1)).alias("records"),
        F.count_if(fires_at_once()).alias("late_accepted"),
        F.min(c.ARRIVAL).alias(c.FIRST_ARRIVAL),
    ]


def _accepted_or_missed(counted: DataFrame) -> DataFrame:
    """Rows that count refused pairs have no records, only the number of pairs."""
    accepted = F.col(_ACCEPTED)
    nothing = long(0)
    return counted.withColumn(
        c.MISSED_PAIRS, F.when(accepted, nothing).otherwise(F.col("records"))
    ).withColumns(
        {
            name: F.when(accepted, F.col(name)).otherwise(nothing)
            for name in ("records", "late_accepted", c.IN_NEWEST_WINDOW)
        }
    )
