"""The completeness calendar of a pipeline, page by page: a row a day, a column a time of day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Any

from strandline.engine.position.grid import Grid
from strandline.lake.store.days import Days
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, midnight_of
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import SlotsByDay, last_shown_day
from strandline.pipeline.views.slots import Slot, accepted_share, slots_of
from strandline.spec import PipelineSpec

DAYS = 28
"""The largest number of days on a page."""
MOST_ROWS = 100_000
"""The largest number of slots read for a page, unless a single day has more."""
_COLUMN_MINUTES = (30, 60, 120, 180, 240, 360, 720, 1440)
_EDGES = ("older", "newer", "first_day", "last_day")
_STATES = ("closed", "fired", "open", "gap")
_WORST_FIRST = ("open", "gap", "fired", "closed")


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
        why: the reasons of a single slot, or of gaps alone; empty if there are several others.
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
        return next(state for state in _WORST_FIRST if self.states.get(state))

    @property
    def share(self) -> float | None:
        """The share of accepted records; None: there is no record."""
        return accepted_share(self.accepted, self.refused)

    def add(self, slot: Slot, why: list[str]) -> None:
        """Count a slot."""
        of_gaps = slot.state == "gap" and why == self.why
        self.why = why if not self.states or of_gaps else []
        self.start_ms = min(self.start_ms, slot.start_ms)
        self.end_ms = max(self.end_ms, slot.end_ms)
        self.states[slot.state] = self.states.get(slot.state, 0) + slot.slots
        self.accepted += slot.accepted
        self.refused += slot.refused
        self.incomplete += slot.slots if why else 0


def calendar_page(shown: Shown, until: date | None = None) -> dict[str, Any]:
    """The page of a calendar that ends with a day; None: with the last day shown by default.

    Its days are limited by `DAYS` and `MOST_ROWS`, to bound the memory; the newest comes first.
    """
    slots, minutes = SlotsByDay.of(shown.spec, shown.store), column_minutes(shown.spec)
    last, earliest = until or last_shown_day(slots, shown.store), slots.first_in()
    by_day: Mapping[date, Mapping[int, Cell]] = {}
    edges: dict[str, date | None] = dict.fromkeys(_EDGES)
    if last is not None and earliest is not None:
        first = _first_of_page(slots, earliest, last)
        by_day, edges = _cells(shown, first, last), _edges(slots, first, last)
    columns = DAY_MS // 60_000 // minutes
    return {
        "column_minutes": minutes,
        "columns": columns,
        "days": [_day(day, of_day, range(columns)) for day, of_day in by_day.items()],
        **{name: None if day is None else day.isoformat() for name, day in edges.items()},
        "all_slots": slots.all,
        **_counts([cell for of_day in by_day.values() for cell in of_day.values()]),
    }


def _day(day: date, cells: Mapping[int, Cell], columns: range) -> dict[str, Any]:
    return {
        "day": day.isoformat(),
        "ends_week": day.isoweekday() == 7,
        "cells": [_shown(cells.get(column)) for column in columns],
    }


def _counts(cells: Sequence[Cell]) -> dict[str, Any]:
    """The numbers of slots by state, and of those that are not complete."""
    return {
        "states": {state: sum(cell.states.get(state, 0) for cell in cells) for state in _STATES},
        "incomplete": sum(cell.incomplete for cell in cells),
    }


def _edges(slots: SlotsByDay, first: date, last: date) -> dict[str, date | None]:
    """The last days of the pages before and after a page, and the first and last day of all."""
    before = TimeRange(EVERYTHING.start_ms, midnight_of(first))
    after = slots.first_in(TimeRange(midnight_of(last) + DAY_MS, EVERYTHING.end_ms))
    latest = slots.last_in()
    newer = after
    if after is not None and latest is not None:
        newer = after + min(timedelta(DAYS - 1), latest - after)
    edges = (slots.last_in(before), newer, slots.first_in(), latest)
    return dict(zip(_EDGES, edges, strict=True))


def _shown(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return asdict(cell) | {"state": cell.state, "share": cell.share, "slots": cell.slots}


def _cells(shown: Shown, first: date, last: date) -> dict[date, dict[int, Cell]]:
    """The cells of each day by column, the newest day first."""
    place = _Place.of(shown.spec)
    cells: dict[date, dict[int, Cell]] = {
        last - timedelta(n): {} for n in range((last - first).days + 1)
    }
    days = Days(first - place.reach, last)
    for slot in slots_of(shown, days, part_ms=place.column_ms):
        day, column = place.of_slot(slot)
        if day in cells:
            cell = cells[day].setdefault(column, Cell(slot.start_ms, slot.end_ms))
            cell.add(slot, [cause.sentence for cause in shown.causes.why(slot)])
    return cells


def column_minutes(spec: PipelineSpec) -> int:
    """The time of day that a column stands for: the step of the windows, or more; in minutes."""
    step_ms = Grid.of(spec).step_ms
    return next((m for m in _COLUMN_MINUTES if m * 60_000 >= step_ms), _COLUMN_MINUTES[-1])


def _first_of_page(slots: SlotsByDay, earliest: date, last: date) -> date:
    """The first day of a page; days before the first one with slots are left out."""
    first, read = last, slots.on_day(last)
    for _ in range(DAYS - 1):
        if first <= earliest:
            break
        read += slots.on_day(first - timedelta(1))
        if read > MOST_ROWS:
            break
        first -= timedelta(1)
    return first


@dataclass(frozen=True)
class _Place:
    """The place of slots in the calendar that is drawn: a row for each day, a column for a time.

    It goes by the start of a slot; for cumulative windows, which share starts, by their last step.
    """

    column_ms: int
    grid: Grid

    @classmethod
    def of(cls, spec: PipelineSpec) -> _Place:
        return cls(column_minutes(spec) * 60_000, Grid.of(spec))

    @property
    def _grows(self) -> bool:
        return self.grid.cumulative and self.grid.size_ms <= DAY_MS

    @property
    def reach(self) -> timedelta:
        """The longest time from the start of a slot to the day that shows it."""
        return timedelta(1 if self._grows else 0)

    def of_slot(self, slot: Slot) -> tuple[date, int]:
        """The day and the column of a slot; one of other windows, before an edit, by its start."""
        at_ms = slot.start_ms
        if self._grows and self.grid.run_of(slot.start_ms, slot.end_ms, slot.slots)[-1]:
            at_ms = slot.end_ms - self.grid.step_ms
        return day_of(at_ms), (at_ms - midnight_of(day_of(at_ms))) // self.column_ms
