"""Time windows and the rule that assigns a record to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow:
    """A half-open interval `[start_ms, end_ms)` of event time. Flink: `TimeWindow`."""

    start_ms: int
    end_ms: int

    @property
    def max_timestamp_ms(self) -> int:
        """The last millisecond inside: `end_ms - 1`."""
        return self.end_ms - 1


@dataclass(frozen=True, slots=True)
class TumblingWindows:
    """Windows of one size, side by side, from `offset_ms` on in both directions.

    Flink: `TumblingEventTimeWindows`; the start is a floor, so negative times need no care.
    """

    size_ms: int
    offset_ms: int = 0

    @property
    def step_ms(self) -> int:
        """The distance between the starts of two neighbouring windows."""
        return self.size_ms

    def newest_start(self, ts_ms: int) -> int:
        """The start of the newest window that can hold an event time.

        Flink: `TimeWindow#getWindowStartWithOffset`.
        """
        return ts_ms - (ts_ms - self.offset_ms) % self.step_ms

    def windows_of(self, ts_ms: int) -> tuple[TimeWindow, ...]:
        """Every window of an event time, newest first."""
        start = self.newest_start(ts_ms)
        return (TimeWindow(start, start + self.size_ms),)

    def ceil_start(self, instant_ms: int) -> int:
        """The first window start at or after an instant."""
        return instant_ms + (self.offset_ms - instant_ms) % self.step_ms
