"""The input and output of a replay as plain values.

The module is shipped to the engine's workers as text: it imports the standard library alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NULL_VALUE = "strandline null: "
"""The prefix of the error message for a null value to compare; a place and a text follow."""
NEVER = 2**62
"""The number of a firing after all firings: the record never leaves its window."""


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
    """The accepted records of a group in order of arrival, as columns.

    A column that the rules do not need may be empty.

    Attributes:
        starts_ms: the start of the window of the record alone; without merging windows, only the
            first value is read.
        ends_ms: the end of that window; likewise.
        ts_ms: the event time.
        watermarks_ms: the combined watermark at the record's arrival.
        trigger_values: the value that `Rules.delta` compares.
        evictor_values: the value that `Rules.near` compares.
    """

    starts_ms: Sequence[int]
    ends_ms: Sequence[int]
    ts_ms: Sequence[int]
    watermarks_ms: Sequence[int]
    trigger_values: Sequence[float | None]
    evictor_values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Firing:
    """A firing of a window.

    Attributes:
        number: its number in the group, from 1, in order of time.
        start_ms: the start of the window.
        end_ms: the end of the window.
        after: the place of the record that causes it, or of the last one before the watermark does.
        time_ms: the timer that fired it; None: a record did.
        reaches_ms: the watermark that it needs; None: a record caused it.
        late: whether the watermark had reached the window's end before.
        supersedes: the numbers of the earlier firings whose records are all in this one; without
            merging windows at most the one before it.
    """

    number: int
    start_ms: int
    end_ms: int
    after: int
    time_ms: int | None
    reaches_ms: int | None
    late: bool
    supersedes: tuple[int, ...]


@dataclass(slots=True)
class Replayed:
    """The outcome of a replay: the firings, and a value for each record in each list.

    A firing f of a window that covers the record's event time contains the record iff `first <= f <
    until`.

    Attributes:
        starts_ms: with merging windows: the start of the window that accepted it, at its arrival.
        ends_ms: the end of that window; likewise.
        late: whether the watermark had reached that end.
        first: the number of the next firing at its arrival.
        until: the first firing that no longer contains it, or `NEVER`.
        removed_by: the firing that purges or evicts it, or `NEVER`.
        firings: the firings in order of time.
    """

    starts_ms: list[int]
    ends_ms: list[int]
    late: list[bool]
    first: list[int]
    until: list[int]
    removed_by: list[int]
    firings: list[Firing] = field(default_factory=list)

    @classmethod
    def of(cls, records: int, *, merging: bool) -> Replayed:
        """The outcome for some records that are in no firing yet."""
        bounds = [0] * records if merging else []
        return cls(
            bounds,
            [*bounds],
            [False] * records,
            [0] * records,
            [NEVER] * records,
            [NEVER] * records,
        )

    def containing(self, place: int, ts_ms: int, up_to: int = NEVER) -> Iterable[int]:
        """The numbers of the firings, up to one, that contain a record with an event time."""
        return self._covering(ts_ms, self.first[place], min(self.until[place], up_to + 1))

    def found_by(self, place: int, ts_ms: int) -> int | None:
        """The first firing with a record in its window, even if it evicts the record.

        None: there is none.
        """
        last = min(self.removed_by[place], len(self.firings))
        return next(iter(self._covering(ts_ms, self.first[place], last + 1)), None)

    def _covering(self, ts_ms: int, first: int, until: int) -> Iterable[int]:
        for firing in self.firings[first - 1 : until - 1]:
            if firing.start_ms <= ts_ms < firing.end_ms:
                yield firing.number
