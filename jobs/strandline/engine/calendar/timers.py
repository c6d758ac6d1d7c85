"""When windows fire that do so before their end, too: at the times of a continuous trigger.

The times of a window are the multiples of the interval inside it, then its last millisecond.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from strandline.engine import columns as c
from strandline.engine.calendar.placed import turns
from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import WIDEST_MS, Grid
from strandline.model.lateness import MAX_WATERMARK

Longs = npt.NDArray[Any]


def times_of(grid: Grid, windows: Longs) -> tuple[Longs, Longs]:
    """The times of some windows, those of a window together, and how many each window has."""
    interval_ms, last = grid.interval_ms or WIDEST_MS, grid.fire_thresholds(windows)
    starts = grid.starts_of(windows)
    first = starts - starts % interval_ms + interval_ms
    counts = np.maximum((last - first + interval_ms - 1) // interval_ms, 0) + 1
    nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    times = np.repeat(first, counts) + nth * interval_ms
    return np.minimum(times, np.repeat(last, counts)), counts


def most_times(grid: Grid) -> int:
    """The most times that a window can have."""
    return 1 if grid.interval_ms is None else -(-grid.size_ms // grid.interval_ms) + 1


def timer_columns(slots: pd.DataFrame, history: History, clock: Clock) -> dict[str, pa.Array]:
    """The timers of some slots (see `Calendar.slots`), as columns of their table.

    TIMES, TIME_RANKS, TIMES_AT: of each time of a window the first instant that sees it reached, by
    which channel, and the millisecond. LAST_TIME: the last one that is reached, counted back from
    the window's end, which is 0; null: none. And those of `end_columns`.
    """
    axis, ids = history.axis, slots["window_id"].to_numpy(dtype="int64")
    starts = slots["slot_ms"].to_numpy(dtype="int64")
    times, counts = times_of(history.grid, ids)
    each = turns(times, np.repeat(starts, counts), axis, history.crossings, clock)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    reached = np.concatenate([[0], np.cumsum(each.seen_from < axis.never)])
    known = reached[bounds[1:]] - reached[bounds[:-1]]
    columns = {
        c.TIMES: (each.seen_from, axis.kind),
        c.TIME_RANKS: (each.rank, pa.int64()),
        c.TIMES_AT: (each.at_ms, pa.int64()),
    }
    return {
        name: pa.ListArray.from_arrays(bounds.astype(np.int32), _column(values, kind))
        for name, (values, kind) in columns.items()
    } | {
        c.LAST_TIME: _column(pd.Series(known - counts, dtype="Int64").mask(known == 0), pa.int32()),
        **end_columns(slots, history, clock),
    }


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
