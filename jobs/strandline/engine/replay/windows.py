"""The window operator over the accepted records of one group: when windows fire, and with what.

Flink: `WindowOperator` and `EvictingWindowOperator`. A group is a window of a key, or the records
of a key that end up in one session. The module is shipped to the engine's workers as text: of the
library it imports `plain` alone. `strandline.reference.windows` is the readable definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.engine.replay.plain import Firing, Records, Replayed, Rules


@dataclass(slots=True, eq=False)
class _Window:
    """A window during the replay.

    Attributes:
        members: the places of its records; if the rules never remove one, only `size` counts them.
        in_force: the firings whose records are all still in the window.
        waits_for_end: whether a timer is registered for its last millisecond.
        next_ms: the next multiple of the interval at which it fires.
        waits_for_next: whether a timer is registered for `next_ms`.
        count: the number of records since it last fired.
        reference: the value that the next record's value is compared with.
    """

    start_ms: int
    end_ms: int
    members: list[int] = field(default_factory=list)
    size: int = 0
    in_force: list[int] = field(default_factory=list)
    waits_for_end: bool = False
    next_ms: int | None = None
    waits_for_next: bool = False
    count: int = 0
    reference: float | None = None

    @property
    def max_timestamp_ms(self) -> int:
        return self.end_ms - 1

    @property
    def timer_ms(self) -> int | None:
        """The earliest of its timers, in ms; None: there is none."""
        if self.waits_for_next:
            return self.next_ms if self.next_ms is not None else self.max_timestamp_ms
        return self.max_timestamp_ms if self.waits_for_end else None


def replay(records: Records, rules: Rules, until_ms: int | None) -> Replayed:
    """Replay the records of a group.

    Args:
        records: the accepted records.
        rules: the trigger and the evictor.
        until_ms: the watermark at the end, in ms. None: all timers fire; the caller drops the
            firings whose `reaches_ms` the watermark has not reached, which come last.
    """
    operator = _Operator(records, rules)
    watermark_ms: int | None = None
    for place, at_arrival_ms in enumerate(records.watermarks_ms):
        if at_arrival_ms != watermark_ms:
            operator.advance(at_arrival_ms)
            watermark_ms = at_arrival_ms
        operator.take(place)
    operator.advance(until_ms)
    return operator.replayed


class _Operator:
    def __init__(self, records: Records, rules: Rules) -> None:
        self._records, self._rules = records, rules
        self._lets_go = rules.purging or rules.evicts
        self._in_flight: list[_Window] = []
        self._timer_ms: int | None = None
        """The first timer of all windows, in ms; None: none is registered."""
        self._last_place = -1
        """The place of the last record added."""
        self._watermark_ms: int | None = None
        self.replayed = Replayed.of(len(records.watermarks_ms), merging=rules.merging)

    # ---------------------------------------------------------------- as the watermark advances

    def advance(self, to_ms: int | None) -> None:
        """Fire all timers up to a watermark; None: all timers there are."""
        if to_ms is not None and self._watermark_ms is not None and to_ms <= self._watermark_ms:
            return
        while self._timer_ms is not None and (to_ms is None or self._timer_ms <= to_ms):
            time_ms = self._timer_ms
            due = [window for window in self._in_flight if window.timer_ms == time_ms]
            window = min(due, key=lambda one: one.start_ms)
            self._on_event_time(window, time_ms, to_ms)
            self._set_timer()
        self._watermark_ms = to_ms

    def _on_event_time(self, window: _Window, time_ms: int, to_ms: int | None) -> None:
        """Fire a timer, while advancing to a watermark; None: to MAX_WATERMARK."""
        if time_ms == window.max_timestamp_ms:
            window.waits_for_end = False
            window.waits_for_next = window.waits_for_next and window.next_ms != time_ms
            self._fire(window, time_ms)
        else:
            # an empty window fires at none of the multiples that this watermark passes
            end_ms = window.max_timestamp_ms if to_ms is None else to_ms
            passed_ms = time_ms if window.size else self._last_multiple(time_ms, end_ms)
            self._wait_after(window, passed_ms)
            self._fire(window, time_ms)

    def _last_multiple(self, time_ms: int, to_ms: int) -> int:
        interval_ms = self._rules.interval_ms or 1
        return time_ms + (to_ms - time_ms) // interval_ms * interval_ms

    def _wait_after(self, window: _Window, time_ms: int) -> None:
        interval_ms = self._rules.interval_ms or 0
        window.next_ms = min(time_ms + interval_ms, window.max_timestamp_ms)
        window.waits_for_next = True

    def _set_timer(self) -> None:
        timers = (window.timer_ms for window in self._in_flight)
        self._timer_ms = min((ms for ms in timers if ms is not None), default=None)

    def _has_reached(self, time_ms: int) -> bool:
        return self._watermark_ms is not None and time_ms <= self._watermark_ms

    # ------------------------------------------------------------------------ as a record comes

    def take(self, place: int) -> None:
        """Add a record to its window, which fires if the trigger says so."""
        replayed = self.replayed
        if self._rules.merging:
            window = self._window_of(place)
            replayed.starts_ms[place] = window.start_ms
            replayed.ends_ms[place] = window.end_ms
        else:
            window = self._only_window()
        if self._lets_go:
            window.members.append(place)
        window.size += 1
        self._last_place = place
        is_late = self._watermark_ms is not None and window.end_ms - 1 <= self._watermark_ms
        replayed.late[place] = is_late
        replayed.first[place] = len(replayed.firings) + 1
        if self._on_element(place, window, is_late=is_late):
            self._fire(window, None)

    def _only_window(self) -> _Window:
        if not self._in_flight:
            self._in_flight = [_Window(self._records.starts_ms[0], self._records.ends_ms[0])]
        return self._in_flight[0]

    def _window_of(self, place: int) -> _Window:
        """The window of a record, merged with all windows that its own overlaps or touches."""
        start_ms, end_ms = self._records.starts_ms[place], self._records.ends_ms[place]
        parts = [w for w in self._in_flight if w.start_ms <= end_ms and w.end_ms >= start_ms]
        if len(parts) == 1:
            (part,) = parts
            if part.start_ms <= start_ms and part.end_ms >= end_ms:
                return part
        return self._merged(parts, start_ms, end_ms)

    def _merged(self, parts: list[_Window], start_ms: int, end_ms: int) -> _Window:
        next_ms = min((p.next_ms for p in parts if p.next_ms is not None), default=None)
        window = _Window(
            min([start_ms, *(part.start_ms for part in parts)]),
            max([end_ms, *(part.end_ms for part in parts)]),
            members=sorted(member for part in parts for member in part.members),
            size=sum(part.size for part in parts),
            in_force=sorted(number for part in parts for number in part.in_force),
            next_ms=next_ms,
            waits_for_next=next_ms is not None,  # also one that has passed: the next advance fires
            count=sum(part.count for part in parts),
        )
        self._in_flight = [w for w in self._in_flight if w not in parts]
        self._in_flight.append(window)
        self._set_timer()
        return window

    def _on_element(self, place: int, window: _Window, *, is_late: bool) -> bool:
        """Whether the trigger fires a window for a record just added to it."""
        rules = self._rules
        if rules.count is not None:
            window.count += 1
            fires = window.count >= rules.count
            window.count = 0 if fires else window.count
            return fires
        if rules.delta is not None:
            return self._is_beyond(self._records.trigger_values[place], window)
        if rules.at_end and not is_late and not window.waits_for_end:
            window.waits_for_end = True
            if rules.interval_ms is not None and window.next_ms is None:
                ts_ms = self._records.ts_ms[place]
                self._wait_after(window, _towards_zero(ts_ms, rules.interval_ms))
            self._set_timer()
        return rules.at_end and is_late

    def _is_beyond(self, value: float | None, window: _Window) -> bool:
        if value is None:
            msg = "a record has no value for the trigger"
            raise TypeError(msg)
        is_first = window.reference is None
        reference = value if window.reference is None else window.reference
        is_beyond = abs(value - reference) > (self._rules.delta or 0)
        if is_first or is_beyond:
            window.reference = value
        return is_beyond

    # ------------------------------------------------------------------------- as a window fires

    def _fire(self, window: _Window, time_ms: int | None) -> None:
        """Emit the records of a window; an empty window does not fire."""
        rules, firings = self._rules, self.replayed.firings
        if not window.size:
            return
        number = len(firings) + 1
        if rules.evicts and not rules.after:
            self._keep(window, self._kept(window.members), number, is_contained=False)
        firings.append(
            Firing(
                number=number,
                start_ms=window.start_ms,
                end_ms=window.end_ms,
                after=self._last_place,
                time_ms=time_ms,
                reaches_ms=None if time_ms is None else self._needed(time_ms),
                late=self._has_reached(window.max_timestamp_ms),
                supersedes=tuple(window.in_force),
            )
        )
        window.in_force = [*window.in_force, number] if rules.merging else [number]
        if rules.evicts and rules.after and window.members:
            self._keep(window, self._kept(window.members), number, is_contained=True)
        if rules.purging:
            self._keep(window, [], number, is_contained=True)

    def _needed(self, time_ms: int) -> int:
        """The watermark that fires a timer.

        For a timer already passed, the next larger watermark.
        """
        if self._watermark_ms is None or time_ms > self._watermark_ms:
            return time_ms
        return self._watermark_ms + 1

    def _keep(self, window: _Window, kept: list[int], number: int, *, is_contained: bool) -> None:
        """Remove all other members.

        A firing that contained one of them cannot be superseded any more.
        """
        if len(kept) == len(window.members):
            return
        removed = sorted(set(window.members).difference(kept))
        window.members, window.size = kept, len(kept)
        replayed = self.replayed
        if window.in_force:
            window.in_force = self._still_in_force(window.in_force, removed)
        for member in removed:
            replayed.until[member] = number + 1 if is_contained else number
            replayed.removed_by[member] = number

    def _still_in_force(self, in_force: list[int], removed: list[int]) -> list[int]:
        """The firings of `in_force` that contain none of the removed members."""
        replayed, ts_ms = self.replayed, self._records.ts_ms
        if not self._rules.merging:
            came_first = min(replayed.first[member] for member in removed)
            return [firing for firing in in_force if firing < came_first]
        incomplete = {
            firing
            for member in removed
            for firing in replayed.containing(member, ts_ms[member], in_force[-1])
        }
        return [firing for firing in in_force if firing not in incomplete]

    def _kept(self, members: list[int]) -> list[int]:
        """The members that the evictor keeps, of at least one, in order of arrival."""
        rules, records = self._rules, self._records
        if rules.last is not None:
            return members[-rules.last :] if rules.last else []
        if rules.newest_ms is not None:
            oldest_ms = max(records.ts_ms[member] for member in members) - rules.newest_ms
            return [member for member in members if records.ts_ms[member] > oldest_ms]
        if rules.near is not None:
            values, near = records.evictor_values, rules.near
            last = values[members[-1]] or 0.0
            return [member for member in members if not abs((values[member] or 0.0) - last) >= near]
        return members


def _towards_zero(ts_ms: int, interval_ms: int) -> int:
    """The multiple of an interval nearest towards zero, as Java's division rounds."""
    return abs(ts_ms) // interval_ms * interval_ms * (1 if ts_ms >= 0 else -1)
