"""What the windows of a key do with their records one by one, and as the watermark rises between.

It runs in Spark's workers, over one group at a time. The module travels there by its content, so
it needs nothing of the library, and its rules are plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rules:
    """When windows fire, and what they let go of then.

    Attributes:
        at_end: they fire as the watermark reaches their end, then with each record.
        interval_ms: with `at_end`: at its multiples before the end, too.
        count: they fire at every so many records.
        purging: each firing empties them.
        last: they keep the last so many records.
        newest_ms: they keep the records newer than their newest event time less this.
        near: they let go of those whose value is this far from the last one's, or further; one
            that is no number is no distance from any.
        after: they let go once they have fired, and not just before.
        until_ms: how far the watermark comes: of windows that never end, which would wait for ever.
    """

    at_end: bool = True
    interval_ms: int | None = None
    count: int | None = None
    purging: bool = False
    last: int | None = None
    newest_ms: int | None = None
    near: float | None = None
    after: bool = False
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The accepted records of a key that hang together, in order of arrival; a column each.

    Attributes:
        starts_ms: where the window of the record alone begins.
        ends_ms: where that ends.
        ts_ms: its event time.
        watermarks_ms: the watermark that it met.
        values: what `Rules.near` compares.
    """

    starts_ms: Sequence[int]
    ends_ms: Sequence[int]
    ts_ms: Sequence[int]
    watermarks_ms: Sequence[int]
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Firing:
    """A firing; whether one that the watermark causes happens depends on how far that comes.

    Attributes:
        number: from 1, in the order of what happens.
        start_ms: where the window begins.
        end_ms: where it ends.
        after: the place of the record that causes it, or after which the watermark does.
        time_ms: the time that it was waiting for; None: a record causes it.
        reaches_ms: what the watermark must reach; None: a record causes it.
        late: whether the watermark had reached the window's end before.
        supersedes: the firings whose place it takes, by number.
    """

    number: int
    start_ms: int
    end_ms: int
    after: int
    time_ms: int | None
    reaches_ms: int | None
    late: bool
    supersedes: list[int]


@dataclass(slots=True)
class Fate:
    """What becomes of a record.

    Attributes:
        start_ms: where the window begins that took it.
        end_ms: where that ends.
        late: whether the watermark had reached that end.
        found_by: the first firing that found it in its window, by number; None: there is none.
        told_by: the firings that tell it.
        gone_by: the firing that takes it out of its window; None: none does.
    """

    start_ms: int
    end_ms: int
    late: bool
    found_by: int | None = None
    told_by: list[int] = field(default_factory=list)
    gone_by: int | None = None


@dataclass(slots=True, eq=False)
class _Window:
    """A window in flight: what it holds, by place, and what its trigger remembers.

    Attributes:
        standing: the firings that tell nothing but what is still there.
        timers: the times that it waits for.
        next_ms: the next of the times before its end.
        count: the records since it last fired.
    """

    start_ms: int
    end_ms: int
    members: list[int] = field(default_factory=list)
    standing: list[int] = field(default_factory=list)
    timers: set[int] = field(default_factory=set)
    next_ms: int | None = None
    count: int = 0

    @property
    def last_ms(self) -> int:
        return self.end_ms - 1


