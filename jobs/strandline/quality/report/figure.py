"""The data of a plot for the page's script, and its figures as a table for screen readers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from strandline.visible import visible

_MOST_ROWS = 400
"""The largest number of rows of a plot's table in the page."""


@dataclass(frozen=True)
class Series:
    """A series of a plot.

    Attributes:
        name: its name in the legend and in the tooltip.
        style: the class of its colour in the page's style sheet.
    """

    name: str
    style: str


@dataclass(frozen=True)
class TableBehind:
    """The figures of a plot as a table; `left_out` is the number of rows that are not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> TableBehind:
        """The table with the last rows, and with thousands separators in numbers."""
        shown = tuple(tuple(_text(value) for value in row) for row in rows[-_MOST_ROWS:])
        return cls(tuple(columns), shown, len(rows) - len(shown))


@dataclass(frozen=True)
class Figure:
    """A plot.

    Attributes:
        kind: `heat`, `bars` or `lines`: the form in which the page's script draws it.
        label: a sentence about the plot.
        height: its height in pixels.
        data: numbers, dates and plain texts; their structure depends on the kind.
        series: the series for a legend; empty if it needs none.
        table: the same figures as a table.
    """

    kind: str
    label: str
    height: int
    data: Mapping[str, Any]
    table: TableBehind
    series: tuple[Series, ...] = field(default=())

    @property
    def script(self) -> str:
        """JSON for a script element, with `<` escaped so that the data cannot end the element."""
        named = [{"name": one.name, "style": one.style} for one in self.series]
        content = {"kind": self.kind, "height": self.height, **self.data}
        if named and "series" not in self.data:
            content["legend"] = named
        text = json.dumps(_visible(content), separators=(",", ":"), allow_nan=False)
        return text.replace("<", "\\u003c")


def bars(
    label: str,
    days: Sequence[date],
    series: Sequence[tuple[Series, Sequence[float]]],
    *,
    unit: str,
    table: TableBehind,
    band: Sequence[tuple[float, float] | None] = (),
) -> Figure:
    """A plot of stacked bars by day.

    Args:
        label: a sentence about the plot.
        days: the days, ascending; a missing day has no bar.
        series: the series from bottom to top, with a number for each day.
        unit: the unit of the numbers.
        table: the same figures as a table.
        band: the usual range of each day, as from and to; None: not known.
    """
    first = days[0]
    data: dict[str, Any] = {
        "first": first.isoformat(),
        "x": [(day - first).days for day in days],
        "series": [_drawn(one, values) for one, values in series],
        "unit": unit,
    }
    legend = [one for one, _ in series]
    if any(band):
        legend.append(Series("usual", "band"))
        data["band"] = [None if usual is None else list(usual) for usual in band]
    return Figure("bars", label, 190, data, table, tuple(legend))


def lines(
    label: str,
    x: Sequence[float],
    series: Sequence[tuple[Series, Sequence[float | None]]],
    *,
    unit: str,
    table: TableBehind,
    first: date | None = None,
    x_title: str = "",
    step: bool = False,
    end: float | None = None,
    logarithmic: bool = False,
) -> Figure:
    """A plot of lines over days, or over a number.

    Args:
        label: a sentence about the plot.
        x: days after `first`, or numbers; ascending.
        series: the lines, with a number for each x; None: the line has no point there.
        unit: the unit of the numbers.
        table: the same figures as a table.
        first: the day from which x counts; None: x is a number.
        x_title: the title of the x axis, if x is a number.
        step: whether a line keeps its value until the next x.
        end: the end of the x axis; None: the last x.
        logarithmic: whether the y axis is logarithmic; 0 is drawn below all other values.
    """
    data = {
        "first": None if first is None else first.isoformat(),
        "x": list(x),
        "series": [_drawn(one, values) for one, values in series],
        "unit": unit,
        "xTitle": x_title,
        "step": step,
        "end": end,
        "log": logarithmic,
    }
    legend = tuple(one for one, _ in series)
    return Figure("lines", label, 254 if x_title else 240, data, table, legend)


def _drawn(series: Series, values: Sequence[float | None]) -> dict[str, Any]:
    numbers = [None if value is None or value != value else value for value in values]  # noqa: PLR0124 - NaN
    return {"name": series.name, "style": series.style, "values": numbers}


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _visible(content: Any) -> Any:
    """The data with control characters of its texts escaped."""
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, Mapping):
        return {name: _visible(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_visible(value) for value in content]
    return content
