"""Triggers: when a window fires, and whether the firing empties it; small state machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from strandline.model.lateness import is_window_fired
from strandline.model.windows import TimeWindow
from strandline.reference.records import Record
from strandline.reference.timers import EventTimeTimers, Timer
from strandline.spec.trigger import Continuous, Count, Delta, EndOfInput, Never, Trigger


class TriggerResult(Enum):
    """The decision of a trigger. Flink: `TriggerResult`; no trigger here purges without firing."""

    CONTINUE = 0
    FIRE = 1
    FIRE_AND_PURGE = 2


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """The window, watermark and timers that a trigger works with. Flink: `TriggerContext`."""

    key: tuple[Any, ...]
    window: TimeWindow
    watermark_ms: int
    timers: EventTimeTimers

    def register_timer(self, time_ms: int) -> None:
        """Register a timer: `on_event_time` is called when the watermark reaches a time."""
        self.timers.register(Timer(time_ms, self.window, self.key))

    def delete_timer(self, time_ms: int) -> None:
        """Delete a timer."""
        self.timers.delete(Timer(time_ms, self.window, self.key))


class WindowTrigger(ABC):
    """A trigger and its state for one window of a key. Flink: `Trigger`."""

    @abstractmethod
    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """React to a record that was just added to the window."""

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """React to a timer of the window, or to its cleanup time."""
        return TriggerResult.CONTINUE

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Combine the state of the sessions that have merged into this one.

        Raises:
            TypeError: a trigger of this kind cannot merge.
        """
        msg = f"{type(self).__name__} cannot merge"
        raise TypeError(msg)

    def clear(self, context: TriggerContext) -> None:
        """Delete the timers of a window that is removed."""
        context.delete_timer(context.window.max_timestamp_ms)


class EventTimeTrigger(WindowTrigger):
    """Fires at the window's end, then with each late record. Flink: `EventTimeTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Fire if the end has passed; else register a timer for it."""
        return _at_once_or_at_the_end(context)

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return _fire_if(time_ms == context.window.max_timestamp_ms)

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Register a timer for the end of the merged session, unless that has passed."""
        _at_once_or_at_the_end(context)


class ContinuousEventTimeTrigger(WindowTrigger):
    """Fires at multiples of an interval, at the window's end, and then with each late record.

    The first record to arrive registers the next multiple after its event time, even if a later
    record has an earlier event time. Flink: `ContinuousEventTimeTrigger`.
    """

    def __init__(self, interval_ms: int) -> None:
        """Fire at the multiples of an interval in ms."""
        self._interval_ms = interval_ms
        self._next_ms: int | None = None

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Fire if the end has passed; else register timers for the end and for the next time."""
        result = _at_once_or_at_the_end(context)
        if result is TriggerResult.CONTINUE and self._next_ms is None:
            self._wait_from(_java_floor(record.ts_ms, self._interval_ms), context)
        return result

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end; also at the next time, and register the one after it."""
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
        """Delete the timers for the next time and for the end."""
        super().clear(context)
        if self._next_ms is not None:
            context.delete_timer(self._next_ms)

    def _wait_from(self, time_ms: int, context: TriggerContext) -> None:
        self._next_ms = min(time_ms + self._interval_ms, context.window.max_timestamp_ms)
        context.register_timer(self._next_ms)


class CountTrigger(WindowTrigger):
    """Fires whenever a number of records has come; never at the end. Flink: `CountTrigger`."""

    def __init__(self, most: int) -> None:
        """Fire after a number of records."""
        self._most = most
        self._count = 0

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Count a record; at the limit fire, and restart from zero."""
        self._count += 1
        if self._count < self._most:
            return TriggerResult.CONTINUE
        self._count = 0
        return TriggerResult.FIRE

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Add up the counts; only the next record compares the sum with the limit."""
        self._count = sum(part._count for part in merged)


class DeltaTrigger(WindowTrigger):
    """Fires when a value differs from the last firing's value by more than a threshold.

    Flink: `DeltaTrigger`, which cannot merge.
    """

    def __init__(self, threshold: float) -> None:
        """Fire if the distance is larger than a threshold."""
        self._threshold = threshold
        self._reference: float | None = None

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Compare a value with the last one that fired, and before that with the first one."""
        value = _value(record)
        if self._reference is None:
            self._reference = value
        elif abs(value - self._reference) > self._threshold:
            self._reference = value
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE


class NeverTrigger(WindowTrigger):
    """Never fires. Flink: `NeverTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Return CONTINUE."""
        return TriggerResult.CONTINUE


class EndOfStreamTrigger(WindowTrigger):
    """Fires at the end of the input. Flink: `GlobalWindows.EndOfStreamTrigger`."""

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Register a timer for the end."""
        context.register_timer(context.window.max_timestamp_ms)
        return TriggerResult.CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return _fire_if(time_ms == context.window.max_timestamp_ms)


class PurgingTrigger(WindowTrigger):
    """A trigger whose firings empty the window; its own state stays. Flink: `PurgingTrigger`."""

    def __init__(self, nested: WindowTrigger) -> None:
        """Wrap a trigger, which then purges whenever it fires."""
        self._nested = nested

    def on_element(self, record: Record, context: TriggerContext) -> TriggerResult:
        """Purge when the nested trigger fires."""
        return _purging(self._nested.on_element(record, context))

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Purge when the nested trigger fires."""
        return _purging(self._nested.on_event_time(time_ms, context))

    def on_merge(self, merged: Sequence[Self], context: TriggerContext) -> None:
        """Merge the state of the nested trigger."""
        self._nested.on_merge([part._nested for part in merged], context)

    def clear(self, context: TriggerContext) -> None:
        """Clear the state of the nested trigger."""
        self._nested.clear(context)


def trigger_of(trigger: Trigger) -> Callable[[], WindowTrigger]:
    """A factory of a pipeline's trigger, called for each window of a key."""
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
    """`ts - ts % interval` by Java's `%`: a time before 1970 is rounded up, towards zero."""
    return abs(ts_ms) // interval_ms * interval_ms * (1 if ts_ms >= 0 else -1)


def _value(record: Record) -> float:
    if record.trigger_value is None:
        msg = f"record {record.record_id} has no value for the trigger"
        raise TypeError(msg)
    return record.trigger_value
