"""Event-time timers: one for each key, window and time. Flink: `InternalTimerServiceImpl`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from strandline.model.windows import TimeWindow


@dataclass(frozen=True, slots=True, order=True)
class Timer:
    """A call for a window of a key, at the watermark that reaches `time_ms`."""

    time_ms: int
    window: TimeWindow
    key: tuple[Any, ...]


class EventTimeTimers:
    """The timers that are set, in order of time; among equal times Flink knows no order."""

    def __init__(self) -> None:
        """Start with none."""
        self._queue: list[Timer] = []
        self._registered: set[Timer] = set()

    def register(self, timer: Timer) -> None:
        """Set a timer; one that is set already stays one."""
        if timer not in self._registered:
            self._registered.add(timer)
            heappush(self._queue, timer)

    def delete(self, timer: Timer) -> None:
        """Take a timer back, if it is set."""
        self._registered.discard(timer)

    def reached(self, watermark_ms: int) -> Iterator[Timer]:
        """Take out every timer up to, and including, a watermark, in order of time."""
        while self._queue and self._queue[0].time_ms <= watermark_ms:
            timer = heappop(self._queue)
            if timer in self._registered:
                self._registered.discard(timer)
                yield timer
