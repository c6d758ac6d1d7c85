"""Gaps: slots without a record although earlier and later ones have some.

A record in a gap between windows counts in the slot before it, which is no gap then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.calendar.slots import Calendar
from strandline.engine.past.history import History
from strandline.engine.position.grid import Grid
from strandline.model.intervals import TimeRange

MOST_GAPS = 1_000_000
"""More gaps than this in one range are counted, not listed."""


@dataclass(frozen=True)
class Gaps:
    """The gaps among the slots of a calendar."""

    calendar: Calendar

    def count(self, within: TimeRange) -> int:
        """How many windows of a range are gaps."""
        between, filled = self._between(within), self._filled
        inside = (filled >= between.start) & (filled < between.stop)
        return len(between) - int(inside.sum())

    def listed(self, ranges: Iterable[TimeRange]) -> pd.DataFrame:
        """The gaps of some ranges, placed like slots; none of a range with more than `MOST_GAPS`.

        Returns:
            `window_id`, `slot_ms`, and the columns of `placed`.
        """
        filled, ids = set(self._filled.tolist()), set[int]()
        for within in ranges:
            if 0 < self.count(within) <= MOST_GAPS:
                ids.update(window for window in self._between(within) if window not in filled)
        windows = np.array(sorted(ids), dtype=np.int64)
        starts = self.calendar.history.grid.starts_of(windows)
        return self.calendar.placed(windows.tolist()).assign(window_id=windows, slot_ms=starts)

    @cached_property
    def _filled(self) -> npt.NDArray[np.int64]:
        ids: npt.NDArray[np.int64] = self.calendar.windows["window_id"].to_numpy(dtype="int64")
        return ids

    @cached_property
    def _edges(self) -> tuple[int, int] | None:
        """The first and the last slot with a record, of the whole history, by the day map."""
        days = self.calendar.history.days
        if days.events is None:
            return None
        first, _ = _windows_of(days.grid, days.events.start_ms)
        _, last = _windows_of(days.grid, days.events.end_ms - 1)
        return first, last

    def _between(self, within: TimeRange) -> range:
        """The windows of a range from the first one with a record to the last one, left out.

        By their ids, which are all of one step: what is empty among them is a gap.
        """
        if self._edges is None:
            return range(0)
        first, last = self._edges
        asked = self.calendar.history.grid.ids_within(within)
        start, stop = max(asked.start, first), min(asked.stop, last)
        return range(start, max(start, stop), asked.step)


def new_before(history: History, since_ms: int, before_ms: int) -> list[TimeRange]:
    """Where arrivals from a midnight on have made gaps before an instant: ahead of all others."""
    days = history.days
    if days.events is None:
        return []
    grid, earlier = days.grid, days.between(None, since_ms)["least_ts_ms"]
    until_ms = before_ms
    if len(earlier):
        until_ms = min(before_ms, _first_start(grid, int(earlier.min())))
    first_ms = _first_start(grid, days.events.start_ms)
    return [TimeRange(first_ms, until_ms)] if first_ms < until_ms else []


def _first_start(grid: Grid, ts_ms: int) -> int:
    first, _ = _windows_of(grid, ts_ms)
    return int(grid.starts_of(np.array([first]))[0])


def _windows_of(grid: Grid, ts_ms: int) -> tuple[int, int]:
    """The oldest and the newest window of an event time; in a gap both are the one before it."""
    oldest, newest = grid.windows_of_panes(grid.panes_of(np.array([ts_ms])))
    return min(int(oldest[0]), int(newest[0])), int(newest[0])
