"""`volume`: whether an arrival day has a usual number of records for its weekday."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil, floor
from statistics import median

from strandline.quality.findings.check import BY_QUALITY, Check
from strandline.visible import number_of

_WEEKS = 8
_LEAST_WEEKS = 4
_NOT_KNOWN = (
    f"what is usual is not known yet: it takes {_LEAST_WEEKS} earlier days of the same weekday"
)
_SIGMAS = 3 * 1.4826
"""Three standard deviations, as a multiple of the median absolute deviation."""
_LEAST_SHARE = 0.3
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class UsualVolume:
    """The usual number of records of a day: the median of its weekday, and a range around it."""

    usual: float
    least: float
    most: float

    @classmethod
    def of(cls, records: Mapping[date, int], day: date) -> UsualVolume | None:
        """The usual volume by the same weekday of the eight weeks before.

        The range is the median ± max(3 · 1.4826 · MAD, 30 % of the median). It is None if fewer
        than four of these days are known.
        """
        known = min(_WEEKS, (day - date.min).days // 7)  # of the first year there are fewer
        weeks = (day - timedelta(weeks=number) for number in range(1, known + 1))
        before = [records[other] for other in weeks if other in records]
        if len(before) < _LEAST_WEEKS:
            return None
        usual = median(before)
        deviation = median(abs(count - usual) for count in before)
        reach = max(_SIGMAS * deviation, _LEAST_SHARE * usual)
        return cls(usual, max(usual - reach, 0), usual + reach)

    def __contains__(self, count: int) -> bool:
        return self.least <= count <= self.most


@dataclass(frozen=True, slots=True)
class Unusual:
    """A day whose number of records is outside the usual range of its weekday."""

    day: date
    records: int
    usual: UsualVolume

    def __str__(self) -> str:
        """The day as text: `2013-02-09: 145 records, usually 783 (549 to 1,017)`."""
        usual = self.usual
        within = f"{ceil(usual.least):,} to {floor(usual.most):,}"
        records = number_of(self.records, "record")
        return f"{self.day}: {records}, usually {usual.usual:,.0f} ({within})"


def first_compared(day: date) -> date:
    """The first day that the usual volume of a day may depend on, eight weeks before it."""
    weeks = timedelta(weeks=_WEEKS)
    return day - weeks if day - date.min > weeks else date.min


def comparing_days(days: Iterable[date]) -> set[date]:
    """The days whose usual volume depends on some days: their weekdays of the eight weeks after."""
    return {
        day + timedelta(weeks=number)
        for day in days
        for number in range(1, min(_WEEKS, (date.max - day).days // 7) + 1)
    }


def unusual_days(records: Mapping[date, int], checked: Sequence[date]) -> list[Unusual]:
    """The days whose number of records is outside the usual range of their weekday.

    A day without a known usual range is not checked (`UsualVolume.of`).

    Args:
        records: the number of records of every known arrival day.
        checked: the days to check; a day that is not known has no record.
    """
    found = []
    for day in checked:
        usual, count = UsualVolume.of(records, day), records.get(day, 0)
        if usual is not None and count not in usual:
            found.append(Unusual(day, count, usual))
    return found


def check_of_volume(
    asked: str, records: Mapping[date, int], checked: Sequence[date]
) -> Check | None:
    """The check that each checked day has a usual number of records; None if it is off.

    Args:
        asked: the value of `quality.volume`.
        records: see `unusual_days`.
        checked: see `unusual_days`.
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    found = unusual_days(records, checked)
    sentence = "; ".join(map(str, found[:_SHOWN])) or "as many records as usual"
    if checked and not any(UsualVolume.of(records, day) for day in checked):
        sentence = _NOT_KNOWN
    if len(found) > _SHOWN:
        more = number_of(len(found) - _SHOWN, "more day")
        sentence += f"; and {more}, the last {found[-1]}"
    return Check("volume", severity, len(found), 0, sentence)
