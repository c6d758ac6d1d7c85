"""The plain values that a replay takes and gives.

The module goes to the engine's workers by its content: it needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NULL_VALUE = "strandline null: "
"""How the message of an error begins where a value to compare is null; a place and a text come."""
HELD = 2**62
"""Where a record would stop being in its window: after every firing that there can be."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The trigger and the evictor of a pipeline.

    Attributes:
        at_end: windows fire as the watermark reaches their end, then with each late record.
        interval_ms: they fire at its multiples before their end, too. Flink:
            `ContinuousEventTimeTrigger`.
        count: they fire at every so many records. Flink: `CountTrigger`.
        delta: they fire where a value is further than this from the first, or from the last one
            that fired. Flink: `DeltaTrigger`.
        purging: each firing empties the window. Flink: `PurgingTrigger`.
        last: the evictor keeps the last so many records. Flink: `CountEvictor`.
        newest_ms: it keeps records newer than the newest event time less this. Flink:
            `TimeEvictor`.
        near: it evicts records whose value is this far from the last one's, or further; NaN is no
            distance from any. Flink: `DeltaEvictor`.
        after: it evicts once the window has fired, and not just before.
        merging: windows merge where they overlap or touch: sessions.
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
        """Whether the event times of records are asked for."""
        return self.merging or self.interval_ms is not None or self.newest_ms is not None

    @property
    def evicts(self) -> bool:
        """Whether there is an evictor."""
        return not self.last is self.newest_ms is self.near is None


@dataclass(frozen=True, slots=True)
class Records:
    """The accepted records of a group in order of arrival, a column each.

    A column that the rules do not ask for may be empty.

    Attributes:
        starts_ms: where the window of the record alone starts; where windows do not merge, the
            first one says it for all.
        ends_ms: where that window ends; likewise.
        ts_ms: its event time.
        watermarks_ms: the combined watermark at its arrival.
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
        number: from 1, in the order in which they happen in the group.
        start_ms: where the window starts.
        end_ms: where it ends.
        after: the place of the record that causes it, or after which the watermark does.
        time_ms: the timer that fired it; None: a record did.
        reaches_ms: the watermark that it needs; None: a record caused it.
        late: whether the watermark had reached the window's end before.
        supersedes: the earlier firings whose records are all in this one, by number; where windows
            do not merge at most the one before it.
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
    """Outcome of a replay: the firings, and of each record, by its place, a value in each list.

    A firing f of a window that covers the record's event time holds the record iff
    `first <= f < until`.

    Attributes:
        starts_ms: where windows merge: the start of the window that took it, as it came.
        ends_ms: the end of that window; likewise.
        late: whether the watermark had reached that end.
        first: the number of the next firing when it came.
        until: the first firing that does not hold it any more, or `HELD`.
        removed_by: the firing that purges or evicts it, or `HELD`.
        firings: in the order in which they happen.
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
        """The outcome for some records that no firing has found yet."""
        bounds = [0] * records if merging else []
        return cls(
            bounds, [*bounds], [False] * records, [0] * records, [HELD] * records, [HELD] * records
        )

    def held_by(self, place: int, ts_ms: int, up_to: int = HELD) -> Iterable[int]:
        """The numbers of the firings, up to one, that hold a record of an event time."""
        return self._covering(ts_ms, self.first[place], min(self.until[place], up_to + 1))

    def found_by(self, place: int, ts_ms: int) -> int | None:
        """The first firing that found a record in its window, evicted by it or not."""
        last = min(self.removed_by[place], len(self.firings))
        return next(iter(self._covering(ts_ms, self.first[place], last + 1)), None)

    def _covering(self, ts_ms: int, first: int, until: int) -> Iterable[int]:
        for firing in self.firings[first - 1 : until - 1]:
            if firing.start_ms <= ts_ms < firing.end_ms:
                yield firing.number
