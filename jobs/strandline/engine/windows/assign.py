"""Assigns records to their windows, with the instants at which the windows fire and close."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.position.axis import Axis
from strandline.engine.records.arithmetic import is_window_late


def window_table(spark: SparkSession, slots: pd.DataFrame, axis: Axis) -> DataFrame:
    """The windows of `Calendar.slots` as a DataFrame with one row for each window."""
    columns = {
        c.WINDOW: slots["window_id"],
        c.SLOT: slots["slot_ms"],
        c.SLOT_END: slots["slot_end_ms"],
        c.FIRE_FROM: axis.column(slots["fire_from"]),
        c.CLOSE_FROM: axis.column(slots["close_from"]),
        c.RANK: slots["fire_rank"],
        c.FIRE_AT: slots["fire_at_ms"],
        c.CLOSE_AT: slots["close_at_ms"],
        c.ENDED_AT: slots["ended_at_ms"],
    }
    return small_table(spark, columns)


def newest_window_table(spark: SparkSession, panes: pd.DataFrame, axis: Axis) -> DataFrame:
    """The panes of `Calendar.panes`, each with its newest window, as a DataFrame."""
    columns = {
        c.PANE: panes["pane_ms"],
        c.SLOT: panes["slot_ms"],
        c.SLOT_END: panes["slot_end_ms"],
        c.CLOSE_FROM: axis.column(panes["close_from"]),
        c.ENDED_AT: panes["ended_at_ms"],
        c.MISSED: panes["missed"],
    }
    return small_table(spark, columns)


def pane_table(spark: SparkSession, panes: pd.DataFrame, axis: Axis) -> DataFrame:
    """The panes of `Calendar.panes_within`, each with its windows of a range, as a DataFrame."""
    columns = {
        c.PANE: panes["pane_ms"],
        c.OLDEST: panes["oldest_id"],
        c.NEWEST: panes["newest_id"],
        c.NEWEST_WINDOW: panes["newest_window_id"],
        c.SURE_BEFORE: axis.column(panes["sure_before"]),
        c.NEWEST_CLOSE_FROM: axis.column(panes["newest_close_from"]),
    }
    return small_table(spark, columns)


def refused(records: DataFrame, newest_windows: DataFrame, least_delay_ms: int | None) -> DataFrame:
    """The records that no window accepted, each with CLOSE_FROM of its newest window.

    Windows close in the order of their ends, so a record refused by its newest window is refused by
    all. A record between two windows is in no window, and refused.

    Args:
        records: the well-formed records.
        newest_windows: the panes, each with its newest window.
        least_delay_ms: a record that arrives sooner after its event time is not late: see
            `Calendar.least_delay`. Nearly all records need only this comparison.
    """
    if least_delay_ms is not None:
        records = records.where(F.col(c.ARRIVAL) - F.col(c.TS) >= least_delay_ms)
    placed = records.join(F.broadcast(newest_windows), c.PANE)
    return placed.where(is_window_late() | (F.col(c.MISSED) <= 0))


def in_own_window(records: DataFrame, windows: DataFrame) -> DataFrame:
    """Every record with FIRE_FROM and CLOSE_FROM of its only window, for tumbling windows."""
    own = windows.withColumn(c.PANE, F.col(c.WINDOW))
    return records.join(F.broadcast(own), c.PANE)


def in_each_window(
    records: DataFrame, panes: DataFrame, windows: DataFrame, step_ms: int
) -> DataFrame:
    """Every record once for each of its windows in a range, with its FIRE_FROM and CLOSE_FROM."""
    each = F.sequence(c.OLDEST, c.NEWEST, F.lit(step_ms))
    placed = records.join(F.broadcast(panes), c.PANE).withColumn(c.WINDOW, F.explode(each))
    return placed.join(F.broadcast(windows), c.WINDOW)


def is_kept_elsewhere() -> Column:
    """Whether the window of an assigned record refuses it, and its newest window accepts it."""
    return is_window_late() & ~is_window_late(c.NEWEST_CLOSE_FROM)
