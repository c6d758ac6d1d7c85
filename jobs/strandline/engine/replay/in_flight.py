"""The windows of a group that are in state (*in flight*) during its replay, and their timers.

The module is shipped to the engine's workers as text: of the library it imports only `operator_io`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from heapq import heappop, heappush

from strandline.engine.replay.operator_io import Session


@dataclass(slots=True, eq=False)
class Window:
    """A window during the replay.

    Attributes:
        start_ms: the start of the window.
        end_ms: the end of the window.
        members: the places (indices in order of arrival) of its records in state; empty if no
            record ever leaves it: then `size` is enough.
        taken: with merging windows: the places of all records that it has accepted, in any order.
        size: the number of its records.
        in_force: the numbers of the firings whose records are all still in the window, without
            firings that another one of them supersedes.
        fired: with merging windows: the numbers of all its firings, in any order.
        waits_for_end: whether a timer is registered for its last millisecond.
        next_ms: the next multiple of the interval at which it fires.
        waits_for_next: whether a timer is registered for `next_ms`.
        count: the number of records since it last fired.
        reference: the value that the next record's value is compared with.
        is_in_flight: whether it is in state, and has not become part of another window.
    """

    start_ms: int
    end_ms: int
    members: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    size: int = 0
    in_force: list[int] = field(default_factory=list)
    fired: list[int] = field(default_factory=list)
    waits_for_end: bool = False
    next_ms: int | None = None
    waits_for_next: bool = False
    count: int = 0
    reference: float | None = None
    is_in_flight: bool = True

    @property
    def max_timestamp_ms(self) -> int:
        """The last millisecond of the window."""
        return self.end_ms - 1

    @property
    def timer_ms(self) -> int | None:
        """The earliest of its timers, in ms; None: there is none."""
        if self.waits_for_next:
            return self.next_ms if self.next_ms is not None else self.max_timestamp_ms
        return self.max_timestamp_ms if self.waits_for_end else None

    def as_session(self, *, is_in_state: bool, ended_ms: int | None = None) -> Session:
        """The window as a session, once it accepts no more records."""
        return Session(
            self.start_ms,
            self.end_ms,
            is_in_state=is_in_state,
            is_open=self.waits_for_end,
            taken=sorted(self.taken),
            fired=sorted(self.fired),
            ended_ms=ended_ms,
        )


class InFlight:
    """The windows in state: disjoint, by rising starts, and therefore also by rising ends."""

    def __init__(self) -> None:
        """Start without a window."""
        self.windows: list[Window] = []
        self._timers: list[tuple[int, int, int, Window]] = []
        """A heap of (time, start of the window, tie-breaker, window); some are out of date."""
        self._timers_set = 0

    def set_timer(self, window: Window) -> None:
        """Register the earliest timer of a window."""
        time_ms = window.timer_ms
        if time_ms is not None:
            self._timers_set += 1
            heappush(self._timers, (time_ms, window.start_ms, self._timers_set, window))

    def next_due(self, to_ms: int | None) -> tuple[int, Window] | None:
        """Remove and return the earliest timer up to a watermark, with its window.

        `to_ms` None: whatever its time.
        """
        while self._timers and (to_ms is None or self._timers[0][0] <= to_ms):
            time_ms, _, _, window = heappop(self._timers)
            if window.is_in_flight and window.timer_ms == time_ms:
                return time_ms, window
        return None

    def touched_by(self, start_ms: int, end_ms: int) -> slice:
        """The windows that a range of event times overlaps or touches, as a slice of all."""
        first = bisect_left(self.windows, start_ms, key=lambda one: one.end_ms)
        last = bisect_right(self.windows, end_ms, lo=first, key=lambda one: one.start_ms)
        return slice(first, last)

    def merged(self, touched: slice, start_ms: int, end_ms: int) -> Window:
        """Replace windows by one merged window.

        Its only timer is for the next multiple of the interval. If this multiple has passed, the
        next watermark fires it. Flink: `WindowOperator`, `ContinuousEventTimeTrigger#onMerge`.
        """
        parts = self.windows[touched]
        window = parts[0] if len(parts) == 1 else _joined(parts, start_ms, end_ms)
        next_ms = min((one.next_ms for one in parts if one.next_ms is not None), default=None)
        window.start_ms, window.end_ms = start_ms, end_ms
        window.next_ms, window.waits_for_next = next_ms, next_ms is not None
        window.waits_for_end, window.reference = False, None
        self.windows[touched] = [window]
        self.set_timer(window)
        return window


def _joined(parts: list[Window], start_ms: int, end_ms: int) -> Window:
    """A window with the records and the firings of others, which leave the state."""
    for part in parts:
        part.is_in_flight = False
    return Window(
        start_ms,
        end_ms,
        members=sorted(member for part in parts for member in part.members),
        taken=_all_of([part.taken for part in parts]),
        size=sum(part.size for part in parts),
        in_force=_all_of([part.in_force for part in parts]),
        fired=_all_of([part.fired for part in parts]),
        count=sum(part.count for part in parts),
    )


def _all_of(parts: list[list[int]]) -> list[int]:
    """The numbers of all lists, in any order; the longest list is extended in place."""
    longest: list[int] = max(parts, key=len, default=[])
    for part in parts:
        if part is not longest:
            longest += part
    return longest
