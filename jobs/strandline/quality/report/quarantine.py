"""The report's plots of quarantined records, and of the lateness of late records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pandas as pd

from strandline.quality.figures import duration, least_shown, percent
from strandline.quality.report.figure import Figure, Series, TableBehind, bars, lines

REFUSED = ("late", "no_window")
"""The reasons of well-formed records; all others are of malformed ones."""

_UNITS = ((3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds"))
"""The units of the plot's x axis: the largest is chosen of which the axis has at least two."""
_NEARLY_ALL = 95
_EXTRA_MS = tuple(minutes * 60_000 for minutes in (5, 15, 60, 120, 360, 720, 1440, 10_080))
_COLOURS = 8


@dataclass(frozen=True)
class Saved:
    """The late records that an extra allowed lateness would have saved."""

    extra: str
    records: int
    share: str


def quarantine_plots(quarantine: pd.DataFrame) -> tuple[tuple[str, Figure], ...]:
    """Two plots of quarantined records by day and reason: refused records and malformed records."""
    days = quarantine.dropna(subset=["day", "reason"])
    groups = ((title, days["reason"].isin(REFUSED) == is_refused) for title, is_refused in _GROUPS)
    return tuple(
        (title, _by_day(days[chosen], f"{title} records by day"))
        for title, chosen in groups
        if chosen.any()
    )


_GROUPS = (("late", True), ("malformed", False))


def _by_day(rows: pd.DataFrame, label: str) -> Figure:
    counts = rows.pivot_table(
        index="day", columns="reason", values="records", aggfunc="sum", fill_value=0
    )
    reasons = [str(name) for name in counts.sum().sort_values(ascending=False, kind="stable").index]
    days: Sequence[date] = list(counts.index)
    by_reason = {reason: [int(many) for many in counts[reason]] for reason in reasons}
    table = TableBehind.of(
        ("day", *reasons),
        [
            (day.isoformat(), *(of_reason[place] for of_reason in by_reason.values()))
            for place, day in enumerate(days)
        ],
    )
    series = [
        (Series(reason, "late" if reason == "late" else f"colour-{number % _COLOURS}"), of_reason)
        for number, (reason, of_reason) in enumerate(by_reason.items())
    ]
    return bars(label, days, series, unit="records", table=table)


def lateness_plot(lateness: pd.DataFrame) -> Figure | None:
    """The share of the late records that each extra allowed lateness would have saved."""
    found = lateness.groupby("late_by_ms")["records"].sum().sort_index()
    if not found.sum():
        return None
    saved = (found.cumsum() / found.sum() * 100).round(3)
    # a few that are later by far would squeeze all others into the first pixels
    nearly_all = next(
        x for x, share in zip(found.index, saved, strict=True) if share >= _NEARLY_ALL
    )
    end_ms = found.index[-1] if found.index[-1] < 3 * nearly_all else 1.05 * nearly_all
    unit_ms, unit = next((one for one in _UNITS if end_ms >= 2 * one[0]), _UNITS[-1])
    table = TableBehind.of(
        ("more by", "late records saved", "share"),
        [(one.extra, one.records, one.share) for one in saved_by(lateness)],
    )
    return lines(
        "share of the late records that so much more would have saved",
        [0.0, *(round(late_by_ms / unit_ms, 4) for late_by_ms in found.index)],
        [(Series("saved", "late"), [0.0, *saved])],
        unit="% of late records",
        table=table,
        x_title=f"{unit} more",
        step=True,
        end=round(end_ms / unit_ms, 4),
    )


def saved_by(lateness: pd.DataFrame) -> tuple[Saved, ...]:
    """The late records saved by several extra lateness values; the last value saves all."""
    total = int(lateness["records"].sum())
    if not total:
        return ()
    worst_ms = least_shown(int(lateness["late_by_ms"].max()))
    lengths_ms = [*(extra_ms for extra_ms in _EXTRA_MS if extra_ms < worst_ms), worst_ms]
    counts = [
        int(lateness["records"][lateness["late_by_ms"] <= extra_ms].sum())
        for extra_ms in lengths_ms
    ]
    return tuple(
        Saved(duration(extra_ms), count, percent(count, total))
        for extra_ms, count in zip(lengths_ms, counts, strict=True)
    )
