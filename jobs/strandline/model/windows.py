"""Time windows and the rules that assign a record to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow:
    """A half-open interval `[start_ms, end_ms)` of event time. Flink: `TimeWindow`."""

    start_ms: int
    end_ms: int

    @property
    def max_timestamp_ms(self) -> int:
        """The last millisecond inside: `end_ms - 1`."""
        return self.end_ms - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether two sessions merge: they overlap, or touch. Flink: `TimeWindow#intersects`."""
        return self.start_ms <= other.end_ms and self.end_ms >= other.start_ms

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both. Flink: `TimeWindow#cover`."""
        return TimeWindow(min(self.start_ms, other.start_ms), max(self.end_ms, other.end_ms))


GLOBAL_WINDOW = TimeWindow(MIN_WATERMARK, MAX_WATERMARK + 1)
"""All of time: its last millisecond is the end of the input. Flink: `GlobalWindow`."""


class WindowAssigner(ABC):
    """Windows whose starts lie on a grid, from `offset_ms` on: all except sessions."""

    offset_ms: int

    @property
    @abstractmethod
    def step_ms(self) -> int:
        """The distance between the starts of two neighbouring windows."""

    def newest_start(self, ts_ms: int) -> int:
        """The start of the newest window of an event time: its window with the latest start.

        Between two windows (a slide beyond the size) it is the start of the window before. Flink:
        `TimeWindow#getWindowStartWithOffset`; this is a floor, so negative times need no care.
        """
        return ts_ms - (ts_ms - self.offset_ms) % self.step_ms

    @abstractmethod
    def windows_of(self, ts_ms: int) -> Sequence[TimeWindow]:
        """Every window that contains an event time, newest first; between two windows: none."""


@dataclass(frozen=True)
class TumblingWindows(WindowAssigner):
    """Windows of one size, side by side, from `offset_ms` on in both directions.

    Flink: `TumblingEventTimeWindows`.
    """

    size_ms: int
    offset_ms: int = 0

    @property
    def step_ms(self) -> int:
        """The size, since each window begins where the one before ends."""
        return self.size_ms

    def windows_of(self, ts_ms: int) -> tuple[TimeWindow, ...]:
        """The window of an event time."""
        start = self.newest_start(ts_ms)
        return (TimeWindow(start, start + self.size_ms),)


GLOBAL_WINDOWS = TumblingWindows(
    GLOBAL_WINDOW.end_ms - GLOBAL_WINDOW.start_ms, GLOBAL_WINDOW.start_ms
)
"""The one window that holds everything. Flink: `GlobalWindows`."""


@dataclass(frozen=True)
class SlidingWindows(WindowAssigner):
    """Windows of one size that start every `slide_ms`; a slide beyond the size leaves gaps.

    Flink: `SlidingEventTimeWindows`; the size need not be a multiple of the slide.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    @property
    def step_ms(self) -> int:
        """The slide."""
        return self.slide_ms

    def windows_of(self, ts_ms: int) -> tuple[TimeWindow, ...]:
        """Every window of an event time, newest first; none between two windows."""
        starts = range(self.newest_start(ts_ms), ts_ms - self.size_ms, -self.slide_ms)
        return tuple(TimeWindow(start, start + self.size_ms) for start in starts)


@dataclass(frozen=True)
class CumulativeWindows(WindowAssigner):
    """Windows that grow by a step up to a size, and then begin again.

    A size of an hour and a step of 20 minutes give [0:00, 0:20), [0:00, 0:40), [0:00, 1:00), [1:00,
    1:20), … Flink SQL: `CUMULATE`, under the default trigger. The longest one of an event time
    counts as its newest.
    """

    max_size_ms: int
    cumulate_step_ms: int
    offset_ms: int = 0

    @property
    def step_ms(self) -> int:
        """The largest size, since the windows begin again at each of its multiples."""
        return self.max_size_ms

    def windows_of(self, ts_ms: int) -> tuple[TimeWindow, ...]:
        """Every window that contains an event time, longest first; all have the same start."""
        start = self.newest_start(ts_ms)
        ends = range(start + self.max_size_ms, ts_ms, -self.cumulate_step_ms)
        return tuple(TimeWindow(start, end) for end in ends)
