"""`max_malformed_share`: the share of malformed rows on a run's arrival days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from strandline.model.intervals import days_named
from strandline.quality.figures import percent
from strandline.quality.findings.check import Check, Severity
from strandline.spec.quality import DEFAULT, Quality
from strandline.visible import number_of

if TYPE_CHECKING:
    import pandas as pd

_WARN_ABOVE = 0.05
_FAIL_ABOVE = 0.9
_NAME = "max_malformed_share"
_REASONS_SHOWN = 3
_OUTSIDE = "arrival_outside_partition"
_OUTSIDE_ABOVE = 0.01
"""The share of rows outside of their partition above which their hours are looked at.

An hour's share of an even day is 0.04, and remains below the limit for malformed rows.
"""
_MOST_HOURS = 14
"""The largest difference between a time zone and UTC, in hours."""
_OF_DAY = ("arrival_date", "event_date", "records")
_OF_REASON = ("arrival_date", "reason", "records")


@dataclass(frozen=True)
class RowsOfDay:
    """The observed rows of an arrival day.

    Attributes:
        well_formed: the number of well-formed rows.
        malformed: the number of malformed rows by reason.
        within_a_date: whether each well-formed row has its event time on the arrival date.
        hours_outside: a bit for each hour of the day, UTC, with an arrival outside of its
            partition; 0: there is none, or they are not known.
    """

    well_formed: int = 0
    malformed: Mapping[str, int] = field(default_factory=dict)
    within_a_date: bool = True
    hours_outside: int = 0

    @property
    def bad(self) -> int:
        """The malformed rows."""
        return sum(self.malformed.values())

    @property
    def rows(self) -> int:
        """All rows."""
        return self.well_formed + self.bad


def rows_of_days(day_map: pd.DataFrame, malformed: pd.DataFrame) -> dict[date, RowsOfDay]:
    """The observed rows of each arrival day; rows without an arrival day are left out.

    Args:
        day_map: the timeline's well-formed records by `arrival_date` and `event_date`.
        malformed: the timeline's malformed rows by `arrival_date` and `reason`, with
            `arrival_hours`.
    """
    counted, bad = (rows.dropna(subset=["arrival_date"]) for rows in (day_map, malformed))
    well_formed, crossing = Counter[date](), set[date]()
    for day, event_day, records in zip(*(counted[name] for name in _OF_DAY), strict=True):
        well_formed[day] += int(records)
        if event_day != day:
            crossing.add(day)
    reasons: dict[date, Counter[str]] = {}
    for day, reason, records in zip(*(bad[name] for name in _OF_REASON), strict=True):
        reasons.setdefault(day, Counter())[str(reason)] += int(records)
    outside = bad[bad["reason"] == _OUTSIDE]
    hours = dict(zip(outside["arrival_date"], outside["arrival_hours"].fillna(0), strict=True))
    return {
        day: RowsOfDay(
            well_formed[day], reasons.get(day, {}), day not in crossing, int(hours.get(day, 0))
        )
        for day in dict.fromkeys([*well_formed, *reasons])
    }


def dateless_rows(malformed: pd.DataFrame, most: int) -> RowsOfDay:
    """At most so many of the rows without an arrival day, which are all malformed.

    If there are more, it is not known which ones are meant: the first reasons by name are taken.

    Args:
        malformed: the timeline's malformed rows by `arrival_date` and `reason`.
        most: the largest number of rows.
    """
    dateless = malformed[malformed["arrival_date"].isna()]
    left, kept = most, Counter[str]()
    by_reason = dateless.groupby("reason")["records"].sum()
    for reason, records in by_reason.items():
        if taken := min(int(records), left):
            kept[str(reason)] = taken
        left -= taken
    return RowsOfDay(malformed=kept)


def checks_of_malformed(
    quality: Quality, days: Mapping[date, RowsOfDay], checked: Sequence[date], dateless: RowsOfDay
) -> Iterator[Check]:
    """The checks on the share of malformed rows, one for each limit.

    Args:
        quality: the limits; by default a warning above 0.05, and critical above 0.9.
        days: the rows of every known arrival day.
        checked: the days to check.
        dateless: the rows without an arrival day, which are checked with these days.
    """
    limits = quality.max_malformed_share
    if limits is None:
        return
    parts = [*(days[day] for day in checked if day in days), dateless]
    rows = sum(part.rows for part in parts)
    reasons: Counter[str] = Counter()
    for part in parts:
        reasons.update(part.malformed)
    for limit in _limits(limits, reasons, rows):
        share = limit.malformed / rows if rows else None
        sentence = "no row in the run's arrival days"
        if share is not None:
            sentence = limit.sentence(rows, reasons) + _named(checked, dateless)
            if share > limit.share:
                sentence += f", above {limit.share:g}{_since(days, checked, limit)}"
        yield Check(_NAME, limit.severity, share, limit.share, sentence, limit.reason)
    if limits == DEFAULT:
        yield from _of_another_zone(parts, reasons[_OUTSIDE], rows, _named(checked, dateless))


def _of_another_zone(
    parts: Sequence[RowsOfDay], outside: int, rows: int, named: str
) -> Iterator[Check]:
    """A warning if arrival dates look like dates of another time zone.

    They do if all arrivals outside of their partition are in the hours before midnight, or in the
    hours after it: a date of UTC+2 misses the last two hours of a day of UTC.

    Args:
        parts: the rows of each checked day.
        outside: the number of rows outside of their partition.
        rows: the number of all rows.
        named: the checked days as text.
    """
    of = [part.hours_outside for part in parts if part.malformed.get(_OUTSIDE)]
    every = reduce(or_, of, 0)
    for number in range(1, _MOST_HOURS + 1):
        after = (1 << number) - 1
        before = after << (24 - number)
        if outside > _OUTSIDE_ABOVE * rows and all(of) and every in (before, after):
            at, zone = ("before", "+") if every == before else ("after", "-")
            sentence = (
                f"{_OUTSIDE} {percent(outside, rows)} ({outside:,} of {rows:,}){named}, all within "
                f"{number_of(number, 'hour')} {at} midnight: arrival_date looks like a date of "
                f"UTC{zone}{number}; make it the date in UTC, or write null"
            )
            yield Check(_NAME, "warning", outside / rows, _OUTSIDE_ABOVE, sentence, _OUTSIDE)


def looks_like_event_date(days: Mapping[date, RowsOfDay], checked: Sequence[date]) -> str | None:
    """A note that the column of arrival dates looks like one of event dates; None if it does not.

    It does if rows are outside their partition, and every other row up to now, on earlier days too,
    has its event time on its partition's date: then a row is outside exactly if it arrived after
    the midnight of its event. One calm day is no sign if rows of other days arrive later.

    Args:
        days: the rows of every known arrival day.
        checked: the days of the run.
    """
    parts = [days[day] for day in checked if day in days]
    outside = sum(part.malformed.get(_OUTSIDE, 0) for part in parts)
    if not outside or not all(part.within_a_date for part in days.values()):
        return None
    rows = "1 row is" if outside == 1 else f"{outside:,} rows are"
    return (
        f"{rows} {_OUTSIDE}, and every other row has its event on its "
        "arrival_date: the column looks like the event's day; name in source.arrival_date one of "
        "the day that the row arrived on, or write null"
    )


@dataclass(frozen=True)
class _Limit:
    """A limit on the share of malformed rows, of one reason or (if `reason` is empty) of all.

    Attributes:
        malformed: the number of malformed rows.
        share: the largest allowed share.
        severity: the severity of a larger share.
    """

    reason: str
    malformed: int
    share: float
    severity: Severity

    def sentence(self, rows: int, reasons: Mapping[str, int]) -> str:
        """The share of malformed rows as text."""
        share = percent(self.malformed, rows)
        if self.reason:
            return f"{self.reason} {share} ({self.malformed:,} of {rows:,})"
        by_reason = _by_reason(reasons)
        return f"{share} of rows malformed ({self.malformed:,} of {rows:,}{by_reason})"


def _limits(
    limits: float | Mapping[str, float] | str, reasons: Mapping[str, int], rows: int
) -> Iterator[_Limit]:
    bad = sum(reasons.values())
    if isinstance(limits, float):
        yield _Limit("", bad, limits, "critical")
        return
    too_many = bad > _FAIL_ABOVE * rows
    severity: Severity = "critical" if too_many else "warning"
    yield _Limit("", bad, _FAIL_ABOVE if too_many else _WARN_ABOVE, severity)
    if limits != DEFAULT and not isinstance(limits, str):
        for reason, limit in limits.items():
            yield _Limit(reason, reasons.get(reason, 0), limit, "critical")


def _by_reason(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons as text; empty if there is none."""
    if not reasons:
        return ""
    most = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    shown = [f"{reason} {count:,}" for reason, count in most[:_REASONS_SHOWN]]
    if len(most) > _REASONS_SHOWN:
        shown.append(number_of(len(most) - _REASONS_SHOWN, "more reason"))
    return f": {', '.join(shown)}"


def _named(checked: Sequence[date], dateless: RowsOfDay) -> str:
    """The checked rows as text: ` of arrival day 2024-03-01 and of 1 row without one`."""
    without = f"{number_of(dateless.rows, 'row')} without"
    if not checked:
        return f" of {without} an arrival day" if dateless.rows else ""
    days = f" of arrival {'day' if len({*checked}) == 1 else 'days'} {days_named(checked)}"
    return f"{days} and of {without} one" if dateless.rows else days


def _since(days: Mapping[date, RowsOfDay], checked: Sequence[date], limit: _Limit) -> str:
    """The last days in a row above the limit; empty if it is only the last day.

    A day without rows is above no limit and below none, so it is not counted.
    """
    above: list[date] = []
    for day in sorted((d for d in days if checked and d <= max(checked)), reverse=True):
        part = days[day]
        bad = part.malformed.get(limit.reason, 0) if limit.reason else part.bad
        if part.rows and bad <= limit.share * part.rows:
            break
        if part.rows:
            above.append(day)
    first, *_, last = above[::-1] if len(above) > 1 else (None, None)
    return "" if last is None else f"; so on each day with rows from {first} to {last}"
