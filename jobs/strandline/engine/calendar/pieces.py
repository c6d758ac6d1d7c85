"""A long range in pieces: rebuilt one after the other they give what the range in one go gives."""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd

from strandline.engine.past.history import History
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of


def in_pieces(history: History, within: TimeRange, most_cells: int) -> list[TimeRange]:
    """A range of window starts, cut where its cells would be too many for one rebuild.

    What a rebuild holds on the driver grows with the cells of its range. By the law of ranges
    windows do not depend on what is rebuilt with them.
    """
    borders = [border for border in _borders(history, within, most_cells) if border in within]
    edges = [within.start_ms, *(at for at in borders if at > within.start_ms), within.end_ms]
    return [TimeRange(*piece) for piece in pairwise(edges)]


def _borders(history: History, within: TimeRange, most_cells: int) -> list[int]:
    """Where a range is cut: at midnights, and within a day that alone has too many cells.

    There are at most as many cells as records: they are counted only where these are too many.
    """
    events = history.days.events_of(within)
    held = history.days.held
    reaches = (held["largest_ts_ms"] >= events.start_ms) & (held["least_ts_ms"] < events.end_ms)
    inside = held[reaches.astype(bool)]
    by_date = Counter[date]()
    for event_date, count in zip(inside["event_date"], inside["records"], strict=True):
        by_date[event_date] += int(count)
    borders: list[int] = []
    cells = 0
    for event_date, records in sorted(by_date.items()):
        of_date, within_ms = records, list[int]()
        if records > most_cells:
            slots_ms = _slots_of_cells(history, inside, event_date)
            of_date, parts = len(slots_ms), -(-len(slots_ms) // most_cells)
            within_ms = [int(slots_ms[of_date * part // parts]) for part in range(1, parts)]
        if cells + of_date > most_cells:
            borders += [midnight_of(event_date), *within_ms]
            cells = of_date // (len(within_ms) + 1)
        else:
            cells += of_date
    starts = history.grid.newest_starts(np.array(borders, dtype=np.int64))
    return sorted(set(starts.tolist()))


def _slots_of_cells(history: History, held: pd.DataFrame, event_date: date) -> np.ndarray:
    """The slot of each cell of an event date, in order."""
    days = held.loc[held["event_date"] == event_date, "arrival_date"].tolist()
    midnight_ms = midnight_of(event_date)
    of_date = TimeRange(midnight_ms, midnight_ms + DAY_MS)
    cells = history.timeline.cells(days, slots=of_date, columns=["slot_ms"])
    return np.sort(cells["slot_ms"].to_numpy(dtype="int64"))
