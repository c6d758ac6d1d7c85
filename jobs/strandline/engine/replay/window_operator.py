"""The window operator over the records of one group: when windows fire, and with which records.

Flink: `WindowOperator` and `EvictingWindowOperator`. A group is a window of a key, or the records
of a key whose own windows are connected, for its sessions. The module is shipped to the engine's
workers as text: of the library it imports `operator_io` and `in_flight` alone.
`strandline.reference.windows` is the readable definition.
"""

from __future__ import annotations

from strandline.engine.replay.in_flight import InFlight, Window
from strandline.engine.replay.operator_io import NEVER, Firing, Records, Replayed, Rules

_MAX_WATERMARK = 2**63 - 1
"""See `model.lateness`."""


def replay(records: Records, rules: Rules, until_ms: int | None) -> Replayed:
    """Replay the records of a group.

    Args:
        records: the records.
        rules: the trigger and the evictor.
        until_ms: the watermark at the end, in ms. None: all timers fire; the caller drops the
            firings whose `reaches_ms` the watermark has not reached, which come last.
    """
    operator = _Operator(records, rules)
    watermark_ms: int | None = None
    for place, at_arrival_ms in enumerate(records.watermarks_ms):
        if rules.closures:
            operator.end_inputs(records.eras[place])
        if at_arrival_ms != watermark_ms:
            operator.advance(at_arrival_ms)
            watermark_ms = at_arrival_ms
        operator.take(place)
    operator.end_inputs(len(rules.closures))
    operator.advance(until_ms)
    return operator.replayed()


