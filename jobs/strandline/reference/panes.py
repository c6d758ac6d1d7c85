"""Panes (the contents of windows), and the outcomes of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from strandline.model.windows import TimeWindow
from strandline.reference.records import Record
from strandline.reference.triggers import WindowTrigger


class Outcome(StrEnum):
    """The outcome of a record, by its newest window."""

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
    """The records of a window of a key, in order of acceptance."""

    key: tuple[Any, ...]
    window: TimeWindow
    members: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class FiredPane(Pane):
    """A pane that fires.

    Attributes:
        seq: its number in the order of all firings, from 0.
        timing: before the window's end, at it, or afterwards.
        timer_ms: the time of the timer that fired it; None: a record did.
        evicted: the records that the evictor removed before; they are not among the members.
        supersedes: the earlier firings whose records are all in this one, by `seq`.
    """

    seq: int
    timing: Timing
    timer_ms: int | None
    evicted: tuple[Record, ...] = ()
    supersedes: tuple[int, ...] = ()


@dataclass(slots=True)
class WindowState:
    """The state of a window of a key.

    Its records, its firings that are still complete, its trigger.
    """

    trigger: WindowTrigger
    members: list[Record] = field(default_factory=list)
    fired: list[FiredPane] = field(default_factory=list)
    fired_ids: set[str] = field(default_factory=set)

    def keep(self, members: list[Record]) -> None:
        """Keep only some records; firings with a removed one are not superseded any more."""
        removed = {r.record_id for r in self.members} - {r.record_id for r in members}
        self.members = members
        if removed:
            self.fired = [
                p for p in self.fired if removed.isdisjoint(r.record_id for r in p.members)
            ]
