"""When the input of windows ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from strandline.engine import columns as c
from strandline.engine.calendar.placed import turns
from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock
from strandline.model.lateness import MAX_WATERMARK


def end_columns(slots: pd.DataFrame, history: History, clock: Clock) -> dict[str, pa.Array]:
    """When the input of some slots ends, as columns of their table: ENDS_FROM, ENDS_AT."""
    axis, starts = history.axis, slots["slot_ms"].to_numpy(dtype="int64")
    never = np.full(len(starts), MAX_WATERMARK)
    ends = turns(never, starts, axis, history.crossings, clock)
    return {
        c.ENDS_FROM: _column(ends.seen_from, axis.kind),
        c.ENDS_AT: _column(ends.at_ms, pa.int64()),
    }


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return pa.array([None if pd.isna(value) else int(value) for value in values], kind)
