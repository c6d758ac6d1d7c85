"""The input and output of a replay as plain values.

The module is shipped to the engine's workers as text: it imports the standard library alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

OF_A_RECORD = "strandline record: "
"""The prefix of the message for a record that cannot be replayed; a place and a text follow."""
NEVER = 2**62
"""A number after the numbers of all firings, for a record that never leaves its window."""


@dataclass(frozen=True, slots=True)
class EndedRange:
    """A range of window starts whose input has ended.

    Attributes:
        start_ms: the start of the range.
        end_ms: its end; exclusive.
        ended_ms: the instant at which the input ended.
    """

    start_ms: int
    end_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Rules:
    """The trigger and the evictor of a pipeline.

    Attributes:
        at_end: windows fire when the watermark reaches their end, then with each late record.
        interval_ms: windows also fire at its multiples before their end. Flink:
            `ContinuousEventTimeTrigger`.
        count: windows fire after so many records. Flink: `CountTrigger`.
        delta: windows fire when a value differs by more than this from the first value, or from the
            last one that fired. Flink: `DeltaTrigger`.
        purging: each firing empties the window. Flink: `PurgingTrigger`.
        last: the evictor keeps the last so many records. Flink: `CountEvictor`.
        newest_ms: the evictor keeps records newer than the newest event time minus this. Flink:
            `TimeEvictor`.
        near: the evictor removes records whose value differs by this or more from the last one's;
            NaN differs from no value. Flink: `DeltaEvictor`.
        after: the evictor runs after the firing instead of before it.
        merging: windows merge if they overlap or touch: sessions.
        allowed_lateness_ms: with merging windows: how long a window stays in state after its end.
        closures: with merging windows: the ranges whose input has ended, in order. At such an end
            the windows that start in the range fire and leave the state.
        lists_superseded: with merging windows: whether each firing lists all firings whose records
            are all in it; the lists of n firings of a session have up to n² / 2 entries.
    """

    at_end: bool = True
    interval_ms: int | None = None
    count: int | None = None
    delta: float | None = None
    purging: bool = False
    last: int | None = None
    newest_ms: int | None = None
    near: float | None = None
    after: bool = False
    merging: bool = False
    allowed_lateness_ms: int = 0
    closures: tuple[EndedRange, ...] = ()
    lists_superseded: bool = True

    @property
    def reads_ts(self) -> bool:
        """Whether the replay reads the event times of records."""
        return self.merging or self.interval_ms is not None or self.newest_ms is not None

    @property
    def evicts(self) -> bool:
        """Whether there is an evictor."""
        return not self.last is self.newest_ms is self.near is None


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a group in order of arrival, as columns.

    Without merging windows the window has accepted all of them.

    A column that the rules do not need may be empty.

    Attributes:
        starts_ms: the start of the record's own window, before any merge; without merging windows
            only the first value is read.
        ends_ms: the end of the record's own window; likewise.
        ts_ms: the event time.
        watermarks_ms: the combined watermark at the record's arrival.
        trigger_values: the value that `Rules.delta` compares.
        evictor_values: the value that `Rules.near` compares.
        eras: the number of `Rules.closures` that ended before the record's arrival.
    """

    starts_ms: Sequence[int]
    ends_ms: Sequence[int]
    ts_ms: Sequence[int]
    watermarks_ms: Sequence[int]
    trigger_values: Sequence[float | None]
    evictor_values: Sequence[float | None]
    eras: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Firing:
    """A firing of a window.

    Attributes:
        number: its number in the group, from 1, in order of time.
        start_ms: the start of the window.
        end_ms: the end of the window.
        after: the place (index in order of arrival) of the last record added before the firing; if
            a record causes the firing, of that record.
        time_ms: the time of the timer that fires it; None: a record causes it.
        reaches_ms: the least watermark that fires it; None: a record causes it.
        late: whether an earlier watermark had already reached the window's last millisecond.
        supersedes: the numbers of the earlier firings whose records are all in this one, without
            firings that are superseded by another firing of this list.
    """

    number: int
    start_ms: int
    end_ms: int
    after: int
    time_ms: int | None
    reaches_ms: int | None
    late: bool
    supersedes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A session: where windows merge, a window that has not become part of another one.

    Attributes:
        start_ms: the start of the window.
        end_ms: the end of the window.
        is_in_state: whether it is in state at the end.
        is_open: whether the timer for its end has not fired yet.
        taken: the places of all records that it and its merged parts have accepted, ascending.
        fired: the numbers of all firings of it and its merged parts, ascending.
        ended_ms: when its input had ended, in ms; None: it has not.
    """

    start_ms: int
    end_ms: int
    is_in_state: bool
    is_open: bool
    taken: Sequence[int]
    fired: Sequence[int]
    ended_ms: int | None


@dataclass(slots=True)
class Replayed:
    """The outcome of a replay: the firings, and lists with a value for each record.

    A firing with number f, of a window that covers the record's event time, contains the record if
    and only if `first <= f < until`.

    Attributes:
        starts_ms: with merging windows: the start of the window that accepted the record, then.
        ends_ms: with merging windows: the end of that window, then.
        refused: with merging windows: whether no window accepted the record.
        late: whether the watermark had reached the end of the window at the record's arrival.
        first: the number of the next firing after the record's arrival.
        until: the number of the first firing that no longer contains the record, or `NEVER`.
        removed_by: the number of the firing that purges or evicts the record, or of the last one
            before its window left the state; `NEVER`: it is in state at the end.
        firings: the firings in order of time.
        sessions: with merging windows: the sessions; the sessions in state are the last ones.
    """

    starts_ms: list[int]
    ends_ms: list[int]
    refused: list[bool]
    late: list[bool]
    first: list[int]
    until: list[int]
    removed_by: list[int]
    firings: list[Firing] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    @classmethod
    def of(cls, records: int, *, merging: bool) -> Replayed:
        """The outcome for some records that are in no firing yet."""
        bounds = [0] * records if merging else []
        return cls(
            bounds,
            [*bounds],
            [False] * len(bounds),
            [False] * records,
            [0] * records,
            [NEVER] * records,
            [NEVER] * records,
        )

    def containing(self, place: int, ts_ms: int, up_to: int = NEVER) -> Iterable[int]:
        """The numbers of the firings, at most `up_to`, that contain a record with an event time."""
        fired = self.firings[self.first[place] - 1 : min(self.until[place] - 1, up_to)]
        return (one.number for one in fired if one.start_ms <= ts_ms < one.end_ms)

    def among(self, firings: Sequence[Firing], place: int, ts_ms: int) -> list[int]:
        """The numbers of the firings that contain a record, of a session's firings in order."""
        fired = self._since_arrival(firings, place, self.until[place] - 1)
        return [one.number for one in fired if one.start_ms <= ts_ms < one.end_ms]

    def is_unfired(self, firings: Sequence[Firing], place: int, ts_ms: int) -> bool:
        """Whether a record has left the state, and no firing of its session contained it before.

        A firing that evicts the record counts as one that contained it.
        """
        removed_by = self.removed_by[place]
        if removed_by == NEVER:
            return False
        fired = self._since_arrival(firings, place, removed_by)
        # the last one is of the widest window
        return not any(one.start_ms <= ts_ms < one.end_ms for one in reversed(fired))

    def _since_arrival(self, firings: Sequence[Firing], place: int, last: int) -> Sequence[Firing]:
        """The firings of a session from a record's arrival up to the firing with number `last`."""
        begin = bisect_left(firings, self.first[place], key=lambda one: one.number)
        end = bisect_right(firings, last, lo=begin, key=lambda one: one.number)
        return firings[begin:end]

    def superseded_by(self, firing: Firing) -> list[int]:
        """The numbers of all earlier firings whose records are all in a firing, in order."""
        found, to_do = set[int](), [*firing.supersedes]
        while to_do:
            number = to_do.pop()
            if number not in found:
                found.add(number)
                to_do += self.firings[number - 1].supersedes
        return sorted(found)
