"""The report's plot of records by arrival day, with the usual range of the day of the week."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from strandline.model.intervals import last_day_before
from strandline.quality.findings.volume import (
    Unusual,
    UsualVolume,
    comparing_days,
    unusual_days,
    unusual_in_words,
)
from strandline.quality.report.figure import Figure, Series, TableBehind, bars

_SHOWN = 6
"""The number of stretches of unusual days that are named beside the plot."""


@dataclass(frozen=True)
class Volume:
    """The records by arrival day, and the unusual days.

    Attributes:
        figure: the plot; None if no day is known.
        unusual: the unusual days, with their records and the usual range.
    """

    figure: Figure | None
    unusual: tuple[Unusual, ...]

    @property
    def outside(self) -> str:
        """The unusual days as text; empty if there is none."""
        return unusual_in_words(self.unusual, _SHOWN)


def volume(
    records: Mapping[date, int],
    since: date | None,
    until: date | None,
    *,
    processed_ms: int | None = None,
) -> Volume:
    """The volume of the shown arrival days.

    A day without a record is shown if what is usual on it is known.

    Args:
        records: the well-formed records by arrival day; the usual range needs four earlier days of
            the same weekday.
        since: the first shown day; None: the first of all days.
        until: the last shown day; None: the last of all days.
        processed_ms: the midnight up to which everything is processed, in ms, which may lie some
            days after the last record; None: there is none.
    """
    usual = _usual_by_day(records, since, until, processed_ms)
    if not usual:
        return Volume(None, ())
    outside = unusual_days(records, [*usual])
    figure = _figure(records, usual, {one.day for one in outside})
    return Volume(figure, tuple(outside))


def _figure(
    records: Mapping[date, int],
    usual: Mapping[date, tuple[float, float] | None],
    unusual: Collection[date],
) -> Figure:
    """The bars of some days, the unusual ones in a colour of their own, before the usual ranges."""
    days = [*usual]
    counts = [records.get(day, 0) for day in days]
    counted = [*zip(days, counts, strict=True)]
    parts = [
        (
            Series("records", "colour-0"),
            [0 if day in unusual else count for day, count in counted],
        ),
        (
            Series("outside what is usual", "unusual"),
            [count if day in unusual else 0 for day, count in counted],
        ),
    ]
    table = TableBehind.of(
        ("arrival day", "records", "usual from", "usual to"),
        [
            (day.isoformat(), count, *(_edge(usual[day], place) for place in (0, 1)))
            for day, count in counted
        ],
    )
    band = [*usual.values()]
    return bars("records by arrival day", days, parts, unit="records", table=table, band=band)


def _usual_by_day(
    records: Mapping[date, int], since: date | None, until: date | None, processed_ms: int | None
) -> dict[date, tuple[float, float] | None]:
    """The usual minimum and maximum of each shown day, in order."""
    over = [] if processed_ms is None else [last_day_before(processed_ms)]
    last = min(max([*records, *over], default=date.min), until or date.max)
    days = sorted(
        day for day in comparing_days(records).union(records) if (since or date.min) <= day <= last
    )
    usual = {day: _edges(records, day) for day in days}
    return {day: edges for day, edges in usual.items() if day in records or edges is not None}


def _edges(records: Mapping[date, int], day: date) -> tuple[float, float] | None:
    """The usual minimum and maximum of records on a day; None if not known."""
    usual = UsualVolume.of(records, day)
    return None if usual is None else (usual.least, usual.most)


def _edge(band: tuple[float, float] | None, place: int) -> str:
    return "–" if band is None else f"{band[place]:,.0f}"