class _Operator:
    """The windows of a group, and their firings, while its records are replayed."""

    def __init__(self, records: Records, rules: Rules) -> None:
        self._records, self._rules = records, rules
        self._removes = rules.purging or rules.evicts
        self._in_flight = InFlight()
        self._last_place = -1
        """The place of the last record added."""
        self._watermark_ms: int | None = None
        self._closures = 0
        """The number of ranges whose input has ended."""
        self._replayed = Replayed.of(len(records.watermarks_ms), merging=rules.merging)

    def replayed(self) -> Replayed:
        """The outcome, after all records have been processed."""
        if self._rules.merging:
            in_state = (one.as_session(is_in_state=True) for one in self._in_flight.windows)
            self._replayed.sessions += in_state
        return self._replayed

    # ---------------------------------------------------------------- as the watermark advances

    def advance(self, to_ms: int | None) -> None:
        """Fire all timers up to a watermark, and drop windows; None: MAX_WATERMARK."""
        if to_ms is not None and self._watermark_ms is not None and to_ms <= self._watermark_ms:
            return
        while (due := self._in_flight.next_due(to_ms)) is not None:
            time_ms, window = due
            self._on_event_time(window, time_ms, to_ms)
            self._in_flight.set_timer(window)
        self._watermark_ms = to_ms
        if self._rules.merging:
            self._clean_up(to_ms)

    def end_inputs(self, closures: int) -> None:
        """End the input of the first ranges: their windows fire and leave the state."""
        while self._closures < closures:
            within = self._rules.closures[self._closures]
            self._closures += 1
            windows = self._in_flight.windows
            for window in windows:
                if not within.start_ms <= window.start_ms < within.end_ms:
                    continue
                while (time_ms := window.timer_ms) is not None:
                    self._on_event_time(window, time_ms, None)
                self._drop(window, within.ended_ms)
            self._in_flight.windows = [one for one in windows if one.is_in_flight]

    def _clean_up(self, to_ms: int | None) -> None:
        """Drop the windows whose cleanup time a watermark has reached; None: all windows."""
        dropped, windows = 0, self._in_flight.windows
        for window in windows:
            if to_ms is not None and not self._is_window_late(window.end_ms, to_ms):
                break
            self._drop(window)
            dropped += 1
        del windows[:dropped]

    def _is_window_late(self, end_ms: int, watermark_ms: int) -> bool:
        """See `model.lateness`, which workers do not have."""
        cleanup_ms = min(end_ms - 1 + self._rules.allowed_lateness_ms, _MAX_WATERMARK)
        return cleanup_ms <= watermark_ms

    def _drop(self, window: Window, ended_ms: int | None = None) -> None:
        """Remove a window and its records from the state."""
        replayed, last = self._replayed, len(self._replayed.firings)
        window.is_in_flight = False
        for member in window.members if self._removes else window.taken:
            replayed.until[member], replayed.removed_by[member] = last + 1, last
        replayed.sessions.append(window.as_session(is_in_state=False, ended_ms=ended_ms))

    def _on_event_time(self, window: Window, time_ms: int, to_ms: int | None) -> None:
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

    def _wait_after(self, window: Window, time_ms: int) -> None:
        interval_ms = self._rules.interval_ms or 0
        window.next_ms = min(time_ms + interval_ms, window.max_timestamp_ms)
        window.waits_for_next = True

    def _has_reached(self, time_ms: int) -> bool:
        return self._watermark_ms is not None and time_ms <= self._watermark_ms

    # ------------------------------------------------------------------------ as a record comes

    def take(self, place: int) -> None:
        """Add a record to its window, which fires if the trigger says so; or refuse it as late."""
        window = self._window_of(place) if self._rules.merging else self._only_window()
        if window is None:
            self._replayed.refused[place], self._replayed.first[place] = True, NEVER
            return
        self._add(place, window)

    def _add(self, place: int, window: Window) -> None:
        replayed = self._replayed
        if self._rules.merging:
            replayed.starts_ms[place] = window.start_ms
            replayed.ends_ms[place] = window.end_ms
            window.taken.append(place)
        if self._removes:
            window.members.append(place)
        window.size += 1
        self._last_place = place
        is_late = self._has_reached(window.max_timestamp_ms)
        replayed.late[place] = is_late
        replayed.first[place] = len(replayed.firings) + 1
        if self._on_element(place, window, is_late=is_late):
            self._fire(window, None)

    def _only_window(self) -> Window:
        windows = self._in_flight.windows
        if not windows:
            windows.append(Window(self._records.starts_ms[0], self._records.ends_ms[0]))
        return windows[0]

    def _window_of(self, place: int) -> Window | None:
        """The window of a record, merged with all windows that its own overlaps or touches.

        None: the watermark has reached its cleanup time, so the record is late.
        """
        start_ms, end_ms = self._records.starts_ms[place], self._records.ends_ms[place]
        touched = self._in_flight.touched_by(start_ms, end_ms)
        parts = self._in_flight.windows[touched]
        if parts:
            start_ms, end_ms = min(start_ms, parts[0].start_ms), max(end_ms, parts[-1].end_ms)
            if (start_ms, end_ms) == (parts[0].start_ms, parts[0].end_ms):
                return parts[0]
        elif self._watermark_ms is not None and self._is_window_late(end_ms, self._watermark_ms):
            return None
        return self._in_flight.merged(touched, start_ms, end_ms)

    def _on_element(self, place: int, window: Window, *, is_late: bool) -> bool:
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
            self._in_flight.set_timer(window)
        return rules.at_end and is_late

    def _is_beyond(self, value: float | None, window: Window) -> bool:
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

    def _fire(self, window: Window, time_ms: int | None) -> None:
        """Emit the records of a window; an empty window does not fire."""
        rules, firings = self._rules, self._replayed.firings
        if not window.size:
            return
        number = len(firings) + 1
        if rules.evicts and not rules.after:
            self._keep_only(window, self._not_evicted(window.members), number, is_contained=False)
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
        window.in_force = (
            [*window.in_force, number] if rules.merging and self._removes else [number]
        )
        if rules.merging:
            window.fired.append(number)
        if rules.evicts and rules.after and window.members:
            self._keep_only(window, self._not_evicted(window.members), number, is_contained=True)
        if rules.purging:
            self._keep_only(window, [], number, is_contained=True)

    def _needed(self, time_ms: int) -> int:
        """The least watermark that fires a timer; for a passed timer, the next larger watermark."""
        if self._watermark_ms is None or time_ms > self._watermark_ms:
            return time_ms
        return self._watermark_ms + 1

    def _keep_only(
        self, window: Window, kept: list[int], number: int, *, is_contained: bool
    ) -> None:
        """Keep only some members; firings with a removed one are not superseded any more."""
        if len(kept) == len(window.members):
            return
        removed = sorted(set(window.members).difference(kept))
        window.members, window.size = kept, len(kept)
        replayed = self._replayed
        if window.in_force:
            window.in_force = self._still_in_force(window.in_force, removed)
        for member in removed:
            replayed.until[member] = number + 1 if is_contained else number
            replayed.removed_by[member] = number

    def _still_in_force(self, in_force: list[int], removed: list[int]) -> list[int]:
        """The firings of `in_force` that contain none of the removed members."""
        replayed, ts_ms = self._replayed, self._records.ts_ms
        if not self._rules.merging:
            came_first = min(replayed.first[member] for member in removed)
            return [firing for firing in in_force if firing < came_first]
        incomplete = {
            firing
            for member in removed
            for firing in replayed.containing(member, ts_ms[member], max(in_force))
        }
        return [firing for firing in in_force if firing not in incomplete]

    def _not_evicted(self, members: list[int]) -> list[int]:
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
