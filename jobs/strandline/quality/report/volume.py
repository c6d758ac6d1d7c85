"""The report's plot of records by arrival day, with the usual range of the day of the week."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from strandline.quality.findings.volume import Unusual, UsualVolume, unusual_days
from strandline.quality.report.figure import Figure, Series, TableBehind, bars


@dataclass(frozen=True)
class Volume:
    """The records by arrival day, and the unusual days.

    Attributes:
        figure: the plot; None if no day is known.
        unusual: the unusual days, with their records and the usual range.
    """

    figure: Figure | None
    unusual: tuple[Unusual, ...]


def volume(records: Mapping[date, int], since: date | None, until: date | None) -> Volume:
    """The volume of the shown arrival days.

    Args:
        records: the well-formed records by arrival day; the usual range needs four earlier days of
            the same weekday.
        since: the first shown day; None: the first of all days.
        until: the last shown day; None: the last of all days.
    """
    days = [
        day
        for day in sorted(records)
        if (since is None or day >= since) and (until is None or day <= until)
    ]
    if not days:
        return Volume(None, ())
    usual = {day: _edges(records, day) for day in days}
    outside = unusual_days(records, days)
    unusual = {one.day for one in outside}
    parts = [
        (Series("records", "colour-0"), [0 if day in unusual else records[day] for day in days]),
        (Series("outside what is usual", "unusual"),
         [records[day] if day in unusual else 0 for day in days]),
    ]  # fmt: skip
    table = TableBehind.of(
        ("arrival day", "records", "usual from", "usual to"),
        [
            (day.isoformat(), records[day], *(_edge(usual[day], place) for place in (0, 1)))
            for day in days
        ],
    )
    bands = [usual[day] for day in days]
    figure = bars("records by arrival day", days, parts, unit="records", table=table, band=bands)
    return Volume(figure, tuple(outside))


def _edges(records: Mapping[date, int], day: date) -> tuple[float, float] | None:
    """The usual minimum and maximum of records on a day; None if not known."""
    usual = UsualVolume.of(records, day)
    return None if usual is None else (usual.least, usual.most)


def _edge(band: tuple[float, float] | None, place: int) -> str:
    return "–" if band is None else f"{band[place]:,.0f}"
