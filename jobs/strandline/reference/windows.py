"""The window operator: what it keeps of a record, when it fires, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from strandline.model.lateness import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    cleanup_time,
    is_window_fired,
    is_window_late,
    wrapping_add,
)
from strandline.model.windows import TimeWindow, TumblingWindows
from strandline.reference.records import Record
from strandline.reference.timers import EventTimeTimers, Timer


class Fate(StrEnum):
    """What became of a record, by its newest window."""

    ON_TIME = "on_time"
    LATE_ACCEPTED = "late_accepted"
    LATE = "late"
    NO_WINDOW = "no_window"


@dataclass(frozen=True, slots=True)
class Pane:
    """What a window of a key holds, in order of acceptance."""

    key: tuple[Any, ...]
    window: TimeWindow
    members: tuple[Record, ...]


class WindowOperator:
    """Event-time windows under the default trigger, with allowed lateness and late side output.

    Flink: `WindowOperator` with `EventTimeTrigger`.
    """

    def __init__(self, assigner: TumblingWindows, *, allowed_lateness_ms: int) -> None:
        """Start empty, and without a watermark."""
        self._assigner = assigner
        self._allowed_lateness_ms = allowed_lateness_ms
        self._members: dict[tuple[tuple[Any, ...], TimeWindow], list[Record]] = {}
        self._timers = EventTimeTimers()
        self.watermark_ms = MIN_WATERMARK

    def process(self, record: Record) -> tuple[Fate, list[Pane]]:
        """Take a record in: its fate, and the panes that it fires at once, newest window first.

        Each window decides on its own; the record is late only if none of them took it.
        """
        fates: list[Fate] = []
        fired: list[Pane] = []
        for window in self._assigner.windows_of(record.ts_ms):
            if self._is_late(window):
                continue
            self._members.setdefault((record.key, window), []).append(record)
            if is_window_fired(window.max_timestamp_ms, watermark_ms=self.watermark_ms):
                fates.append(Fate.LATE_ACCEPTED)
                fired.append(self._pane(record.key, window))
            else:
                fates.append(Fate.ON_TIME)
                self._timers.register(Timer(window.max_timestamp_ms, window, record.key))
            self._register_cleanup(record.key, window)
        if fates:
            return fates[0], fired
        return (Fate.LATE if self._is_side_output(record) else Fate.NO_WINDOW), fired

    def advance(self, watermark_ms: int) -> Iterator[Pane]:
        """Run the timers that a new watermark reaches: the panes that fire, in order of time."""
        self.watermark_ms = watermark_ms
        for timer in self._timers.reached(watermark_ms):
            if timer.time_ms == timer.window.max_timestamp_ms:
                yield self._pane(timer.key, timer.window)
            if timer.time_ms == self._cleanup_time(timer.window):
                del self._members[timer.key, timer.window]

    def panes(self) -> list[Pane]:
        """What the state still holds, by key and window."""
        return [self._pane(key, window) for key, window in sorted(self._members)]

    def _pane(self, key: tuple[Any, ...], window: TimeWindow) -> Pane:
        return Pane(key, window, tuple(self._members[key, window]))

    def _cleanup_time(self, window: TimeWindow) -> int:
        return cleanup_time(window.max_timestamp_ms, allowed_lateness_ms=self._allowed_lateness_ms)

    def _register_cleanup(self, key: tuple[Any, ...], window: TimeWindow) -> None:
        cleanup_ms = self._cleanup_time(window)
        # Flink: a cleanup at the end of time is never scheduled, not even for the end of the input
        if cleanup_ms != MAX_WATERMARK:
            self._timers.register(Timer(cleanup_ms, window, key))

    def _is_late(self, window: TimeWindow) -> bool:
        return is_window_late(
            window.max_timestamp_ms,
            allowed_lateness_ms=self._allowed_lateness_ms,
            watermark_ms=self.watermark_ms,
        )

    def _is_side_output(self, record: Record) -> bool:
        """Flink: `isElementLate`, whose sum wraps where `cleanupTime` saturates."""
        return wrapping_add(record.ts_ms, self._allowed_lateness_ms) <= self.watermark_ms
