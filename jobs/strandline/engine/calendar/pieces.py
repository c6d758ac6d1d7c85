"""A long range as several ranges, whose rebuilds give the rows of a rebuild of the whole range."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd

from strandline.engine.history.history import History
from strandline.engine.timeline import CellQuery
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of


def divided_by_cells(history: History, within: TimeRange, most_cells: int) -> list[TimeRange]:
    """A range of window starts as consecutive ranges of at most about `most_cells` cells each.

    A cell is a row of the timeline (`CELL_COLUMNS`). The driver's memory for a rebuild
    grows with the cells of its range. A window is the same whatever range it is rebuilt with, so
    dividing the range changes no result.
    """
    borders = _borders(history, within, most_cells)
    inside = [at_ms for at_ms in borders if within.start_ms < at_ms < within.end_ms]
    return [TimeRange(*piece) for piece in pairwise([within.start_ms, *inside, within.end_ms])]


def _borders(history: History, within: TimeRange, most_cells: int) -> list[int]:
    """The instants that divide a range: midnights, and some within a day that has too many cells.

    There are at most as many cells as records, so cells are counted only where records are too
    many.
    """
    day_map = history.days.rows_of(history.days.events_of(within))
    borders: list[int] = []
    cells = 0
    by_date = day_map.groupby("event_date")["records"].sum()
    for event_date, records in zip(by_date.index, by_date.astype("int64"), strict=True):
        of_date, within_ms = records, list[int]()
        if records > most_cells:
            slots_ms = _slots_of_cells(history, day_map, event_date)
            of_date, within_ms = len(slots_ms), _cut(slots_ms, most_cells)
        if cells + of_date > most_cells:
            borders += [midnight_of(event_date), *within_ms]
            cells = of_date // (len(within_ms) + 1)
        else:
            cells += of_date
    starts = history.grid.newest_starts(np.array(borders, dtype=np.int64))
    return sorted(set(starts.tolist()))


def _cut(slots_ms: np.ndarray, most_cells: int) -> list[int]:
    """The slots at which a day is divided into parts with equal numbers of cells."""
    cells = len(slots_ms)
    parts = -(-cells // most_cells)
    return [int(slots_ms[cells * part // parts]) for part in range(1, parts)]


def _slots_of_cells(history: History, day_map: pd.DataFrame, event_date: date) -> np.ndarray:
    """The slot of each cell of an event date, ascending."""
    days = day_map.loc[day_map["event_date"] == event_date, "arrival_date"].tolist()
    midnight_ms = midnight_of(event_date)
    of_date = TimeRange(midnight_ms, midnight_ms + DAY_MS)
    cells = history.timeline.cells(CellQuery(days, slots=of_date, columns=["slot_ms"]))
    return np.sort(cells["slot_ms"].to_numpy(dtype="int64"))
