"""The completeness calendar of a pipeline, page by page: a row a day, a column a time of day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from strandline.engine.position.grid import Grid
from strandline.lake.store.days import Days, last_shown_day, rows_by_day
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.pipeline.views.incomplete import Shown
from strandline.pipeline.views.slots import Slot, accepted_share, slots_of
from strandline.spec import PipelineSpec

DAYS = 28
"""The largest number of days on a page."""
MOST_ROWS = 100_000
"""The largest number of slots read for a page, unless a single day has more."""
_COLUMN_MINUTES = (30, 60, 120, 180, 240, 360, 720, 1440)
WORST_FIRST = ("open", "gap", "fired", "closed")


@dataclass
class Cell:
    """The slots of a day that start in a column.

    Attributes:
        start_ms: the start of the first slot.
        end_ms: the latest end of a slot.
        states: the number of slots by state.
        accepted: the number of accepted records.
        refused: the number of refused records.
        incomplete: the number of slots that are not complete.
        why: the reasons of a single slot; empty if there are several slots.
    """

    start_ms: int
    end_ms: int
    states: dict[str, int] = field(default_factory=dict)
    accepted: int = 0
    refused: int = 0
    incomplete: int = 0
    why: list[str] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return sum(self.states.values())

    @property
    def state(self) -> str:
        """The state of the least complete slot."""
        return next(state for state in WORST_FIRST if self.states.get(state))

    @property
    def share(self) -> float | None:
        """The share of accepted records; None: there is no record."""
        return accepted_share(self.accepted, self.refused)

    def add(self, slot: Slot, why: list[str]) -> None:
        """Count a slot."""
        self.why = [] if self.states else why
        self.start_ms = min(self.start_ms, slot.start_ms)
        self.end_ms = max(self.end_ms, slot.end_ms)
        self.states[slot.state] = self.states.get(slot.state, 0) + slot.slots
        self.accepted += slot.accepted
        self.refused += slot.refused
        self.incomplete += slot.slots if why else 0


@dataclass(frozen=True)
class CalendarPage:
    """Some days of a pipeline's calendar, the newest first.

    Attributes:
        column_minutes: the time of day that a column stands for.
        days: of each day its cells by column; a day without slots has none.
        older: the last day of the page before; None: there are no older slots.
        newer: the last day of the page after; None: there are no newer slots.
        first_day: the first day that has slots; None: none has.
        last_day: the last one.
        all_slots: the rows of all days.
    """

    column_minutes: int
    days: Mapping[date, Mapping[int, Cell]]
    older: date | None
    newer: date | None
    first_day: date | None
    last_day: date | None
    all_slots: int

    @property
    def columns(self) -> range:
        """The numbers of the columns."""
        return range(DAY_MS // 60_000 // self.column_minutes)

    @property
    def cells(self) -> list[Cell]:
        """All cells of the page."""
        return [cell for of_day in self.days.values() for cell in of_day.values()]

    def count(self, state: str) -> int:
        """How many slots of the page are in a state."""
        return sum(cell.states.get(state, 0) for cell in self.cells)


def calendar_page(shown: Shown, until: date | None = None) -> CalendarPage:
    """The page of a calendar that ends with a day; None: with the last day shown by default.

    Its days are limited by `DAYS` and `MOST_ROWS`, to bound the memory.
    """
    rows, minutes = _rows_by_day(shown.store), column_minutes(shown.spec)
    last = until or last_shown_day(shown.store)
    if last is None or not rows:
        return CalendarPage(minutes, {}, None, None, None, None, 0)
    first = _first_of_page(rows, last)
    older = max((day for day in rows if day < first), default=None)
    after = min((day for day in rows if day > last), default=None)
    return CalendarPage(
        minutes,
        _cells(shown, first, last),
        older,
        None if after is None else min(after + timedelta(DAYS - 1), max(rows)),
        min(rows),
        max(rows),
        sum(rows.values()),
    )


def _cells(shown: Shown, first: date, last: date) -> dict[date, dict[int, Cell]]:
    """The cells of each day by column, the newest day first."""
    place = _Place.of(shown.spec)
    cells: dict[date, dict[int, Cell]] = {
        last - timedelta(n): {} for n in range((last - first).days + 1)
    }
    for slot in slots_of(shown.spec, shown.store, Days(first - place.reach, last)):
        day, column = place.of_slot(slot)
        if day in cells:
            cell = cells[day].setdefault(column, Cell(slot.start_ms, slot.end_ms))
            cell.add(slot, [cause.sentence for cause in shown.causes.why(slot)])
    return cells


def column_minutes(spec: PipelineSpec) -> int:
    """The time of day that a column stands for: the step of the windows, or more; in minutes."""
    step_ms = Grid.of(spec).step_ms
    return next((m for m in _COLUMN_MINUTES if m * 60_000 >= step_ms), _COLUMN_MINUTES[-1])


def _rows_by_day(store: Store) -> dict[date, int]:
    found = rows_by_day(store, "completeness").items()
    return {day: many for day, many in found if day is not None}


def _first_of_page(rows: Mapping[date, int], last: date) -> date:
    """The first day of a page; days before the first one with slots are left out."""
    first, read, earliest = last, rows.get(last, 0), min(rows)
    for _ in range(DAYS - 1):
        if first <= earliest:
            break
        read += rows.get(first - timedelta(1), 0)
        if read > MOST_ROWS:
            break
        first -= timedelta(1)
    return first


@dataclass(frozen=True)
class _Place:
    """The day and column of slots: by their start; for cumulative windows by their last step."""

    column_ms: int
    last_step_ms: int | None

    @classmethod
    def of(cls, spec: PipelineSpec) -> _Place:
        grid = Grid.of(spec)
        grows = grid.cumulative and grid.size_ms <= DAY_MS
        return cls(column_minutes(spec) * 60_000, grid.step_ms if grows else None)

    @property
    def reach(self) -> timedelta:
        """The longest time from the start of a slot to the day that shows it."""
        return timedelta(0 if self.last_step_ms is None else 1)

    def of_slot(self, slot: Slot) -> tuple[date, int]:
        """The day and the column of a slot."""
        step_ms = self.last_step_ms
        at_ms = slot.start_ms if step_ms is None else slot.end_ms - step_ms
        return day_of(at_ms), (at_ms - midnight_of(day_of(at_ms))) // self.column_ms
