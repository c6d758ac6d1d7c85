"""Windows and panes as small DataFrames, to be broadcast to the records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from strandline.engine import columns as c
from strandline.engine.calendar.placed import turns
from strandline.engine.frames import from_arrow
from strandline.engine.history.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.model.lateness import MAX_WATERMARK

_WHOLE = pa.int64()


def window_table(
    spark: SparkSession, slots: pd.DataFrame, axis: Axis, more: Mapping[str, pa.Array] | None = None
) -> DataFrame:
    """The windows of `Calendar.slots` as a DataFrame with one row a window, and `more` columns."""
    table = pa.table(
        {
            c.WINDOW: _column(slots["window_id"], _WHOLE),
            c.SLOT: _column(slots["slot_ms"], _WHOLE),
            c.SLOT_END: _column(slots["slot_end_ms"], _WHOLE),
            c.FIRE_FROM: _column(slots["fire_from"], axis.kind),
            c.CLOSE_FROM: _column(slots["close_from"], axis.kind),
            c.RANK: _column(slots["fire_rank"], _WHOLE),
            c.FIRE_AT: _column(slots["fire_at_ms"], _WHOLE),
            c.CLOSE_AT: _column(slots["close_at_ms"], _WHOLE),
            c.SLOT_STATE: pa.array(slots["state"].tolist(), pa.string()),
            **(more or {}),
        }
    )
    return from_arrow(spark, table)


def end_columns(slots: pd.DataFrame, history: History, clock: Clock) -> dict[str, pa.Array]:
    """When the input of some slots ends, as columns of their table: ENDS_FROM, ENDS_AT."""
    axis, starts = history.axis, slots["slot_ms"].to_numpy(dtype="int64")
    never = np.full(len(starts), MAX_WATERMARK)
    ends = turns(never, starts, axis, history.crossings, clock)
    return {
        c.ENDS_FROM: _column(pd.Series(ends.seen_from), axis.kind),
        c.ENDS_AT: _column(ends.at_ms, _WHOLE),
    }


def newest_window_table(spark: SparkSession, panes: pd.DataFrame, axis: Axis) -> DataFrame:
    """The panes of `Calendar.panes`, each with its newest window, as a DataFrame."""
    table = pa.table(
        {
            c.PANE: _column(panes["pane_ms"], _WHOLE),
            c.SLOT: _column(panes["slot_ms"], _WHOLE),
            c.SLOT_END: _column(panes["slot_end_ms"], _WHOLE),
            c.CLOSE_FROM: _column(panes["close_from"], axis.kind),
            c.ENDED_AT: _column(panes["ended_at_ms"], _WHOLE),
            c.MISSED: _column(panes["missed"], _WHOLE),
        }
    )
    return from_arrow(spark, table)


def part_table(spark: SparkSession, ahead: pd.DataFrame, axis: Axis) -> DataFrame:
    """The table of `Parts` as a DataFrame."""
    table = pa.table(
        {
            c.PART: _column(ahead["part_ms"], _WHOLE),
            c.AHEAD_BEFORE: _column(ahead["ahead_before"], axis.kind),
        }
    )
    return from_arrow(spark, table)


def pane_table(spark: SparkSession, panes: pd.DataFrame, axis: Axis) -> DataFrame:
    """The panes of `Calendar.panes_within`, each with its windows of a range, as a DataFrame."""
    table = pa.table(
        {
            c.PANE: _column(panes["pane_ms"], _WHOLE),
            c.OLDEST: _column(panes["oldest_id"], _WHOLE),
            c.NEWEST: _column(panes["newest_id"], _WHOLE),
            c.NEWEST_WINDOW: _column(panes["newest_window_id"], _WHOLE),
            c.SURE_BEFORE: _column(panes["sure_before"], axis.kind),
            c.NEWEST_CLOSE_FROM: _column(panes["newest_close_from"], axis.kind),
        }
    )
    return from_arrow(spark, table)


def _column(values: pd.Series[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if pd.isna(value) else int(value) for value in values], kind)
