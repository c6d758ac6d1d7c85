"""Gaps: slots (windows over all keys) that are known to be empty.

A slot without a record is a gap if it lies after the first slot that accepted a record, and either
a later slot has a record or a later arrival day ended without one. A record between two windows
counts in the slot before it, which is then no gap.

More than `MOST_LISTED` consecutive gaps are one row for each state: a record with a wrong clock,
years away, causes one row and not thousands. The rows must be the same however runs divide the
history. Therefore a run lists all gaps next to the slots that it rebuilds, also outside its range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.timeline import CellQuery
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    TimeRange,
    day_of,
    midnight_before,
    midnight_of,
    parts_outside,
)

MOST_LISTED = 1_000
"""The largest number of consecutive gaps that are listed one by one."""
AT_ONCE = 100_000
"""The largest number of rows of gaps on the driver."""
_Longs = npt.NDArray[np.int64]
_LEAST_AND_LARGEST = ("least_ts_ms", "largest_ts_ms")


def silent_until(history: History, horizon_ms: int) -> int | None:
    """The start of the last completed arrival day without a record, in ms; None: there is none.

    Every empty slot that ends by this midnight is a gap.
    """
    arrived = history.days.day_map["arrived_ms"]
    if not len(arrived):
        return None
    with_records, first_ms = set(arrived.tolist()), int(arrived.min())
    midnight_ms = midnight_before(min(horizon_ms, END_OF_INSTANTS_MS - 1)) - DAY_MS
    while midnight_ms in with_records:
        midnight_ms -= DAY_MS
    return midnight_ms if midnight_ms > first_ms else None


@dataclass(frozen=True)
class Gaps:
    """The gaps of a history.

    Attributes:
        history: everything observed below the horizon.
        clock: the horizon and the inputs that have ended.
        first: the id of the first window that accepted a record; None: none has.
    """

    history: History
    clock: Clock
    first: int | None
    _times: dict[date, _Longs] = field(default_factory=dict, compare=False)

    def counts(
        self, within: TimeRange, filled: Collection[int], known: Iterable[TimeRange]
    ) -> tuple[int, int]:
        """The number of gaps in a range, and the number of the gaps that are known.

        Args:
            within: the range of window starts.
            filled: the ids of the windows in it that have a record.
            known: disjoint ranges; a gap is known if it lies whole in one of them.
        """
        grid = self.history.grid
        ids = grid.ids_within(within)
        in_order = sorted(window for window in {*filled} if window in self._possible)
        inside = (
            range(max(ids.start, one.start), min(ids.stop, one.stop), ids.step)
            for one in map(grid.ids_inside, known)
        )
        return self._count(ids, in_order), sum(self._count(one, in_order) for one in inside)

    def _count(self, ids: range, in_order: Sequence[int]) -> int:
        """The number of gaps among some windows.

        `in_order`: the windows that have a record and would be gaps without it, ascending.
        """
        possible = self._of(ids)
        before, until = bisect_left(in_order, possible.start), bisect_left(in_order, possible.stop)
        return len(possible) - (until - before)

    def around(self, ids: range, filled: Collection[int]) -> Iterator[range]:
        """All runs of consecutive gaps that lie among some windows or border on them, as ids.

        Args:
            ids: the windows.
            filled: the ids of the windows among them that have a record.
        """
        step = self.history.grid.step_ms
        if not len(ids):
            return
        start, stop = self._first_of_row(ids.start), self._end_of_row(ids.stop)
        borders = [start - step, *sorted(window for window in {*filled} if window in ids), stop]
        for before, behind in pairwise(borders):
            row = self._of(range(before + step, behind, step))
            if len(row):
                yield row

    def has_record(self, window: int) -> bool:
        """Whether a window has a record, or is the last one before a record between two windows."""
        first = self._first_from(self.history.grid.starts_of(window))
        return first is not None and first[0] <= window

    def listed(self, rows: Iterable[range]) -> Iterator[pd.DataFrame]:
        """Rows for runs of gaps, with the columns of slots; at most `AT_ONCE` rows in a DataFrame.

        Args:
            rows: the runs in order, disjoint.

        Yields:
            `window_id`, `slot_ms`, `slots` (how many windows the row stands for; null: one), and
            the columns of `slot_times`. A row for several slots has the start of the first one and
            all other values of the last one.
        """
        step, grid = self.history.grid.step_ms, self.history.grid
        stretches = chain.from_iterable(map(self._stretches, rows))
        while some := [*islice(stretches, AT_ONCE)]:
            first = np.array([window for window, _ in some], dtype=np.int64)
            counts = np.array([count for _, count in some], dtype=np.int64)
            last = (first + (counts - 1) * step).tolist()
            places = slot_times(last, self.history, self.clock)
            slots = pd.Series(counts, dtype="Int64").mask(counts == 1)
            yield places.assign(window_id=first, slot_ms=grid.starts_of(first), slots=slots)

    def _stretches(self, row: range) -> Iterator[tuple[int, int]]:
        """The first window of each row of a run of gaps, and the number of the row's windows."""
        if len(row) <= MOST_LISTED:
            yield from ((window, 1) for window in row)
            return
        ends = (self.history.grid.ids_within(one.windows) for one in self.clock.closures)
        inside = {edge for ids in ends for edge in (ids.start, ids.stop) if edge in row}
        parts = (
            part
            for start, stop in pairwise([row.start, *sorted(inside - {row.start}), row.stop])
            for part in self._of_one_state(range(start, stop, row.step))
        )
        for _, of_one_state in groupby(parts, key=itemgetter(0)):
            of_state = [part for _, part in of_one_state]
            yield of_state[0].start, sum(map(len, of_state))

    def _of_one_state(self, row: range) -> Iterator[tuple[str, range]]:
        """The parts of a run of gaps that have one state each, with the state; older ones first.

        The input of all windows of the run must have ended, or of none.
        """
        first, last = slot_times([row[0], row[-1]], self.history, self.clock)["state"]
        if first == last:
            yield first, row
            return
        half = len(row) // 2
        yield from self._of_one_state(row[:half])
        yield from self._of_one_state(row[half:])

    def starts_of(self, row: range) -> TimeRange:
        """The range of window starts of a run of gaps."""
        grid = self.history.grid
        return TimeRange(grid.starts_of(row[0]), grid.starts_of(row[-1]) + 1)

    @cached_property
    def _possible(self) -> range:
        """The range of ids in which an empty window is a gap."""
        grid, days = self.history.grid, self.history.days
        step = grid.step_ms
        if self.first is None or days.events is None or grid.all_time:
            return range(0)
        _, stop = self._windows_of(days.events.end_ms - 1)
        silent_ms = silent_until(self.history, self.clock.horizon_ms)
        if silent_ms is not None:
            latest = grid.last_id_by(silent_ms)
            stop = max(stop, latest - (latest - grid.offset_ms) % step + step)
        return range(self.first + step, max(stop, self.first + step), step)

    def _of(self, ids: range) -> range:
        """The ids of a range that may be gaps."""
        start, stop = max(ids.start, self._possible.start), min(ids.stop, self._possible.stop)
        return range(start, max(start, stop), self.history.grid.step_ms)

    def _first_of_row(self, window: int) -> int:
        """The first of the empty windows just before a window; the window itself if none is."""
        step = self.history.grid.step_ms
        if window - step not in self._possible or self.has_record(window - step):
            return window
        last = self._last_before(self.history.grid.starts_of(window - step))
        return self._possible.start if last is None else max(last + step, self._possible.start)

    def _end_of_row(self, window: int) -> int:
        """The id after the empty windows that begin with a window; its own id if it is filled."""
        if window not in self._possible or self.has_record(window):
            return window
        first = self._first_from(self.history.grid.starts_of(window))
        return self._possible.stop if first is None else min(first[0], self._possible.stop)

    def _windows_of(self, ts_ms: int) -> tuple[int, int]:
        """The oldest and newest window of an event time; between two windows, the window before."""
        grid = self.history.grid
        oldest, newest = grid.windows_of_panes(grid.panes_of(np.array([ts_ms])))
        return min(int(oldest[0]), int(newest[0])), int(newest[0])

    def _last_before(self, instant_ms: int) -> int | None:
        """The newest window of the last record before an instant; None: there is no such record."""
        least, largest = self._ranges
        whole = largest[largest < instant_ms]
        times = [int(whole.max())] if len(whole) else []
        if np.count_nonzero(least < instant_ms) > len(whole):
            of_date = self._times_of(day_of(instant_ms - 1))
            times += of_date[of_date < instant_ms][-1:].tolist()
        return self._windows_of(max(times))[1] if times else None

    def _first_from(self, instant_ms: int) -> tuple[int, int] | None:
        """The oldest and newest window of the first record from an instant on; None: no record."""
        least, largest = self._ranges
        whole = least[least >= instant_ms]
        times = [int(whole.min())] if len(whole) else []
        if np.count_nonzero(largest >= instant_ms) > len(whole):
            of_date = self._times_of(day_of(instant_ms))
            times += of_date[of_date >= instant_ms][:1].tolist()
        return self._windows_of(min(times)) if times else None

    @cached_property
    def _ranges(self) -> tuple[_Longs, _Longs]:
        """The least and the largest event time of each arrival day and event date."""
        of_days = self.history.days.day_map
        least, largest = (of_days[name].to_numpy(dtype="int64") for name in _LEAST_AND_LARGEST)
        return least, largest

    def _times_of(self, event_date: date) -> _Longs:
        """The least event time of each cell of an event date, ascending."""
        if event_date not in self._times:
            start_ms = midnight_of(event_date)
            of_date, step = TimeRange(start_ms, start_ms + DAY_MS), self.history.grid.step_ms
            cells = self.history.timeline.cells(
                CellQuery(
                    self.history.days.of_events(of_date),
                    slots=TimeRange(start_ms - step, start_ms + DAY_MS),
                    columns=["slot_ms", "least_ts_ms"],
                )
            )
            self._times[event_date] = np.unique(cells["least_ts_ms"].to_numpy(dtype="int64"))
        return self._times[event_date]


def ids_outside(row: range, others: Iterable[range]) -> list[range]:
    """The parts of consecutive windows that lie in none of some others, all as ids."""
    apart = [TimeRange(ids.start, ids.stop) for ids in others]
    parts = parts_outside([TimeRange(row.start, row.stop)], apart)
    return [range(part.start_ms, part.end_ms, row.step) for part in parts]
