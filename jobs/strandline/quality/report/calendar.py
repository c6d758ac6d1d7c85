"""The calendars: a column for each day, a row for each time of day, a colour for each state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from typing import Any

import pandas as pd

from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, day_of, midnight_of
from strandline.quality.figures import percent
from strandline.quality.report.figure import Figure, Series, TableBehind

_MINUTE_MS = 60_000
_ROW_MINUTES = (15, 30, 60, 120, 180, 240, 360, 720, 1440)
_ONE_STRIP_DAYS = 400
_LEAST_DAYS = 28
_MOST_STRIPS = 12
_MOST_CELLS = 21_000
"""The largest number of cells of a calendar of several strips, to keep the page small."""
_COUNTS = ("on_time", "late_accepted", "late", "no_window")
_STATES = ("open", "fired", "closed", "gap")

# The larger, the worse: a cell of several slots shows its worst one.
CLOSED, FIRED, GAP, OPEN = range(1, 5)
NONE_LATE, FEW_LATE, SOME_LATE, MANY_LATE, MOST_LATE, ALL_LATE = range(1, 7)
_SHARES = ((0.5, MOST_LATE), (0.1, MANY_LATE), (0.01, SOME_LATE), (0.0, FEW_LATE))
"""The lower bounds of the late share for the shades of a slot."""


@dataclass(frozen=True)
class Shade:
    """A colour of a calendar, with its meaning and its number of slots."""

    name: str
    style: str
    meaning: str
    slots: int


@dataclass(frozen=True)
class Calendar:
    """A calendar: strips of at most a year each, the newest first, and a legend of the colours.

    Attributes:
        strips: the name and the plot of each strip.
        shades: the colours.
        older_years: the number of older strips, which are not shown.
        shares_cells: whether a cell shows several slots, in the colour of the worst one.
    """

    strips: tuple[tuple[str, Figure], ...]
    shades: tuple[Shade, ...]
    older_years: int
    shares_cells: bool


def calendar(completeness: pd.DataFrame) -> Calendar:
    """The states of the slots; short slots share a cell of a quarter of an hour or more."""
    slots = _measured(completeness)
    states = {"fired": FIRED, "open": OPEN}
    slots["shade"] = slots["state"].map(states).fillna(CLOSED).astype(int)
    slots["shade"] = slots["shade"].mask(slots["gap"] > 0, GAP)
    meanings = {
        CLOSED: ("closed", "final: what still comes is refused"),
        FIRED: ("fired", "published, and still open to late records"),
        GAP: ("gap", "empty, behind the first slot that accepted a record"),
        OPEN: ("open", "the watermark has not reached its end"),
    }
    return _calendar(slots, meanings, "state-", "completeness of the slots of")


def late_calendar(completeness: pd.DataFrame) -> Calendar:
    """The calendar of the refused share of each slot's records; slots without records are empty."""
    slots = _measured(completeness)
    evaluated = slots[[*_COUNTS]].sum(axis=1)
    slots = slots[evaluated > 0].copy()
    share = slots["late"] / evaluated[evaluated > 0]
    slots["shade"] = NONE_LATE
    for above, shade in reversed(_SHARES):
        slots.loc[share > above, "shade"] = shade
    others = slots[["on_time", "late_accepted", "no_window"]].sum(axis=1)
    slots.loc[others == 0, "shade"] = ALL_LATE
    meanings = {
        NONE_LATE: ("none late", ""),
        FEW_LATE: ("up to 1 %", ""),
        SOME_LATE: ("1 to 10 %", ""),
        MANY_LATE: ("10 to 50 %", ""),
        MOST_LATE: ("more than half", ""),
        ALL_LATE: ("only late", "it has records, and all are late"),
    }
    return _calendar(slots, meanings, "share-", "share of late records in the slots of")