class Walk:
    """A walk over records, as Flink's window operator goes.

    Attributes:
        fates: of the records.
        firings: in the order of what happens. Those that wait for the watermark beyond the last
            record come at the end, whether or not it will come so far.
    """

    def __init__(self, records: Records, rules: Rules) -> None:
        """Walk."""
        self._records, self._rules = records, rules
        self._in_flight: list[_Window] = []
        self._watermark_ms: int | None = None
        self.fates: list[Fate] = []
        self.firings: list[Firing] = []
        for place, watermark_ms in enumerate(records.watermarks_ms):
            self._rise(watermark_ms)
            self._take(place)
        self._rise(rules.until_ms)

    # ------------------------------------------------------------------- as the watermark rises

    def _rise(self, to_ms: int | None) -> None:
        """Fire what waits for times up to a watermark; None: for all times."""
        if to_ms is not None and self._watermark_ms is not None and to_ms <= self._watermark_ms:
            return
        while waiting := [window for window in self._in_flight if window.timers]:
            window = min(waiting, key=lambda one: (min(one.timers), one.start_ms))
            time_ms = min(window.timers)
            if to_ms is not None and time_ms > to_ms:
                break
            window.timers.discard(time_ms)
            self._reach(window, time_ms, to_ms)
        self._watermark_ms = to_ms

    def _reach(self, window: _Window, time_ms: int, to_ms: int | None) -> None:
        """A time of a window, as the watermark rises to a value; None: to the end."""
        if time_ms == window.last_ms:
            self._fire(window, time_ms)
        elif time_ms == window.next_ms:  # empty it fires at none of the times that are passed
            end_ms = window.last_ms if to_ms is None else to_ms
            self._wait_from(window, time_ms if window.members else self._passed(time_ms, end_ms))
            self._fire(window, time_ms)

    def _passed(self, time_ms: int, to_ms: int) -> int:
        """The last of the times that follow each other from one on and that a watermark passes."""
        interval_ms = self._rules.interval_ms or 1
        return time_ms + (to_ms - time_ms) // interval_ms * interval_ms

    def _wait_from(self, window: _Window, time_ms: int) -> None:
        window.next_ms = min(time_ms + (self._rules.interval_ms or 0), window.last_ms)
        window.timers.add(window.next_ms)

    def _has_passed(self, time_ms: int) -> bool:
        return self._watermark_ms is not None and time_ms <= self._watermark_ms

    # ----------------------------------------------------------------------- as a record comes

    def _take(self, place: int) -> None:
        window = self._window_of(place)
        window.members.append(place)
        is_late = self._has_passed(window.last_ms)
        self.fates.append(Fate(window.start_ms, window.end_ms, is_late))
        if self._fires_by(place, window, is_late=is_late):
            self._fire(window, None)

    def _window_of(self, place: int) -> _Window:
        """The window that takes a record: merged of all that it overlaps or touches."""
        start_ms, end_ms = self._records.starts_ms[place], self._records.ends_ms[place]
        parts = [w for w in self._in_flight if w.start_ms <= end_ms and w.end_ms >= start_ms]
        start_ms = min([start_ms, *(part.start_ms for part in parts)])
        end_ms = max([end_ms, *(part.end_ms for part in parts)])
        if len(parts) == 1 and (parts[0].start_ms, parts[0].end_ms) == (start_ms, end_ms):
            return parts[0]
        window = _Window(
            start_ms,
            end_ms,
            members=sorted(member for part in parts for member in part.members),
            standing=sorted(number for part in parts for number in part.standing),
            next_ms=min((p.next_ms for p in parts if p.next_ms is not None), default=None),
            count=sum(part.count for part in parts),
        )
        if window.next_ms is not None:  # be it in the past: then as the watermark next rises
            window.timers.add(window.next_ms)
        self._in_flight = [w for w in self._in_flight if w not in parts]
        self._in_flight.append(window)
        return window

    def _fires_by(self, place: int, window: _Window, *, is_late: bool) -> bool:
        """Whether a window fires with the record that it has just taken."""
        rules = self._rules
        if rules.count is not None:
            window.count += 1
            fires = window.count >= rules.count
            window.count = 0 if fires else window.count
            return fires
        if rules.at_end and not is_late:
            window.timers.add(window.last_ms)
            if rules.interval_ms is not None and window.next_ms is None:
                ts_ms = self._records.ts_ms[place]
                self._wait_from(window, _towards_zero(ts_ms, rules.interval_ms))
        return rules.at_end and is_late

    # --------------------------------------------------------------------- as a window fires

    def _fire(self, window: _Window, time_ms: int | None) -> None:
        """Tell what a window holds; one that holds nothing does not fire."""
        rules, before = self._rules, window.members
        if not before:
            return
        number = len(self.firings) + 1
        for member in before:
            self.fates[member].found_by = self.fates[member].found_by or number
        if not rules.after:
            self._let_go(window, self._kept(before), number)
        self.firings.append(
            Firing(
                number=number,
                start_ms=window.start_ms,
                end_ms=window.end_ms,
                after=len(self.fates) - 1,
                time_ms=time_ms,
                reaches_ms=None if time_ms is None else self._not_before(time_ms),
                late=self._has_passed(window.last_ms),
                supersedes=list(window.standing),
            )
        )
        for member in window.members:
            self.fates[member].told_by.append(number)
        window.standing.append(number)
        if rules.after and window.members:
            self._let_go(window, self._kept(window.members), number)
        if rules.purging:
            self._let_go(window, [], number)

    def _not_before(self, time_ms: int) -> int:
        """What the watermark must reach to fire for a time: if that has passed, anything higher."""
        if self._watermark_ms is None or time_ms > self._watermark_ms:
            return time_ms
        return self._watermark_ms + 1

    def _let_go(self, window: _Window, kept: list[int], number: int) -> None:
        """Keep some records: a firing that told of another one cannot be superseded any more."""
        gone = [self.fates[member] for member in set(window.members).difference(kept)]
        window.members = kept
        for fate in gone:
            fate.gone_by = number
        lost = {told for fate in gone for told in fate.told_by}
        window.standing = [told for told in window.standing if told not in lost]

    def _kept(self, members: list[int]) -> list[int]:
        """What the evictor keeps of the records in a window, which are in order of arrival."""
        rules, records = self._rules, self._records
        if rules.last is not None:
            return members[-rules.last :] if rules.last else []
        if rules.newest_ms is not None:
            oldest_ms = max(records.ts_ms[member] for member in members) - rules.newest_ms
            return [member for member in members if records.ts_ms[member] > oldest_ms]
        if rules.near is not None:
            last = records.values[members[-1]] or 0.0
            near = rules.near
            return [m for m in members if not abs((records.values[m] or 0.0) - last) >= near]
        return members


def _towards_zero(ts_ms: int, interval_ms: int) -> int:
    """The multiple of an interval that is next towards zero, as Java counts."""
    return abs(ts_ms) // interval_ms * interval_ms * (1 if ts_ms >= 0 else -1)
