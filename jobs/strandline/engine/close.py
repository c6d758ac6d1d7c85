"""close: the slots of a range as a small table, for every record to be joined with its own."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from strandline.engine import columns as c
from strandline.engine.axis import Axis


def slot_table(spark: SparkSession, slots: pd.DataFrame, axis: Axis) -> DataFrame:
    """The slots of `History.slots` as a DataFrame; one row a slot."""
    instant = pa.decimal128(38, 0) if axis.sequenced else pa.int64()
    whole = pa.int64()
    table = pa.table(
        {
            c.SLOT: _column(slots["slot_ms"], whole),
            c.SLOT_END: _column(slots["slot_end_ms"], whole),
            c.FIRE_FROM: _column(slots["fire_from"], instant),
            c.CLOSE_FROM: _column(slots["close_from"], instant),
            c.RANK: _column(slots["fire_rank"], whole),
            c.FIRE_AT: _column(slots["fire_at_ms"], whole),
            c.ENDED_AT: _column(slots["ended_at_ms"], whole),
            c.CLOSE_AT: _column(slots["close_at_ms"], whole),
            c.SLOT_STATE: pa.array(slots["state"].tolist(), pa.string()),
        }
    )
    return spark.createDataFrame(table)


def _column(values: pd.Series[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if pd.isna(value) else int(value) for value in values], kind)
