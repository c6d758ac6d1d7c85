"""What a scheduled run must know of the runs before it, and from where it judges again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from strandline.lake.ledger import Entry
from strandline.lake.steps import frontier
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of


@dataclass(frozen=True)
class FirstOpen:
    """The first slot that was not closed at the horizon of the run that published it.

    Attributes:
        start_ms: its start.
        end_ms: its end.
        closed_until_ms: the end of the last closed slot before it; None: there is none. Sessions
            reach across slots: what ended by then was closed with these.
    """

    start_ms: int
    end_ms: int
    closed_until_ms: int | None


@dataclass(frozen=True)
class Remembered:
    """What a run must know of the runs before it.

    Attributes:
        entries: the ledger.
        owed: the arrival days that are to be judged again, those that this run finds too.
        first_open: the first slot that is not closed; None: there is none.
        last_slot_ms: the start of the last published slot, where what it holds may have gone; None:
            nothing has.
        late_slots: gives the slots before an instant that hold published late records which arrived
            from another instant on.
        last_end: gives the last end of the published windows that start in a range; None: there is
            none.
    """

    entries: list[Entry]
    owed: tuple[date, ...] = ()
    first_open: FirstOpen | None = None
    last_slot_ms: int | None = None
    late_slots: Callable[[int, int], frozenset[int]] = lambda before_ms, since_ms: frozenset()
    last_end: Callable[[TimeRange], int | None] = lambda within: None

    @property
    def frontier_ms(self) -> int | None:
        """The midnight up to which everything is published."""
        return frontier(self.entries)

    def base_ms(self, until_ms: int) -> int | None:
        """P: from here on all is judged again by a scheduled run up to a midnight; None: all is.

        The day before, the frontier, or the first owed day, whichever is the earliest: what arrived
        before cannot have changed.
        """
        if self.frontier_ms is None:
            return None
        owed = [midnight_of(day) for day in self.owed]
        return min([until_ms - DAY_MS, self.frontier_ms, *owed])

    def settled_by(self, completes_ms: int | None) -> tuple[date, ...]:
        """The owed days that a run settles: all, if it leaves nothing before the frontier out."""
        if completes_ms is None or completes_ms < (self.frontier_ms or completes_ms):
            return ()
        return tuple(day for day in self.owed if midnight_of(day) < completes_ms)
