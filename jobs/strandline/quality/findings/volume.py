"""`volume`: whether an arrival day has as many records as its weekday usually has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median

from strandline.quality.findings.check import BY_QUALITY, Check

_WEEKS = 8
_LEAST_WEEKS = 4
_SIGMAS = 3 * 1.4826
"""Three standard deviations, as a multiple of the median absolute deviation."""
_LEAST_SHARE = 0.3
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Unusual:
    """A day whose records are out of the usual range of its weekday."""

    day: date
    records: int
    usual: float
    least: float
    most: float

    def __str__(self) -> str:
        """In a line: `2013-02-09: 145 records, usually 812 (568 to 1,055)`."""
        within = f"{max(self.least, 0):,.0f} to {self.most:,.0f}"
        return f"{self.day}: {self.records:,} records, usually {self.usual:,.0f} ({within})"


def unusual_days(records: Mapping[date, int], judged: Sequence[date]) -> list[Unusual]:
    """The days whose records are out of the usual range of their weekday.

    Which is the median of the same weekday of the eight weeks before, ± max(3 · 1.4826 · MAD, 30 %
    of it). A day with fewer than four such days that are known is not judged.

    Args:
        records: of every arrival day that is known.
        judged: the days that are judged; one that is not known has no record.
    """
    found = []
    for day in judged:
        weeks = (day - timedelta(weeks=number) for number in range(1, _WEEKS + 1))
        before = [records[other] for other in weeks if other in records]
        if len(before) < _LEAST_WEEKS:
            continue
        usual = median(before)
        deviation = median(abs(count - usual) for count in before)
        reach = max(_SIGMAS * deviation, _LEAST_SHARE * usual)
        if not usual - reach <= records.get(day, 0) <= usual + reach:
            unusual = Unusual(day, records.get(day, 0), usual, usual - reach, usual + reach)
            found.append(unusual)
    return found


def check_of_volume(
    asked: str, records: Mapping[date, int], judged: Sequence[date]
) -> Check | None:
    """Whether each judged day has as many records as usual; None: nobody asks.

    Args:
        asked: `quality.volume`.
        records: see `unusual_days`.
        judged: see `unusual_days`.
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    found = unusual_days(records, judged)
    sentence = "; ".join(map(str, found[:_SHOWN])) or "as many records as usual"
    if len(found) > _SHOWN:
        sentence += f"; and {len(found) - _SHOWN:,} more days, the last {found[-1]}"
    return Check("volume", severity, len(found), 0, sentence)
