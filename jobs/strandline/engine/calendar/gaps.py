"""Gaps: windows without a record although earlier and later ones have some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.calendar.slots import Calendar
from strandline.engine.past.history import History
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of

MOST_GAPS = 1_000_000
"""More gaps than this in one range are counted, not listed."""


@dataclass(frozen=True)
class Gaps:
    """The gaps among the windows of a calendar."""

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
        windows = self.calendar.windows
        filled = windows[windows["has_record"].astype(bool)]
        ids: npt.NDArray[np.int64] = filled["window_id"].to_numpy(dtype="int64")
        return ids

    @cached_property
    def _edges(self) -> tuple[int, int] | None:
        """The first and the last window with a record, of the whole history."""
        history = self.calendar.history
        first = _first_window(history, history.days.every)
        last = _last_window(history, history.days.every)
        return None if first is None or last is None else (first, last)

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
    first = _first_window(history, history.days.every)
    earlier = set(history.days.between(None, since_ms)["arrival_date"])
    first_earlier = _first_window(history, earlier)
    if first is None:
        return []
    until_ms = before_ms
    if first_earlier is not None:
        until_ms = min(before_ms, _start_of(history, first_earlier))
    first_ms = _start_of(history, first)
    return [TimeRange(first_ms, until_ms)] if first_ms < until_ms else []


def _first_window(history: History, days: Collection[date]) -> int | None:
    """The first window with a record that arrived on some days."""
    return next(_windows_by_date(history, days, newest_first=False), None)


def _last_window(history: History, days: Collection[date]) -> int | None:
    """The last window with a record that arrived on some days."""
    return next(_windows_by_date(history, days, newest_first=True), None)


def _windows_by_date(
    history: History, days: Collection[date], *, newest_first: bool
) -> Iterator[int]:
    """The first, or last, window of each event date; none of one that lies in gaps alone."""
    held = history.days.held
    of_days = held[held["arrival_date"].isin(list(days))]
    for event_date in sorted(of_days["event_date"].unique(), reverse=newest_first):
        here = of_days[of_days["event_date"] == event_date]
        cells = here
        if history.grid.has_gaps:
            cells = _cells_of_date(history, here["arrival_date"].unique(), event_date)
        ts = cells["largest_ts_ms" if newest_first else "least_ts_ms"].to_numpy(dtype="int64")
        oldest, newest = history.grid.windows_of_panes(history.grid.panes_of(ts))
        there = oldest <= newest
        if there.any():
            yield int(newest[there].max() if newest_first else oldest[there].min())


def _cells_of_date(history: History, days: Collection[date], event_date: date) -> pd.DataFrame:
    start_ms = midnight_of(event_date)
    slots = TimeRange(start_ms - history.grid.span_ms, start_ms + DAY_MS)
    cells = history.timeline.cells(days, slots=slots)
    return cells[cells["event_date"] == event_date]


def _start_of(history: History, window: int) -> int:
    return int(history.grid.starts_of(np.array([window]))[0])
