"""A long range in pieces: rebuilt one after the other they give what the range in one go gives."""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import pairwise

import numpy as np

from strandline.engine.past.history import History
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of


def in_pieces(history: History, within: TimeRange, most_records: int) -> list[TimeRange]:
    """A range of window starts, cut where its records would be too many for one rebuild.

    What a rebuild holds on the driver grows with the cells of its range, of which there are at most
    as many as records. By the law of ranges windows do not depend on what is rebuilt with them.
    """
    borders = [border for border in _borders(history, within, most_records) if border in within]
    edges = [within.start_ms, *(at for at in borders if at > within.start_ms), within.end_ms]
    return [TimeRange(*piece) for piece in pairwise(edges)]


def _borders(history: History, within: TimeRange, most_records: int) -> list[int]:
    """Where a range is cut: at midnights, and within a day that alone has too many records."""
    events = history.days.events_of(within)
    held = history.days.held
    reaches = (held["largest_ts_ms"] >= events.start_ms) & (held["least_ts_ms"] < events.end_ms)
    inside = held[reaches.astype(bool)]
    by_date = Counter[date]()
    for event_date, count in zip(inside["event_date"], inside["records"], strict=True):
        by_date[event_date] += int(count)
    borders: list[int] = []
    records = 0
    for event_date, of_date in sorted(by_date.items()):
        midnight_ms, parts = midnight_of(event_date), -(-of_date // most_records)
        if records + of_date > most_records:
            borders += [midnight_ms + part * DAY_MS // parts for part in range(parts)]
            records = of_date // parts
        else:
            records += of_date
    starts = history.grid.newest_starts(np.array(borders, dtype=np.int64))
    return sorted(set(starts.tolist()))
