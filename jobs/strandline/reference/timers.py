"""Event-time timers: one for each key, window and time. Flink: `InternalTimerServiceImpl`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from strandline.model.windows import TimeWindow


@dataclass(frozen=True, slots=True, order=True)
class Timer:
    """A timer for a window of a key, which fires when the watermark reaches `time_ms`."""

    time_ms: int
    window: TimeWindow
    key: tuple[Any, ...]


class EventTimeTimers:
    """The registered timers, in order of time; Flink defines no order among equal times."""

    def __init__(self) -> None:
        """Start without a timer."""
        self._queue: list[Timer] = []
        self._registered: set[Timer] = set()

    def register(self, timer: Timer) -> None:
        """Register a timer; registering it again has no effect."""
        if timer not in self._registered:
            self._registered.add(timer)
            heappush(self._queue, timer)

    def delete(self, timer: Timer) -> None:
        """Delete a timer, if it is registered."""
        self._registered.discard(timer)

    def pop_reached(self, watermark_ms: int) -> Iterator[Timer]:
        """Remove and yield the timers with a time up to a watermark, inclusive, in order of time.

        A timer that the caller registers meanwhile is yielded too, if it is due. Flink:
        `InternalTimerServiceImpl#advanceWatermark`.
        """
        while self._queue and self._queue[0].time_ms <= watermark_ms:
            timer = heappop(self._queue)
            if timer in self._registered:
                self._registered.discard(timer)
                yield timer
