"""`volume`: whether an arrival day has a usual number of records for its weekday."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
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
"""The number of stretches of unusual days that a finding names."""


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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive unusual days that are all below, or all above, their usual range.

    Attributes:
        days: the days in ascending order, at least one.
    """

    days: Sequence[Unusual]

    @classmethod
    def of(cls, found: Iterable[Unusual]) -> list[Stretch]:
        """The stretches of some days in ascending order, the furthest from what is usual first."""

        def place(numbered: tuple[int, Unusual]) -> tuple[bool, int]:
            number, one = numbered
            return one.records > one.usual.most, one.day.toordinal() - number

        groups = groupby(enumerate(found), key=place)
        stretches = [cls([one for _, one in group]) for _, group in groups]
        return sorted(stretches, key=lambda one: -one.deviation)

    @property
    def deviation(self) -> float:
        """The number of records that are missing or too many, of all days together."""
        return sum(abs(one.records - one.usual.usual) for one in self.days)

    def __str__(self) -> str:
        """`2026-03-10 to 2026-03-19: 0 records a day, usually 70 to 72`; one day as `Unusual`."""
        first, last = self.days[0], self.days[-1]
        if first is last:
            return str(first)
        records = _span([one.records for one in self.days])
        noun = "record" if records == "1" else "records"
        usual = _span([one.usual.usual for one in self.days])
        return f"{first.day} to {last.day}: {records} {noun} a day, usually {usual}"


def _span(counts: Sequence[float]) -> str:
    """The least and the largest count: `9 to 12`; `9` if they are equal as text."""
    least, most = f"{min(counts):,.0f}", f"{max(counts):,.0f}"
    return least if least == most else f"{least} to {most}"


def unusual_in_words(found: Sequence[Unusual], most: int = _SHOWN) -> str:
    """The stretches of unusual days as text, the furthest from what is usual first.

    Args:
        found: the days in ascending order.
        most: the largest number of stretches to name; of the others the number of days.
    """
    stretches = Stretch.of(found)
    parts = [str(one) for one in stretches[:most]]
    if others := [one for stretch in stretches[most:] for one in stretch.days]:
        last = max(one.day for one in others)
        which = "the last " if len(others) > 1 else ""
        parts.append(f"and {number_of(len(others), 'more day')}, {which}{last}")
    return "; ".join(parts)


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
    sentence = unusual_in_words(found) or "as many records as usual"
    if checked and not any(UsualVolume.of(records, day) for day in checked):
        sentence = _NOT_KNOWN
    return Check("volume", severity, len(found), 0, sentence)
