"""The window operator for session windows, which merge."""

from __future__ import annotations

from typing import Any

from strandline.model.windows import TimeWindow
from strandline.reference.answer import FiredPane, Outcome, Pane
from strandline.reference.records import Record
from strandline.reference.timers import Timer
from strandline.reference.windows import WindowOperator, WindowState


class SessionOperator(WindowOperator):
    """Sessions: a record's window is merged with all windows that it overlaps or touches.

    Lateness is decided after merging: an open session accepts a record that would be too late by
    itself. Flink: `WindowOperator` with a `MergingWindowAssigner`. One difference: if a session is
    the result of a merge, and the own window of a later record has exactly its start and end, Flink
    forgets the records of the session; here it keeps them.
    """

    def __init__(self, gap_ms: int | None, **how: Any) -> None:
        """Close a session after a gap without a record; None: each record has its own gap."""
        super().__init__(**how)
        self._gap_ms = gap_ms
        self._in_flight: dict[tuple[Any, ...], set[TimeWindow]] = {}
        self._places: dict[str, int] = {}

    def process(self, record: Record) -> tuple[Outcome, list[FiredPane]]:
        """Process a record, unless the session that it would create or join is already dropped."""
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
        self._places[record.record_id] = len(self._places)
        return self._accepted(window), list(self._accept(record, window))

    def panes(self) -> list[Pane]:
        """The sessions still in state, also without a record: even an emptied session merges."""
        return self._panes()

    def _merge(self, key: tuple[Any, ...], parts: list[TimeWindow], window: TimeWindow) -> None:
        if parts in ([], [window]):
            return
        states = [self._states[key, part] for part in parts]
        merged = self._state(key, window)
        merged.trigger.on_merge([s.trigger for s in states], self._context(key, window))
        for part, state in zip(parts, states, strict=True):
            self._drop(key, part)
            self._timers.delete(Timer(self._cleanup_time(part), part, key))
            merged.members += state.members
            merged.fired += state.fired
            merged.fired_ids |= state.fired_ids
        # Flink's order follows a hash table; the order of arrival is the most frequent one
        merged.members.sort(key=lambda record: self._places[record.record_id])

    def _drop(self, key: tuple[Any, ...], window: TimeWindow) -> WindowState:
        self._in_flight[key].discard(window)
        return super()._drop(key, window)
