"""The window operator: what it keeps of a record, when it fires, and what it refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
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
from strandline.model.windows import TimeWindow, WindowAssigner
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
    """What a window of a key holds, in order of acceptance, and by number its firings so far."""

    key: tuple[Any, ...]
    window: TimeWindow
    members: tuple[Record, ...]
    fired: tuple[int, ...] = ()


@dataclass(slots=True)
class _State:
    members: list[Record] = field(default_factory=list)
    fired: list[int] = field(default_factory=list)


class WindowOperator(ABC):
    """Event-time windows under the default trigger, with allowed lateness and late side output.

    Flink: `WindowOperator` with `EventTimeTrigger`.
    """

    def __init__(self, *, allowed_lateness_ms: int) -> None:
        """Start empty, and without a watermark."""
        self._allowed_lateness_ms = allowed_lateness_ms
        self._held: dict[tuple[tuple[Any, ...], TimeWindow], _State] = {}
        self._timers = EventTimeTimers()
        self.watermark_ms = MIN_WATERMARK

    @abstractmethod
    def process(self, record: Record) -> tuple[Fate, list[Pane]]:
        """Take a record in: its fate, and the panes that it fires at once, newest window first."""

    def advance(self, watermark_ms: int) -> Iterator[Pane]:
        """Run the timers that a new watermark reaches: the panes that fire, in order of time."""
        self.watermark_ms = watermark_ms
        for timer in self._timers.reached(watermark_ms):
            if timer.time_ms == timer.window.max_timestamp_ms:
                yield self._pane(timer.key, timer.window)
            if timer.time_ms == self._cleanup_time(timer.window):
                self._drop(timer.key, timer.window)

    def note_firing(self, pane: Pane, number: int) -> None:
        """Keep the number of a pane's firing: a later one of the same state supersedes it."""
        self._held[pane.key, pane.window].fired.append(number)

    def panes(self) -> list[Pane]:
        """What the state still holds, by key and window."""
        return [self._pane(key, window) for key, window in sorted(self._held)]

    def _accept(self, record: Record, window: TimeWindow) -> Pane | None:
        """Take a record into a window's state; the pane, if that fires it at once."""
        self._held.setdefault((record.key, window), _State()).members.append(record)
        fires = is_window_fired(window.max_timestamp_ms, watermark_ms=self.watermark_ms)
        if not fires:
            self._timers.register(Timer(window.max_timestamp_ms, window, record.key))
        self._register_cleanup(record.key, window)
        return self._pane(record.key, window) if fires else None

    def _drop(self, key: tuple[Any, ...], window: TimeWindow) -> _State:
        return self._held.pop((key, window))

    def _pane(self, key: tuple[Any, ...], window: TimeWindow) -> Pane:
        state = self._held[key, window]
        return Pane(key, window, tuple(state.members), tuple(state.fired))

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

    def _refused(self, record: Record) -> Fate:
        """Flink: `isElementLate`, whose sum wraps where `cleanupTime` saturates."""
        limit_ms = wrapping_add(record.ts_ms, self._allowed_lateness_ms)
        return Fate.LATE if limit_ms <= self.watermark_ms else Fate.NO_WINDOW


class GridWindowOperator(WindowOperator):
    """Windows that lie on a grid; each decides on its own."""

    def __init__(self, assigner: WindowAssigner, *, allowed_lateness_ms: int) -> None:
        """Assign records by a rule."""
        super().__init__(allowed_lateness_ms=allowed_lateness_ms)
        self._assigner = assigner

    def process(self, record: Record) -> tuple[Fate, list[Pane]]:
        """Take a record in; it is late only if none of its windows took it.

        Its fate is that in its newest window, or in the newest that took it.
        """
        accepted = [w for w in self._assigner.windows_of(record.ts_ms) if not self._is_late(w)]
        if not accepted:
            return self._refused(record), []
        panes = [self._accept(record, window) for window in accepted]
        fate = Fate.ON_TIME if panes[0] is None else Fate.LATE_ACCEPTED
        return fate, [pane for pane in panes if pane is not None]


class SessionOperator(WindowOperator):
    """Sessions: a record's window is merged with all that it overlaps or touches.

    Lateness is judged after merging: a session in flight saves a record that comes too late by
    itself. Flink: `WindowOperator` with a `MergingWindowAssigner`, but for its loss of state where
    a new window equals a merged one: here that is one session more that the record joins.
    """

    def __init__(self, gap_ms: int | None, *, allowed_lateness_ms: int) -> None:
        """Close a session after a gap without a record; None: each record has its own gap."""
        super().__init__(allowed_lateness_ms=allowed_lateness_ms)
        self._gap_ms = gap_ms
        self._in_flight: dict[tuple[Any, ...], set[TimeWindow]] = {}

    def process(self, record: Record) -> tuple[Fate, list[Pane]]:
        """Take a record in, unless the session that it would make or join is dropped already."""
        gap_ms = record.gap_ms if self._gap_ms is None else self._gap_ms
        if gap_ms is None:
            msg = f"record {record.record_id} has no session gap"
            raise TypeError(msg)
        window = TimeWindow(record.ts_ms, record.ts_ms + gap_ms)
        in_flight = self._in_flight.setdefault(record.key, set())
        touched = sorted(other for other in in_flight if other.intersects(window))
        for other in touched:
            window = window.cover(other)
        if self._is_late(window):
            return self._refused(record), []
        self._merge(record.key, touched, window)
        in_flight.add(window)
        pane = self._accept(record, window)
        return (Fate.ON_TIME, []) if pane is None else (Fate.LATE_ACCEPTED, [pane])

    def _merge(self, key: tuple[Any, ...], parts: list[TimeWindow], window: TimeWindow) -> None:
        if parts == [window]:
            return
        merged = _State()
        for part in parts:
            state = self._drop(key, part)
            merged.members += state.members
            merged.fired += state.fired
            self._timers.delete(Timer(part.max_timestamp_ms, part, key))
            self._timers.delete(Timer(self._cleanup_time(part), part, key))
        if parts:
            self._held[key, window] = merged

    def _drop(self, key: tuple[Any, ...], window: TimeWindow) -> _State:
        self._in_flight[key].discard(window)
        return super()._drop(key, window)
