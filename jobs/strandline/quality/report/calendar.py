"""The completeness calendar: a column a day, a row a time of day, a colour a state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    datetime_of,
    day_of,
    midnight_of,
)
from strandline.quality.report.format import moment, percent
from strandline.quality.report.theme import SOFT, styled

_MINUTE_MS = 60_000
_ROW_MINUTES = (15, 30, 60, 120, 180, 240, 360, 720, 1440)
_ONE_STRIP_DAYS = 400
_LEAST_DAYS = 28
_MOST_STRIPS = 12
_MANY_LATE_SHARE = 0.1
_COUNTS = ("on_time", "late_accepted", "late", "no_window")
_STATES = ("open", "fired", "closed", "gap")

# The larger, the worse: a cell of several slots shows its worst one.
CLOSED, FIRED, GAP, OPEN, SOME_LATE, MANY_LATE = range(1, 7)
# Blues against red and yellow, each of another lightness: told apart by every colour vision.
_COLOURS = {
    CLOSED: "#6baed6",
    FIRED: "#c6dbef",
    GAP: "#9aa5b1",
    OPEN: "#fee08b",
    SOME_LATE: "#f46d43",
    MANY_LATE: "#a50026",
}


@dataclass(frozen=True)
class Shade:
    """A colour of the calendar, what it means, and how many slots have it."""

    name: str
    colour: str
    meaning: str
    slots: int


@dataclass(frozen=True)
class Calendar:
    """The calendar: strips of at most a year each, the newest first, and what the colours mean."""

    strips: tuple[tuple[str, go.Figure], ...]
    shades: tuple[Shade, ...]
    older_years: int


def calendar(completeness: pd.DataFrame) -> Calendar:
    """The calendar of the slots; short slots share a cell of a quarter of an hour or more."""
    slots = _shaded(completeness)
    row_ms = _row_ms(slots)
    slots["day"] = slots["start_ms"] // DAY_MS
    slots["row"] = slots["start_ms"] % DAY_MS // row_ms
    strips = _strips(slots["day"])
    return Calendar(
        strips=tuple(
            (name, _strip(slots[slots["day"].between(first, last)], first, last, row_ms))
            for name, first, last in strips[:_MOST_STRIPS]
        ),
        shades=_legend(slots["shade"]),
        older_years=max(len(strips) - _MOST_STRIPS, 0),
    )


def _shaded(completeness: pd.DataFrame) -> pd.DataFrame:
    slots = completeness[["state", *_COUNTS]].copy()
    for edge in ("start", "end"):
        instants = completeness[f"slot_{edge}"].astype("datetime64[us, UTC]")
        slots[f"{edge}_ms"] = instants.astype("int64") // 1000
    slots["gap"] = completeness["gap"].astype(bool)
    slots["closed_at"] = completeness["closed_at"].astype("datetime64[us, UTC]")
    for state in _STATES:
        slots[state] = (slots["state"] == state) & ~slots["gap"] if state != "gap" else slots["gap"]
    judged = slots["on_time"] + slots["late_accepted"] + slots["late"]
    slots["shade"] = slots["state"].map({"fired": FIRED, "open": OPEN}).fillna(CLOSED).astype(int)
    slots.loc[slots["gap"], "shade"] = GAP
    slots.loc[slots["late"] > 0, "shade"] = SOME_LATE
    slots.loc[(slots["late"] > 0) & (slots["late"] > _MANY_LATE_SHARE * judged), "shade"] = (
        MANY_LATE
    )
    return slots


def _row_ms(slots: pd.DataFrame) -> int:
    """The time of day that a row stands for: that of the shortest step between slots, or more."""
    steps = slots["start_ms"].drop_duplicates().sort_values().diff().dropna()
    sizes = slots["end_ms"] - slots["start_ms"]
    shortest_ms = min([*steps.nsmallest(1), *sizes.nsmallest(1)], default=DAY_MS)
    rows = (minutes * _MINUTE_MS for minutes in _ROW_MINUTES)
    return next((row_ms for row_ms in rows if row_ms >= shortest_ms), DAY_MS)


def _strips(days: pd.Series[int]) -> list[tuple[str, int, int]]:
    """Name, first and last day of each strip: one for everything, or one for each year."""
    if days.empty:
        return []
    first, last = int(days.min()), int(days.max())
    if last - first < _ONE_STRIP_DAYS:
        years = sorted({day_of(day * DAY_MS).year for day in (first, last)})
        padded = min(max(last, first + _LEAST_DAYS - 1), END_OF_INSTANTS_MS // DAY_MS - 1)
        return [(" to ".join(map(str, years)), first, padded)]
    years = sorted({day_of(int(day) * DAY_MS).year for day in days.unique()}, reverse=True)
    return [(str(year), _day(date(year, 1, 1)), _day(date(year, 12, 31))) for year in years]


def _day(day: date) -> int:
    return midnight_of(day) // DAY_MS


def _strip(slots: pd.DataFrame, first: int, last: int, row_ms: int) -> go.Figure:
    rows, days = DAY_MS // row_ms, last - first + 1
    shades: list[list[int | None]] = [[None] * days for _ in range(rows)]
    texts = [[""] * days for _ in range(rows)]
    sums = dict.fromkeys([*_COUNTS, *_STATES], "sum")
    extremes = {"shade": "max", "start_ms": "min", "end_ms": "max", "closed_at": "max"}
    cells: Any = slots.groupby(["day", "row"]).agg(sums | extremes).reset_index()
    for cell in cells.itertuples():
        shades[cell.row][cell.day - first] = int(cell.shade)
        texts[cell.row][cell.day - first] = _hover(cell)
    dates = [day_of(day * DAY_MS).isoformat() for day in range(first, last + 1)]
    wide = days <= 3 * _LEAST_DAYS
    figure = go.Figure(
        go.Heatmap(
            z=shades,
            x=dates,
            y=list(range(rows)),
            text=texts,
            hovertemplate="%{text}<extra></extra>",
            hoverongaps=False,
            showscale=False,
            zmin=CLOSED - 0.5,
            zmax=MANY_LATE + 0.5,
            colorscale=_colorscale(),
            xgap=1 if wide else 0,
            ygap=1,
        )
    )
    hours = [row for row in range(rows) if row * row_ms % (6 * 60 * _MINUTE_MS) == 0]
    styled(figure, height=max(40 + min(11 * rows, 480), 80), plot_bgcolor=SOFT)
    figure.update_xaxes(type="date", showgrid=False, range=_x_range(first, last))
    if not wide:
        figure.update_xaxes(dtick="M1", tickformat="%b", ticklabelmode="period", showgrid=True)
    figure.update_yaxes(
        range=[rows - 0.5, -0.5],
        tickvals=hours,
        ticktext=[f"{row * row_ms // (60 * _MINUTE_MS):02d}:00" for row in hours],
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    return figure


def _x_range(first: int, last: int) -> list[str]:
    """From half a day before the first day to half a day after the last: a cell is centred."""
    edges_ms = ((first - 0.5) * DAY_MS, (last + 0.5) * DAY_MS)
    inside = (min(max(int(ms), LEAST_INSTANT_MS), END_OF_INSTANTS_MS - 1) for ms in edges_ms)
    return [datetime_of(ms).isoformat(" ")[:16] for ms in inside]


def _colorscale() -> list[tuple[float, str]]:
    """Steps, not a gradient: each colour twice, at both ends of its part."""
    parts = len(_COLOURS)
    return [
        (edge / parts, colour)
        for number, colour in enumerate(_COLOURS.values())
        for edge in (number, number + 1)
    ]


def _hover(cell: Any) -> str:
    start, end = datetime_of(int(cell.start_ms)), datetime_of(int(cell.end_ms))
    states = {state: getattr(cell, state) for state in _STATES if getattr(cell, state)}
    if sum(states.values()) == 1:
        state = next(iter(states))
        state += f" at {moment(cell.closed_at)}" if state == "closed" else ""
    else:
        state = ", ".join(f"{slots} {state}" for state, slots in states.items())
    lines = [f"<b>{moment(start)}</b> to {moment(end)}", state]
    judged = cell.on_time + cell.late_accepted + cell.late
    if judged:
        lines.append(f"on time {cell.on_time:,}, late but accepted {cell.late_accepted:,}")
    if cell.late:
        lines.append(f"late {cell.late:,} ({percent(cell.late, judged)})")
    if cell.no_window:
        lines.append(f"in no window {cell.no_window:,}")
    return "<br>".join(lines)


def _legend(shades: pd.Series[int]) -> tuple[Shade, ...]:
    share = f"{_MANY_LATE_SHARE:.0%}"
    meanings = {
        CLOSED: ("closed", "complete; what still comes is refused"),
        FIRED: ("fired", "published, and still open to late records"),
        OPEN: ("open", "the watermark has not reached its end"),
        GAP: ("gap", "empty, though earlier and later slots are not"),
        SOME_LATE: ("some late", f"at most {share} of its records refused"),
        MANY_LATE: ("many late", f"more than {share} of its records refused"),
    }
    slots = shades.value_counts()
    return tuple(
        Shade(name, _COLOURS[shade], meaning, int(slots.get(shade, 0)))
        for shade, (name, meaning) in meanings.items()
    )
