"""A plot as the page's own script draws it, and the table behind it for who does not see it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from strandline.visible import visible

_MOST_ROWS = 400
"""So many rows of a table stand in the page; who needs more reads the pipeline's tables."""


@dataclass(frozen=True)
class Series:
    """What a colour of a plot stands for.

    Attributes:
        name: as the legend and the hovering say it.
        style: the class of the colour in the page's style sheet.
    """

    name: str
    style: str


@dataclass(frozen=True)
class TableBehind:
    """The figures of a plot as text; `left_out`: the rows that are too many for a page."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> TableBehind:
        """The last rows, numbers with their thousands."""
        shown = tuple(tuple(_text(value) for value in row) for row in rows[-_MOST_ROWS:])
        return cls(tuple(columns), shown, len(rows) - len(shown))


@dataclass(frozen=True)
class Figure:
    """A plot.

    Attributes:
        kind: `heat`, `bars` or `lines`: how the page's script draws it.
        label: the plot in a sentence.
        height: in pixels.
        data: what is drawn, by the kind; all of it numbers, dates and plain texts.
        series: the colours, for a legend; empty: one needs none.
        table: the figures behind it.
    """

    kind: str
    label: str
    height: int
    data: Mapping[str, Any]
    table: TableBehind
    series: tuple[Series, ...] = field(default=())

    @property
    def script(self) -> str:
        """JSON for a script element, which only `</script` could leave."""
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
    """Bars by day, one series on the other.

    Args:
        label: the plot in a sentence.
        days: ascending; a day that lacks has no bar.
        series: what they consist of, the lowest first, with a number for each day.
        unit: what is counted.
        table: behind it.
        band: for each day what is usual, from and to; None: not known.
    """
    first = days[0]
    data: dict[str, Any] = {
        "first": first.isoformat(),
        "x": [(day - first).days for day in days],
        "series": [_drawn(one, values) for one, values in series],
        "unit": unit,
    }
    if any(band):
        data["band"] = [None if usual is None else list(usual) for usual in band]
    return Figure("bars", label, 190, data, table, tuple(one for one, _ in series))


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
    """Lines over days, or over a number.

    Args:
        label: the plot in a sentence.
        x: days after `first`, or numbers; ascending.
        series: the lines, with a number for each x; None: there is none.
        unit: of the numbers.
        table: behind it.
        first: the day that x counts from; None: x is a number.
        x_title: of a number.
        step: whether a line stays until the next x.
        end: where the x axis ends; None: at the last.
        logarithmic: whether each step of the y axis is ten times the one below it; 0 is below all.
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
    return Figure("lines", label, 240, data, table, tuple(one for one, _ in series))


def _drawn(series: Series, values: Sequence[float | None]) -> dict[str, Any]:
    numbers = [None if value is None or value != value else value for value in values]  # noqa: PLR0124 - NaN
    return {"name": series.name, "style": series.style, "values": numbers}


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _visible(content: Any) -> Any:
    """The same, its texts without control signs."""
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, Mapping):
        return {name: _visible(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_visible(value) for value in content]
    return content
