"""The answer of a replay: every watermark, firing and late record, and the open windows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from strandline.model.windows import TimeWindow
from strandline.reference.records import Record


class Outcome(StrEnum):
    """The outcome of a record: the outcome in the newest window that accepted it, if any did."""

    ON_TIME = "on_time"
    LATE_ACCEPTED = "late_accepted"
    LATE = "late"
    NO_WINDOW = "no_window"


class Timing(StrEnum):
    """Whether a window fires before, at, or after the watermark reaches its end."""

    EARLY = "EARLY"
    ON_TIME = "ON_TIME"
    LATE = "LATE"


@dataclass(frozen=True, slots=True)
class Pane:
    """The contents of a window of a key: `members` are its records, in order of acceptance."""

    key: tuple[Any, ...]
    window: TimeWindow
    members: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class FiredPane(Pane):
    """A pane that fires.

    Attributes:
        seq: its number in the order of all firings, from 0.
        timing: whether it fires before, at, or after the end of its window.
        timer_ms: the time of the timer that fired it; None: a record did.
        evicted: the records that the evictor removed before; they are not among the members.
        supersedes: the numbers (`seq`) of the earlier firings whose records are all in this one.
    """

    seq: int
    timing: Timing
    timer_ms: int | None
    evicted: tuple[Record, ...] = ()
    supersedes: tuple[int, ...] = ()


class Cause(StrEnum):
    """The cause of a watermark advance, a firing or a status change.

    RECORD is also the end of one channel, END the end of the whole input.
    """

    TICK = "tick"
    RECORD = "record"
    END = "end"


@dataclass(frozen=True, slots=True)
class Origin:
    """When and why an event happened.

    Attributes:
        at_ms: the processing time, on the clock of arrivals.
        cause: a tick, a record, or the end of the input.
        after_record: the record that caused it, or the last one if several records of one instant
            did; None for ticks, the end of the input, and a channel that ends without a record.
    """

    at_ms: int
    cause: Cause
    after_record: Record | None = None


@dataclass(frozen=True, slots=True)
class Emission:
    """An advance of the combined watermark to `watermark_ms`."""

    origin: Origin
    watermark_ms: int


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A change of the combined input: its new `status` is `idle` or `active`."""

    origin: Origin
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing(FiredPane):
    """A firing of a window of a key; `members` are the records that it emits.

    Attributes:
        watermark_ms: the watermark at the firing.
        origin: when and why it fired.
    """

    watermark_ms: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class LateRecord:
    """A record that no window accepted, and the watermark at its arrival."""

    record: Record
    watermark_ms: int


@dataclass(frozen=True, slots=True)
class OpenWindow(Pane):
    """A window of a key still in state; `end_passed`: whether the watermark is past its end."""

    end_passed: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a Flink job has emitted, in that order, and the state that it ends with.

    Attributes:
        watermarks: every advance of the combined watermark.
        valve_status: every change of the combined input between idle and active.
        firings: every firing.
        late: the side output of late data.
        no_window: the records that no window accepted although they were not late.
        open_at_end: the windows still in state, by key and window.
        final_watermark_ms: the combined watermark at the end; MIN_WATERMARK: none yet.
        unfired: the records that were dropped with their window before they were in a firing.
        accepted_late: the records that windows accepted after their end, each with the window.
        outcomes: the outcome of each record, by record id.
        violations: the number of records that broke the ascending order that their generator
            assumes.
    """

    watermarks: tuple[Emission, ...]
    valve_status: tuple[StatusChange, ...]
    firings: tuple[Firing, ...]
    late: tuple[LateRecord, ...]
    no_window: tuple[LateRecord, ...]
    open_at_end: tuple[OpenWindow, ...]
    final_watermark_ms: int
    outcomes: Mapping[str, Outcome]
    violations: int = 0
    unfired: tuple[Pane, ...] = ()
    accepted_late: tuple[tuple[Record, TimeWindow], ...] = ()

    @property
    def final(self) -> tuple[Pane, ...]:
        """The last firing of each window of each key, in order of key and window."""
        last = {(firing.key, firing.window): firing.members for firing in self.firings}
        return tuple(Pane(key, window, last[key, window]) for key, window in sorted(last))

    @property
    def in_force(self) -> tuple[Firing, ...]:
        """The last firing of each window, in order of time; without superseded firings.

        The last firing of a session is superseded if it was merged into a session that fired.
        """
        superseded = {number for firing in self.firings for number in firing.supersedes}
        last = {(firing.key, firing.window): firing for firing in self.firings}
        in_force = (firing for firing in last.values() if firing.seq not in superseded)
        return tuple(sorted(in_force, key=lambda firing: firing.seq))

    def crossing(self, threshold_ms: int) -> Origin | None:
        """When the watermark first reached a threshold; None if it has not."""
        first = bisect_left(self.watermarks, threshold_ms, key=lambda e: e.watermark_ms)
        return self.watermarks[first].origin if first < len(self.watermarks) else None