def _calendar(
    slots: pd.DataFrame, meanings: dict[int, tuple[str, str]], style: str, what: str
) -> Calendar:
    """A calendar; `meanings` has the meanings of the shades from 1 on, in order."""
    grid = _Grid(_shortest_ms(slots))
    slots["day"] = slots["start_ms"] // DAY_MS
    slots["row"] = slots["start_ms"] % DAY_MS // grid.row_ms
    strips, shades = _strips(slots["day"], grid.cell_days), _shades(slots, meanings, style)
    series = tuple(Series(shade.name, shade.style) for shade in shades)
    drawn = [
        (name, _strip(slots, (first, last), grid, series, f"{what} {name}"))
        for name, first, last in strips[:_MOST_STRIPS]
    ]
    fitting = _number_that_fits([figure for _, figure in drawn])
    return Calendar(
        tuple(drawn[:fitting]),
        shades,
        max(len(strips) - fitting, 0),
        bool(slots.duplicated(["day", "row"]).any()),
    )


def _shades(
    slots: pd.DataFrame, meanings: dict[int, tuple[str, str]], style: str
) -> tuple[Shade, ...]:
    counts = slots.groupby("shade")["slots"].sum()
    return tuple(
        Shade(name, f"{style}{shade}", meaning, int(counts.get(shade, 0)))
        for shade, (name, meaning) in meanings.items()
    )


def _number_that_fits(figures: Sequence[Figure]) -> int:
    """The number of figures that have at most `_MOST_CELLS` cells together; at least one."""
    totals = accumulate(len(figure.data["day"]) for figure in figures)
    return max(sum(cells <= _MOST_CELLS for cells in totals), 1)


def _measured(completeness: pd.DataFrame) -> pd.DataFrame:
    slots = completeness[["state", *_COUNTS]].copy()
    for edge in ("start", "end"):
        instants = completeness[f"slot_{edge}"].astype("datetime64[us, UTC]")
        slots[f"{edge}_ms"] = instants.astype("int64") // 1000
    slots["late"] = completeness["missed"]
    slots["slots"], is_gap = _number_of_slots(completeness), completeness["gap"].astype(bool)
    closed = completeness["closed_at"].astype("datetime64[us, UTC]")
    ends = completeness["slot_end"].astype("datetime64[us, UTC]")
    slots["closed_after"] = (closed - ends).dt.total_seconds() / 60
    for state in _STATES:
        is_this = is_gap if state == "gap" else (slots["state"] == state) & ~is_gap
        slots[state] = slots["slots"].where(is_this, 0)
    return slots


def gaps_in(completeness: pd.DataFrame) -> int:
    """The number of slots that are gaps; a row of the table may stand for several gaps."""
    return int(_number_of_slots(completeness)[completeness["gap"].astype(bool)].sum())


def _number_of_slots(completeness: pd.DataFrame) -> pd.Series[int]:
    """The number of slots of each row of the table."""
    if "slots" not in completeness:
        return pd.Series(1, index=completeness.index)
    return completeness["slots"].astype("Int64").fillna(1).astype("int64")


