"""The windows of a pipeline as numbers, and the *thresholds*: watermarks that fire or close them.

Each window has an *id*: its start in ms, a cumulative window its end. Ids differ by multiples of
the step. The windows of a record are the ids from `oldest` to `newest`; all records of a *pane*, an
interval of event time, have the same windows. A *slot* is a window over all keys; for sessions, an
interval of their calendar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import MAX_WATERMARK, last_late_end
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Cumulative, Session, Sliding, WindowOfAllTime

WIDEST_MS = 400_000_000_000_000
"""More than the years 0001 to 9999: such a window always leaves them, and no sum overflows."""
_MOST_PARTS = 3_600
"""The largest number of parts of a slot of a sessions' calendar: a second of an hour."""
_PARTS_OF_A_GAP = 8
_ALL_TIME_MS = END_OF_INSTANTS_MS - 1 - LEAST_INSTANT_MS
"""The years 0001 to 9999 without the last millisecond, since the end is an instant, too."""
Longs = npt.NDArray[Any]
_Ms = TypeVar("_Ms", int, Longs)
"""One instant, or an array of instants."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The windows of a pipeline, and the thresholds of the watermark at which they fire and close.

    Attributes:
        step_ms: the distance of neighbouring windows: the size, the slide or the step.
        offset_ms: the start of a step, in [0, `span_ms`).
        size_ms: the size of the longest window with a start.
        span_ms: the distance of neighbouring starts.
        cut_ms: the time within a step from which a record has one sliding window less; 0: none.
        cumulative: whether windows grow by the step up to the size; then ids are ends.
        allowed_lateness_ms: the allowed lateness.
        threshold_step_ms: the distance of neighbouring firing thresholds: the step, or a part of
            it.
        all_time: whether there is one window of all time, which ends only with the input.
    """

    step_ms: int
    offset_ms: int
    size_ms: int
    span_ms: int
    cut_ms: int
    cumulative: bool
    allowed_lateness_ms: int
    threshold_step_ms: int
    all_time: bool = False

    @classmethod
    def of(cls, spec: PipelineSpec) -> Grid:
        """The grid of a pipeline's windows; for sessions, the slots of their calendar.

        Sessions lie on no grid. Their own thresholds are looked up between the thresholds of the
        grid, of which a slot has several: the shorter the gap, the closer they are. Global and
        counting windows are one slot of all time.
        """
        window, lateness_ms = spec.window, spec.allowed_lateness
        if isinstance(window, Session):
            slot_ms = min(spec.quality.session_slot, WIDEST_MS)
            part_ms = _part_of_slot(slot_ms, window.gap_ms)
            return cls(slot_ms, 0, slot_ms, slot_ms, 0, False, lateness_ms, part_ms)
        if isinstance(window, Sliding):
            size_ms, step_ms = min(window.sliding, WIDEST_MS), min(window.every, WIDEST_MS)
            offset_ms, cut_ms = window.offset % step_ms, size_ms % step_ms
            return cls(step_ms, offset_ms, size_ms, step_ms, cut_ms, False, lateness_ms, step_ms)
        if isinstance(window, Cumulative) and window.step < window.cumulative:
            step_ms = min(window.step, WIDEST_MS)
            size_ms = min(window.cumulative, WIDEST_MS // step_ms * step_ms)
            offset_ms = window.offset % size_ms
            return cls(step_ms, offset_ms, size_ms, size_ms, 0, True, lateness_ms, step_ms)
        if isinstance(window, WindowOfAllTime):
            size_ms, offset_ms = _ALL_TIME_MS, LEAST_INSTANT_MS % _ALL_TIME_MS
            return cls(size_ms, offset_ms, size_ms, size_ms, 0, False, lateness_ms, size_ms, True)
        whole_ms = window.cumulative if isinstance(window, Cumulative) else window.tumbling
        size_ms = min(whole_ms, WIDEST_MS)
        offset_ms = window.offset % size_ms
        return cls(size_ms, offset_ms, size_ms, size_ms, 0, False, lateness_ms, size_ms)

    @property
    def one_window_each(self) -> bool:
        """Whether every record has exactly one window, which is also its pane: tumbling windows."""
        return self.step_ms == self.size_ms == self.span_ms

    @property
    def most_windows(self) -> int:
        """The largest number of windows of a record."""
        return -(-self.size_ms // self.step_ms)

    @property
    def reach_ms(self) -> int:
        """The longest distance from a window's start to an event time that it counts, exclusive."""
        return max(self.size_ms, self.span_ms)

    @property
    def residues(self) -> tuple[int, ...]:
        """The thresholds modulo their step: of firing and, if different, of closing."""
        step = self.threshold_step_ms
        fire = (self.offset_ms + self.size_ms - 1) % step
        return tuple(dict.fromkeys((fire, (fire + self.allowed_lateness_ms) % step)))

    def parts(self, delay_ms: int | None) -> tuple[int, ...]:
        """The offsets in a step, in ms, from which event times have other windows or thresholds.

        `delay_ms`: a record's event time minus the watermark that it offers; None: it varies.
        """
        cuts = {self.cut_ms}
        if delay_ms is not None:
            step = self.threshold_step_ms
            cuts |= {(r + delay_ms - self.offset_ms) % step for r in self.residues}
        return tuple(sorted(cuts - {0}))

    @property
    def crosses_midnights(self) -> bool:
        """Whether a step can have records of two dates."""
        return bool(DAY_MS % self.step_ms or self.offset_ms % self.step_ms)

    @property
    def id_edge(self) -> str:
        """The edge of a window that is its id: `start`, or `end`."""
        return "end" if self.cumulative else "start"

    def ids_of(self, starts: _Ms, ends: _Ms) -> _Ms:
        """The id of a window by its edges in ms; or of each of some windows."""
        return ends if self.cumulative else starts

    def newest_ids(self, starts: _Ms) -> _Ms:
        """The id of the newest window with a start in ms; or of each of some starts."""
        return self.ids_of(starts, starts + self.size_ms)

    def starts_of(self, ids: _Ms) -> _Ms:
        """The start of a window in ms, by its id; or of each of some windows."""
        return self.newest_starts(ids - 1) if self.cumulative else ids

    def ends_of(self, ids: _Ms) -> _Ms:
        """The end of a window in ms, by its id; or of each of some windows."""
        return ids if self.cumulative else ids + self.size_ms

    def newest_starts(self, ts_ms: _Ms) -> _Ms:
        """The start of the newest window of an event time, or of each of some event times."""
        starts: _Ms = ts_ms - (ts_ms - self.offset_ms) % self.span_ms
        return starts

    def panes_of(self, ts_ms: Longs) -> Longs:
        """The starts of the panes of some event times."""
        into = (ts_ms - self.offset_ms) % self.step_ms
        panes: Longs = ts_ms - into + np.where(into >= self.cut_ms, self.cut_ms, 0)
        return panes

    def windows_of_panes(self, panes: Longs) -> tuple[Longs, Longs]:
        """The ids of the oldest and of the newest window of some panes; oldest > newest: none."""
        steps = panes - (panes - self.offset_ms) % self.step_ms
        if self.cumulative:
            return steps + self.step_ms, self.newest_ids(self.newest_starts(steps))
        back = self.size_ms // self.step_ms * self.step_ms
        let_go = np.where((panes > steps) | (self.cut_ms == 0), self.step_ms, 0)
        return steps - back + let_go, steps

    def has_windows(self, starts: Longs, ends: Longs) -> npt.NDArray[np.bool_]:
        """Whether each (start, end) is a window of the grid."""
        ids = self.ids_of(starts, ends)
        on_grid = (ids - self.offset_ms) % self.step_ms == 0
        fits = (self.starts_of(ids) == starts) & (self.ends_of(ids) == ends)
        return np.asarray(on_grid & fits, dtype=bool)

    def ids_within(self, within: TimeRange) -> range:
        """The ids of the windows that start in a range."""
        first, end = (
            instant_ms + (self.offset_ms - instant_ms) % self.span_ms
            for instant_ms in (within.start_ms, within.end_ms)
        )
        ahead = self.step_ms if self.cumulative else 0
        return range(first + ahead, end + ahead, self.step_ms)

    def ids_inside(self, within: TimeRange) -> range:
        """The ids of the windows that lie whole in a range."""
        ids, last = self.ids_within(within), self.last_id_by(within.end_ms)
        return range(ids.start, min(ids.stop, last + 1), ids.step)

    def last_id_by(self, end_ms: _Ms) -> _Ms:
        """The largest number that an id of a window which ends by an instant can have."""
        return self.ids_of(end_ms - self.size_ms, end_ms)

    def run_of(self, starts: _Ms, ends: _Ms, windows: _Ms) -> tuple[_Ms, _Ms, Any]:
        """The first and last id of `windows` consecutive windows; whether the grid has them."""
        last = self.last_id_by(ends)
        first = last - (windows - 1) * self.step_ms
        on_grid = (last - self.offset_ms) % self.step_ms == 0
        return first, last, on_grid & (self.starts_of(first) == starts)

    def sharing(self, within: TimeRange) -> TimeRange:
        """The starts of all windows that can share records with windows that start in a range."""
        if self.one_window_each or self.cumulative:  # windows that share records start together
            return within
        start_ms = max(within.start_ms - self.size_ms + 1, LEAST_INSTANT_MS)
        return TimeRange(start_ms, min(within.end_ms + self.size_ms - 1, END_OF_INSTANTS_MS))

    def starts_with(self, start_ms: int) -> range:
        """The starts of all windows of the records whose newest window starts at an instant."""
        if self.one_window_each or self.cumulative:
            return range(start_ms, start_ms + 1)
        return range(start_ms - (self.most_windows - 1) * self.step_ms, start_ms + 1, self.step_ms)

    def largest_thresholds(self, candidates: pd.Series[Any]) -> pd.Series[Any]:
        """The largest threshold that each offered watermark reaches; null: it reaches none.

        The form over arrays of `watermark.cells.largest_threshold`.
        """
        known, least = candidates.astype("Int64"), LEAST_INSTANT_MS
        values = known.to_numpy("int64", na_value=least - 1).clip(least - 1)
        step = self.threshold_step_ms
        reached = [values - (values - residue) % step for residue in self.residues]
        largest = reduce(np.maximum, reached)
        found = pd.Series(largest, index=candidates.index, dtype="Int64", name=candidates.name)
        return found.mask(known.isna() | (largest < least))

    def events_of(self, within: TimeRange) -> TimeRange:
        """The event times of records with a window that starts in a range.

        Includes records between two windows, which are counted in the window before.
        """
        ids = self.ids_within(within)
        if not len(ids):
            return TimeRange(within.start_ms, within.start_ms)
        last_ms = self.starts_of(ids[-1])
        return TimeRange(self.starts_of(ids[0]), last_ms + self.reach_ms)

    def fire_thresholds(self, windows: Longs) -> Longs:
        """The watermarks that fire some windows: the array form of `max_timestamp_ms`."""
        if self.all_time:
            return np.full_like(windows, MAX_WATERMARK)
        return self.ends_of(windows) - 1

    def close_thresholds(self, windows: Longs) -> Longs:
        """The watermarks at which the state of windows is removed: `cleanup_time` over an array."""
        fire, lateness_ms = self.fire_thresholds(windows), self.allowed_lateness_ms
        overflows = fire > MAX_WATERMARK - lateness_ms
        close: Longs = np.where(overflows, 0, fire) + lateness_ms
        return np.where(overflows, MAX_WATERMARK, close)

    def edges_around(self, within: TimeRange) -> tuple[int, int]:
        """The last firing threshold below a range, and the first one above it."""
        step, last = self.threshold_step_ms, self.residues[0]
        below, past = within.start_ms - 1, within.end_ms
        return below - (below - last) % step, past + (last - past) % step

    def first_open(self, watermark_ms: int) -> int:
        """The start of the first window that a watermark does not close.

        Of the cumulative windows with one start, the longest counts.
        """
        late_ms = last_late_end(watermark_ms, allowed_lateness_ms=self.allowed_lateness_ms)
        return self._start_from(late_ms + 1 - self.size_ms)

    def first_not_final(self, watermark_ms: int) -> int:
        """The start of the first window that a watermark does not make final.

        Later windows may still change. So may the counts of missed records in older windows that
        share records with them, so such older windows are not final either.
        """
        shared_ms = 0 if self.cumulative else (self.most_windows - 1) * self.step_ms
        return self._start_from(self.first_open(watermark_ms) - shared_ms)

    def _start_from(self, instant_ms: int) -> int:
        """The first start of a window from an instant on; the first instant if every start is."""
        if instant_ms <= LEAST_INSTANT_MS:
            return LEAST_INSTANT_MS
        return instant_ms + (self.offset_ms - instant_ms) % self.span_ms


def gap_of(spec: PipelineSpec) -> int | None:
    """The gap of all sessions in ms; None: each record has a gap of its own.

    Raises:
        TypeError: the windows are no sessions.
    """
    if not isinstance(spec.window, Session):
        msg = f"{spec.pipeline} has no sessions"
        raise TypeError(msg)
    return spec.window.gap_ms


def _part_of_slot(slot_ms: int, gap_ms: int | None) -> int:
    """The length of the equal parts of a slot, shorter than a gap where possible."""
    wanted = _MOST_PARTS if gap_ms is None else -(-slot_ms * _PARTS_OF_A_GAP // gap_ms)
    most = min(wanted, _MOST_PARTS, slot_ms)
    return slot_ms // next(parts for parts in range(most, 0, -1) if slot_ms % parts == 0)
