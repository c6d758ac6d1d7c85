"""Triggers: when a window fires, and whether that empties it. Small state machines, as Flink's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, Self

from strandline.model.lateness import is_window_fired
from strandline.model.windows import TimeWindow
from strandline.reference.records import Record
from strandline.spec.trigger import Continuous, Count, Delta, EndOfInput, Never, Trigger


class TriggerResult(Enum):
    """What becomes of a window. Flink: `TriggerResult`; no trigger here purges without firing."""

    CONTINUE = 0
    FIRE = 1
    FIRE_AND_PURGE = 2


class TriggerContext(Protocol):
    """What a trigger sees and sets of its window of a key. Flink: `TriggerContext`."""

    @property
    def window(self) -> TimeWindow:
        """The window."""

    @property
    def watermark_ms(self) -> int:
        """The current watermark."""

    def register_timer(self, time_ms: int) -> None:
        """Ask to be called at the watermark that reaches a time."""

    def delete_timer(self, time_ms: int) -> None:
        """Take that back."""


class WindowTrigger(ABC):
    """A trigger with its state of one window of a key. Flink: `Trigger`."""

    @abstractmethod
    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """A record has come into the window; it is there already."""

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """The watermark has reached a timer of the window, or its cleanup time."""
        return TriggerResult.CONTINUE

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Take over the state of the sessions that have become this one.

        Raises:
            TypeError: a trigger of this kind cannot merge.
        """
        msg = f"{type(self).__name__} cannot merge"
        raise TypeError(msg)

    def clear(self, context: TriggerContext) -> None:
        """Take back the timers: the window goes."""
        context.delete_timer(context.window.max_timestamp_ms)


class EventTimeTrigger(WindowTrigger):
    """At the window's end, then with each record that comes late. Flink: `EventTimeTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Fire if the end has passed; else wait for it."""
        return _at_once_or_at_the_end(context)

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return _fire_if(time_ms == context.window.max_timestamp_ms)

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Wait for the end of the merged session, unless it has passed."""
        _at_once_or_at_the_end(context)


class ContinuousEventTimeTrigger(WindowTrigger):
    """At every multiple of an interval from the first record on, at the end, then when late.

    The next time stands from the first record that comes, whatever comes later with an earlier
    event time. Flink: `ContinuousEventTimeTrigger`.
    """

    def __init__(self, interval_ms: int) -> None:
        """Fire at multiples of this."""
        self._interval_ms = interval_ms
        self._next_ms: int | None = None

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Fire if the end has passed; else wait for the end, and for the next time."""
        result = _at_once_or_at_the_end(context)
        if result is TriggerResult.CONTINUE and self._next_ms is None:
            self._wait_from(_java_floor(record.ts_ms, self._interval_ms), context)
        return result

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end; at the next time, too, and wait for the one after it."""
        if time_ms == context.window.max_timestamp_ms:
            return TriggerResult.FIRE
        if time_ms != self._next_ms:
            return TriggerResult.CONTINUE
        self._wait_from(time_ms, context)
        return TriggerResult.FIRE

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Keep the earliest of the next times, even one that has passed."""
        times = [part._next_ms for part in merged if part._next_ms is not None]
        self._next_ms = min(times, default=None)
        if self._next_ms is not None:
            context.register_timer(self._next_ms)

    def clear(self, context: TriggerContext) -> None:
        """Wait for the next time no longer, nor for the end."""
        super().clear(context)
        if self._next_ms is not None:
            context.delete_timer(self._next_ms)

    def _wait_from(self, time_ms: int, context: TriggerContext) -> None:
        self._next_ms = min(time_ms + self._interval_ms, context.window.max_timestamp_ms)
        context.register_timer(self._next_ms)


class CountTrigger(WindowTrigger):
    """At every so many records; never at the end. Flink: `CountTrigger`."""

    def __init__(self, most: int) -> None:
        """Fire at this many."""
        self._most = most
        self._count = 0

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Count; at the number fire, and count from zero again."""
        self._count += 1
        if self._count < self._most:
            return TriggerResult.CONTINUE
        self._count = 0
        return TriggerResult.FIRE

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Add the counts up; only the next record compares."""
        self._count = sum(part._count for part in merged)


class DeltaTrigger(WindowTrigger):
    """Where a value is further than a threshold from that of the last one that fired.

    Flink: `DeltaTrigger`, which cannot merge.
    """

    def __init__(self, threshold: float) -> None:
        """Fire beyond this distance, strictly."""
        self._threshold = threshold
        self._reference: float | None = None

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Compare with the reference: the first value, then each that fired."""
        value = _value(record)
        if self._reference is None:
            self._reference = value
        elif abs(value - self._reference) > self._threshold:
            self._reference = value
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE


class NeverTrigger(WindowTrigger):
    """Never. Flink: `NeverTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE


class EndOfStreamTrigger(WindowTrigger):
    """At the end of the input. Flink: `GlobalWindows.EndOfStreamTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Wait for the end."""
        context.register_timer(context.window.max_timestamp_ms)
        return TriggerResult.CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return _fire_if(time_ms == context.window.max_timestamp_ms)


class PurgingTrigger(WindowTrigger):
    """Another trigger whose firings empty the window; its state stays. Flink: `PurgingTrigger`."""

    def __init__(self, nested: WindowTrigger) -> None:
        """Ask another trigger."""
        self._nested = nested

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Purge where the other fires."""
        return _purging(self._nested.on_element(record, context))

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Purge where the other fires."""
        return _purging(self._nested.on_event_time(time_ms, context))

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Let the other merge."""
        self._nested.on_merge([part._nested for part in merged], context)

    def clear(self, context: TriggerContext) -> None:
        """Let the other clear."""
        self._nested.clear(context)


def trigger_of(trigger: Trigger) -> Callable[[], WindowTrigger]:
    """What makes a fresh trigger of a pipeline's kind, for each window of a key."""
    if not trigger.purging:
        return lambda: _fresh(trigger)
    return lambda: PurgingTrigger(_fresh(trigger))


def _fresh(trigger: Trigger) -> WindowTrigger:
    match trigger:
        case Continuous():
            return ContinuousEventTimeTrigger(trigger.continuous)
        case Count():
            return CountTrigger(trigger.count)
        case Delta():
            return DeltaTrigger(trigger.delta)
        case Never():
            return NeverTrigger()
        case EndOfInput():
            return EndOfStreamTrigger()
        case _:
            return EventTimeTrigger()


def _at_once_or_at_the_end(context: TriggerContext) -> TriggerResult:
    max_timestamp_ms = context.window.max_timestamp_ms
    if is_window_fired(max_timestamp_ms, watermark_ms=context.watermark_ms):
        return TriggerResult.FIRE
    context.register_timer(max_timestamp_ms)
    return TriggerResult.CONTINUE


def _fire_if(condition: bool) -> TriggerResult:
    return TriggerResult.FIRE if condition else TriggerResult.CONTINUE


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


def _java_floor(ts_ms: int, interval_ms: int) -> int:
    """`ts - ts % interval` as Java counts: towards zero, so that before 1970 it rounds up."""
    return abs(ts_ms) // interval_ms * interval_ms * (1 if ts_ms >= 0 else -1)


def _value(record: Record) -> float:
    if record.trigger_value is None:
        msg = f"record {record.record_id} has no value for the trigger"
        raise TypeError(msg)
    return record.trigger_value
