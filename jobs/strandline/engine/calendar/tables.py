"""Windows and panes as small DataFrames, to be broadcast to the records."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.position.axis import Axis


def window_table(spark: SparkSession, slots: pd.DataFrame, axis: Axis) -> DataFrame:
    """The windows of `Calendar.slots` as a DataFrame with one row a window."""
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
