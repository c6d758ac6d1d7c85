"""The days with slots of a pipeline, the totals of all days, and the days that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from strandline.engine.position.grid import Grid
from strandline.errors import InputError
from strandline.lake.store.days import Days, facts_of_files, rows_by_date, rows_by_day
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, merged, midnight_of
from strandline.pipeline.views.calendar_rows import GapsInARow, gaps_on, parts_of
from strandline.spec.pipeline import PipelineSpec

TRAILING_DAYS = 90
"""The number of days that are shown by default."""


@dataclass(frozen=True)
class SlotsByDay:
    """The number of slots by the day of their start.

    Its size goes by the number of rows: a row for the gaps of a thousand years is one.

    Attributes:
        grid: the windows of the pipeline's file.
        single: the number of rows that stand for one slot, by day.
        gaps: the edges of the rows that stand for many gaps.
    """

    grid: Grid
    single: Mapping[date, int]
    gaps: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, spec: PipelineSpec, store: Store) -> SlotsByDay:
        """The slots of a pipeline, by the table's log and the rows that stand for many gaps."""
        gaps: list[dict[str, Any]] = gaps_on(spec, store, [], EVERYTHING).to_pylist()
        rows = Counter(rows_by_date(store, "completeness"))
        rows.subtract(row["slot_start"].date() for row in gaps)
        single = {day: slots for day, slots in rows.items() if slots}
        return cls(Grid.of(spec), single, gaps)

    @property
    def all(self) -> int:
        """The number of all slots."""
        return sum(self.single.values()) + sum(int(row["slots"]) for row in self.gaps)

    @property
    def days(self) -> int:
        """The number of days with slots; a row for many gaps has all from its first to its last."""
        single = ((day, day) for day in self.single)
        gaps = ((day_of(p.start_ms), day_of(p.last_start_ms)) for p in self._parts(EVERYTHING))
        days = merged(
            TimeRange(midnight_of(first), midnight_of(last) + DAY_MS)
            for first, last in (*single, *gaps)
        )
        return sum(one.end_ms - one.start_ms for one in days) // DAY_MS

    def on_day(self, day: date) -> int:
        """The number of slots that start on a day."""
        return self.single.get(day, 0) + self._gaps_on(Days(day, day))

    def on_days(self, days: Days) -> int:
        """The number of slots that start on some days."""
        single = sum(slots for day, slots in self.single.items() if day in days)
        return single + self._gaps_on(days)

    def first_in(self, within: TimeRange = EVERYTHING) -> date | None:
        """The first day with a slot that starts in a range of whole days; None: there is none."""
        starts = (day_of(part.start_ms) for part in self._parts(within))
        return min((*self._single_in(within), *starts), default=None)

    def last_in(self, within: TimeRange = EVERYTHING) -> date | None:
        """The last day with a slot that starts in a range of whole days; None: there is none."""
        starts = (day_of(part.last_start_ms) for part in self._parts(within))
        return max((*self._single_in(within), *starts), default=None)

    def _gaps_on(self, days: Days) -> int:
        return sum(part.slots for part in self._parts(days.within))

    def _parts(self, within: TimeRange) -> Iterator[GapsInARow]:
        for row in self.gaps:
            yield from parts_of(self.grid, row, within)

    def _single_in(self, within: TimeRange) -> Iterator[date]:
        return (day for day in self.single if midnight_of(day) in within)


def totals(spec: PipelineSpec, store: Store) -> dict[str, Any]:
    """The numbers of slots, results and quarantined rows, and the first and last day of slots.

    A row for many gaps counts as the slots that it stands for.
    """
    slots = SlotsByDay.of(spec, store)
    first, last = slots.first_in(), slots.last_in()
    return {
        "first_day": None if first is None else first.isoformat(),
        "last_day": None if last is None else last.isoformat(),
        "days": slots.days,
        "slots": slots.all,
        spec.result: sum(rows_by_day(store, spec.result).values()),
        "quarantine": sum(rows_by_day(store, "quarantine").values()),
    }


def shown_days(
    spec: PipelineSpec, store: Store, since: date | None = None, until: date | None = None
) -> Days:
    """The requested days; without a first day, the last `TRAILING_DAYS`.

    They are counted back from the requested last day, or else from the last day with slots that is
    not after the last observed day: wrong clocks may have caused slots in the far future.

    Raises:
        InputError: the last day is before the first one.
    """
    if since is not None and until is not None and since > until:
        raise InputError(
            "--since", f"{since} is after --until {until}", "give the earlier day first"
        )
    if since is not None:
        return Days(since, until)
    last = until or last_shown_day(SlotsByDay.of(spec, store), store)
    if last is not None:
        since = date.min + max(last - date.min - timedelta(TRAILING_DAYS - 1), timedelta(0))
    return Days(since, until)


def last_shown_day(slots: SlotsByDay, store: Store) -> date | None:
    """The last day with slots that is not after the last observed day; None if there is none."""
    observed: date | None = max(facts_of_files(store, "timeline").get("day", ()), default=None)
    return slots.last_in(Days(until=observed).within) or observed
