"""The report's plots of quarantined records and of lateness, and the values frequent among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


_MOST_COLUMNS = 8
_MOST_VALUES = 4
_STANDS_OUT = 0.2
"""How far above an equal part the share of a value is that stands out."""


@dataclass(frozen=True)
class Culprit:
    """A value of a column, and the number of rows with it."""

    value: str
    records: int
    share: str


@dataclass(frozen=True)
class Culprits:
    """The most frequent values of a column among late or malformed rows.

    Attributes:
        column: the column.
        values: its most frequent values, the most frequent first.
        distinct: the number of its values, or at least of the counted ones.
        stands_out: whether the first value is far more frequent than an equal part, or the only
            one.
        is_least: whether the records may be more, and so may the values.
    """

    column: str
    values: tuple[Culprit, ...]
    distinct: int
    stands_out: bool
    is_least: bool = False


@dataclass(frozen=True)
class Who:
    """The columns with frequent values among late or malformed rows.

    Attributes:
        group: `late` or `malformed`.
        records: the number of rows in the group.
        columns: the columns by the frequency of their most frequent value, descending.
    """

    group: str
    records: int
    columns: tuple[Culprits, ...]

    @property
    def found(self) -> Culprits | None:
        """The column whose first value stands out most; None: no value stands out."""
        return next((column for column in self.columns if column.stands_out), None)


def who(values: pd.DataFrame, always: Collection[str] = ()) -> tuple[Who, ...]:
    """The frequent values of late and of malformed rows.

    Args:
        values: the counts of values of columns with more than one: `group`, `column`, `value`
            (text; None: null), `records`, `of`: the rows of the group, `is_least`: whether there
            may be more records.
        always: columns that are listed even without a frequent value.
    """
    return tuple(
        Who(str(group), _records(of_group), columns)
        for group, of_group in values.groupby("group")
        if (columns := _columns(of_group, always))
    )


def _records(of_group: pd.DataFrame) -> int:
    return int(of_group["of"].max())


def _columns(of_group: pd.DataFrame, always: Collection[str]) -> tuple[Culprits, ...]:
    found: list[tuple[float, Culprits]] = []
    for column, rows in of_group.groupby("column"):
        ordered = rows.sort_values("records", ascending=False, kind="stable")
        total, distinct = int(ordered["of"].iloc[0]), len(ordered)
        # how far the first value is above an equal part
        above = ordered["records"].iloc[0] / total - 1 / distinct
        stands_out = distinct == 1 or above >= _STANDS_OUT
        if not stands_out and column not in always:
            continue
        is_least = bool(ordered["is_least"].any())
        of_column = Culprits(str(column), _first(ordered), distinct, stands_out, is_least)
        found.append((above, of_column))
    found.sort(key=lambda one: -one[0])
    return tuple(culprits for _, culprits in found[:_MOST_COLUMNS])


def _first(ordered: pd.DataFrame) -> tuple[Culprit, ...]:
    """The first values of a column that is ordered by records."""
    first = ordered[["value", "records", "of"]].head(_MOST_VALUES)
    return tuple(
        Culprit("(null)" if value is None else str(value), int(many), percent(many, total))
        for value, many, total in first.itertuples(index=False)
    )