@dataclass(frozen=True)
class _Grid:
    """The cells of a calendar.

    Attributes:
        shortest_ms: the shortest distance between the slots.
    """

    shortest_ms: int

    @property
    def row_ms(self) -> int:
        """The length of a row in ms: the shortest distance between slots, or a multiple of it."""
        rows = (minutes * _MINUTE_MS for minutes in _ROW_MINUTES)
        return next((row_ms for row_ms in rows if row_ms >= self.shortest_ms), DAY_MS)

    @property
    def cell_days(self) -> int:
        """The number of days of a cell: those of a slot of days; 1 for a window of all time."""
        days = -(-self.shortest_ms // DAY_MS)
        return days if 1 < days < _ONE_STRIP_DAYS else 1


def _shortest_ms(slots: pd.DataFrame) -> int:
    """The shortest distance between slots in ms."""
    steps = slots["start_ms"].drop_duplicates().sort_values().diff().dropna()
    sizes = slots["end_ms"] - slots["start_ms"]
    return int(min([*steps.nsmallest(1), *sizes.nsmallest(1)], default=DAY_MS))


def _strips(days: pd.Series[int], cell_days: int) -> list[tuple[str, int, int]]:
    """The name, first and last day of each strip: one strip for all days, or one for each year."""
    if days.empty:
        return []
    first, last = int(days.min()), int(days.max()) + cell_days - 1
    if last - first < _ONE_STRIP_DAYS:
        years = sorted({day_of(day * DAY_MS).year for day in (first, last)})
        padded = min(max(last, first + _LEAST_DAYS - 1), END_OF_INSTANTS_MS // DAY_MS - 1)
        return [(" to ".join(map(str, years)), first, padded)]
    ends = (days + cell_days - 1).clip(upper=END_OF_INSTANTS_MS // DAY_MS - 1)
    drawn = {*days.unique(), *ends.unique()}  # a slot may end in a year in which none starts
    years = sorted({day_of(int(day) * DAY_MS).year for day in drawn}, reverse=True)
    return [(str(year), _day(date(year, 1, 1)), _day(date(year, 12, 31))) for year in years]


def _day(day: date) -> int:
    return midnight_of(day) // DAY_MS


def _strip(
    slots: pd.DataFrame, ends: tuple[int, int], grid: _Grid, series: tuple[Series, ...], label: str
) -> Figure:
    first, last = ends
    # the last slot of days of a year may end in the next one, and is drawn there too
    slots = slots[slots["day"].between(first - grid.cell_days + 1, last)]
    sums: dict[str, Any] = dict.fromkeys([*_COUNTS, *_STATES], "sum")
    extremes = {"shade": "max", "start_ms": "min", "end_ms": "max", "closed_after": "max"}
    cells = slots.groupby(["day", "row"]).agg(sums | extremes).reset_index()
    rows = DAY_MS // grid.row_ms
    data = {
        "first": day_of(first * DAY_MS).isoformat(),
        "days": last - first + 1,
        "rows": rows,
        "rowMinutes": grid.row_ms // _MINUTE_MS,
        "cellDays": grid.cell_days,
        "day": (cells["day"] - first).tolist(),
        "row": cells["row"].tolist(),
        "shade": (cells["shade"] - 1).tolist(),
        "lengthMinutes": _or_one((cells["end_ms"] - cells["start_ms"]) / _MINUTE_MS),
        "closedAfter": [
            None if pd.isna(minutes) else round(minutes) for minutes in cells["closed_after"]
        ],
        **{name: _or_zero(cells[name]) for name in (*_STATES, *_COUNTS)},
    }
    height = max(44 + min(11 * rows, 480), 90)
    return Figure("heat", label, height, data, _by_day(slots[slots["day"] >= first]), series)


def _or_zero(column: pd.Series[Any]) -> Any:
    """Whole numbers as a list; 0 if all are 0."""
    return column.astype("int64").tolist() if column.any() else 0


def _or_one(column: pd.Series[Any]) -> Any:
    """Numbers as a list; a single number if all are equal."""
    values = column.round(3).tolist()
    return values[0] if len(set(values)) == 1 else values


def _by_day(slots: pd.DataFrame) -> TableBehind:
    """The slots of a strip, by day."""
    days: Any = slots.groupby("day")[[*_STATES, *_COUNTS]].sum().reset_index()
    rows = [
        (
            day_of(int(day.day) * DAY_MS).isoformat(),
            *(int(getattr(day, name)) for name in ("closed", "fired", "open", "gap")),
            *(int(getattr(day, name)) for name in ("on_time", "late_accepted", "late")),
            percent(day.late, day.on_time + day.late_accepted + day.late),
        )
        for day in days.itertuples()
    ]
    columns = ("day", "closed", "fired", "open", "gaps", "on time", "late but accepted", "late",
               "share late")  # fmt: skip
    return TableBehind.of(columns, rows)
