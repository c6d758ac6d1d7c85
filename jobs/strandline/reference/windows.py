"""The window operator: its state, when windows fire, and which records it refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from strandline.model.lateness import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    cleanup_time,
    is_window_fired,
    is_window_late,
    wrapping_add,
)
from strandline.model.windows import GLOBAL_WINDOW, TimeWindow, WindowAssigner
from strandline.reference.answer import FiredPane, Outcome, Pane, Timing
from strandline.reference.evictors import Keep
from strandline.reference.records import Record
from strandline.reference.timers import EventTimeTimers, Timer
from strandline.reference.triggers import (
    EventTimeTrigger,
    TriggerContext,
    TriggerResult,
    WindowTrigger,
)


@dataclass(slots=True)
class WindowState:
    """The state of a window of a key.

    Attributes:
        trigger: its trigger, with the trigger's state.
        members: its records, in order of arrival.
        fired: its firings whose records are all still in the window.
        fired_ids: the ids of the records that were in a firing, or were evicted before one.
    """

    trigger: WindowTrigger
    members: list[Record] = field(default_factory=list)
    fired: list[FiredPane] = field(default_factory=list)
    fired_ids: set[str] = field(default_factory=set)

    def keep(self, members: list[Record]) -> None:
        """Keep only some records; earlier firings with a removed one leave `fired`.

        So no later firing supersedes them.
        """
        removed = {r.record_id for r in self.members} - {r.record_id for r in members}
        self.members = members
        if removed:
            self.fired = [
                p for p in self.fired if removed.isdisjoint(r.record_id for r in p.members)
            ]


class WindowOperator(ABC):
    """Event-time windows with a trigger, an evictor, allowed lateness and late side output.

    Flink: `WindowOperator`, and `EvictingWindowOperator`.
    """

    def __init__(
        self,
        *,
        allowed_lateness_ms: int,
        trigger: Callable[[], WindowTrigger] = EventTimeTrigger,
        evict_before: Keep | None = None,
        evict_after: Keep | None = None,
    ) -> None:
        """Start empty, and without a watermark.

        Args:
            allowed_lateness_ms: how long a window is kept after its end.
            trigger: makes a fresh trigger for each window of a key.
            evict_before: gives the records that stay in a window, before it fires; None: all.
            evict_after: gives the records that stay in a window after it has fired; None: all.
        """
        self._allowed_lateness_ms = allowed_lateness_ms
        self._trigger = trigger
        self._evict_before, self._evict_after = evict_before, evict_after
        self._states: dict[tuple[tuple[Any, ...], TimeWindow], WindowState] = {}
        self._timers = EventTimeTimers()
        self._firings = 0
        self.unfired: list[Pane] = []
        self.accepted_late: list[tuple[Record, TimeWindow]] = []
        self.watermark_ms = MIN_WATERMARK

    @abstractmethod
    def process(self, record: Record) -> tuple[Outcome, list[FiredPane]]:
        """Process a record; its outcome, and the firings that it causes, newest window first."""

    def advance(self, watermark_ms: int) -> Iterator[FiredPane]:
        """Fire the timers that a new watermark reaches, and yield the firings, in order of time."""
        before_ms, self.watermark_ms = self.watermark_ms, watermark_ms
        for timer in self._timers.pop_reached(watermark_ms):
            key, window = timer.key, timer.window
            if (key, window) not in self._states:
                continue  # Flink leaves a timer of a session that has become another one
            trigger = self._states[key, window].trigger
            result = trigger.on_event_time(timer.time_ms, self._context(key, window))
            reached = is_window_fired(window.max_timestamp_ms, watermark_ms=before_ms)
            at_end = timer.time_ms == window.max_timestamp_ms
            timing = Timing.LATE if reached else Timing.ON_TIME if at_end else Timing.EARLY
            yield from self._react(result, key, window, timing, timer.time_ms)
            if timer.time_ms == self._cleanup_time(window) != MAX_WATERMARK:
                self._clean_up(key, window)

    def panes(self) -> list[Pane]:
        """The windows with records still in state, by key and window."""
        return [pane for pane in self._panes() if pane.members]

    def _panes(self) -> list[Pane]:
        states = sorted(self._states.items(), key=lambda item: item[0])
        return [Pane(key, window, tuple(state.members)) for (key, window), state in states]

    def _accept(self, record: Record, window: TimeWindow) -> Iterator[FiredPane]:
        """Add a record to a window's state, and fire the window if its trigger says so."""
        state = self._state(record.key, window)
        state.members.append(record)
        result = state.trigger.on_element(record, self._context(record.key, window))
        has_ended = self._has_ended(window)
        if has_ended:
            self.accepted_late.append((record, window))
        timing = Timing.LATE if has_ended else Timing.EARLY
        yield from self._react(result, record.key, window, timing)
        self._register_cleanup(record.key, window)

    def _react(
        self,
        result: TriggerResult,
        key: tuple[Any, ...],
        window: TimeWindow,
        timing: Timing,
        timer_ms: int | None = None,
    ) -> Iterator[FiredPane]:
        """Apply a trigger's decision; a window without a record does not fire."""
        state = self._states[key, window]
        if result is not TriggerResult.CONTINUE and state.members:
            yield self._fire(state, key, window, timing, timer_ms)
        if result is TriggerResult.FIRE_AND_PURGE:
            state.keep([])

    def _fire(
        self,
        state: WindowState,
        key: tuple[Any, ...],
        window: TimeWindow,
        timing: Timing,
        timer_ms: int | None,
    ) -> FiredPane:
        before = state.members
        if self._evict_before:
            state.keep(self._evict_before(before))
        kept = {record.record_id for record in state.members}
        pane = FiredPane(
            key=key,
            window=window,
            members=tuple(state.members),
            seq=self._firings,
            timing=timing,
            timer_ms=timer_ms,
            evicted=tuple(record for record in before if record.record_id not in kept),
            supersedes=tuple(earlier.seq for earlier in state.fired),
        )
        self._firings += 1
        state.fired_ids |= {record.record_id for record in before}
        state.fired.append(pane)
        if self._evict_after and state.members:
            state.keep(self._evict_after(state.members))
        return pane

    def _state(self, key: tuple[Any, ...], window: TimeWindow) -> WindowState:
        if (key, window) not in self._states:
            self._states[key, window] = WindowState(self._trigger())
        return self._states[key, window]

    def _context(self, key: tuple[Any, ...], window: TimeWindow) -> TriggerContext:
        return TriggerContext(key, window, self.watermark_ms, self._timers)

    def _clean_up(self, key: tuple[Any, ...], window: TimeWindow) -> None:
        """Drop a window; records that were in no firing are collected as `unfired`."""
        state = self._drop(key, window)
        unfired = tuple(
            record for record in state.members if record.record_id not in state.fired_ids
        )
        if unfired:
            self.unfired.append(Pane(key, window, unfired))

    def _drop(self, key: tuple[Any, ...], window: TimeWindow) -> WindowState:
        state = self._states.pop((key, window))
        state.trigger.clear(self._context(key, window))
        return state

    def _cleanup_time(self, window: TimeWindow) -> int:
        return cleanup_time(window.max_timestamp_ms, allowed_lateness_ms=self._allowed_lateness_ms)

    def _register_cleanup(self, key: tuple[Any, ...], window: TimeWindow) -> None:
        cleanup_ms = self._cleanup_time(window)
        # Flink: a cleanup at the end of time is never scheduled, not even for the end of the input
        if cleanup_ms != MAX_WATERMARK:
            self._timers.register(Timer(cleanup_ms, window, key))

    def _has_ended(self, window: TimeWindow) -> bool:
        return is_window_fired(window.max_timestamp_ms, watermark_ms=self.watermark_ms)

    def _is_late(self, window: TimeWindow) -> bool:
        return is_window_late(
            window.max_timestamp_ms,
            allowed_lateness_ms=self._allowed_lateness_ms,
            watermark_ms=self.watermark_ms,
        )

    def _accepted(self, newest: TimeWindow) -> Outcome:
        return Outcome.LATE_ACCEPTED if self._has_ended(newest) else Outcome.ON_TIME

    def _refused(self, record: Record) -> Outcome:
        """The outcome of a record that no window accepted: LATE, or NO_WINDOW if it is not late.

        Flink: `WindowOperator#isElementLate`, whose sum wraps around where `cleanupTime` saturates.
        """
        limit_ms = wrapping_add(record.ts_ms, self._allowed_lateness_ms)
        return Outcome.LATE if limit_ms <= self.watermark_ms else Outcome.NO_WINDOW


class GridWindowOperator(WindowOperator):
    """The operator of windows that do not merge: tumbling, sliding and cumulative ones."""

    def __init__(self, assigner: WindowAssigner, **how: Any) -> None:
        """Assign records by `assigner`; for all other arguments, see `WindowOperator`."""
        super().__init__(**how)
        self._assigner = assigner

    def process(self, record: Record) -> tuple[Outcome, list[FiredPane]]:
        """Process a record; it is late only if none of its windows accepted it.

        The newest window that accepted it decides whether it is on time.
        """
        accepted = [w for w in self._assigner.windows_of(record.ts_ms) if not self._is_late(w)]
        if not accepted:
            return self._refused(record), []
        fired = [pane for window in accepted for pane in self._accept(record, window)]
        return self._accepted(accepted[0]), fired


class GlobalWindowOperator(WindowOperator):
    """One window of all time for each key: never late, never cleaned up. Flink: `GlobalWindows`.

    The allowed lateness has no meaning here.
    """

    def process(self, record: Record) -> tuple[Outcome, list[FiredPane]]:
        """Process a record."""
        return Outcome.ON_TIME, list(self._accept(record, GLOBAL_WINDOW))
