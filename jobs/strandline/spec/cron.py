"""The five fields of cron, in UTC: when a schedule fires, and how long it pauses at most."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from strandline.model.intervals import DAY_MS, HOUR_MS, day_of, midnight_of

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_PART = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d+))?")
_FOUR_YEARS = 4 * 366
_FROM = date(2000, 1, 1)
"""The first of the four years that a schedule is looked at in: a leap year is among them."""


@dataclass(frozen=True)
class Cron:
    """A schedule, as sets of the values that each field allows.

    Attributes:
        times_ms: the times of a day at which it fires, in ms since midnight, in their order.
        days: of the month, from 1.
        months: from 1.
        weekdays: 0 is Sunday.
        either: whether a day of the month or of the week is enough: both are restricted.
    """

    times_ms: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @classmethod
    def of(cls, text: str) -> Cron | None:
        """The schedule of a text such as `0 6 * * *`; None: it says what only Airflow knows."""
        fields = _MACROS.get(text.lower(), text).lower().split()
        if len(fields) != 5:
            return None
        minutes, hours, days, months, weekdays = (
            _values(fields[0], 0, 59),
            _values(fields[1], 0, 23),
            _values(fields[2], 1, 31),
            _values(fields[3], 1, 12, dict(zip(_MONTHS, range(1, 13), strict=True))),
            _values(fields[4], 0, 7, dict(zip(_WEEKDAYS, range(7), strict=True))),
        )
        if not (minutes and hours and days and months and weekdays):
            return None
        times = sorted(hour * HOUR_MS + minute * 60_000 for hour in hours for minute in minutes)
        of_week = frozenset(weekday % 7 for weekday in weekdays)
        either = not any(field.startswith(("*", "?")) for field in (fields[2], fields[4]))
        return cls(tuple(times), frozenset(days), frozenset(months), of_week, either)

    def fires_on(self, day: date) -> bool:
        """Whether it fires on a day."""
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        suits = (of_month or of_week) if self.either else (of_month and of_week)
        return suits and day.month in self.months

    def after(self, instant_ms: int) -> int | None:
        """The first instant after another at which it fires; None: in four years it does not."""
        for day in _days_from(day_of(instant_ms)):
            if self.fires_on(day):
                later = (midnight_of(day) + time_ms for time_ms in self.times_ms)
                first = next((ms for ms in later if ms > instant_ms), None)
                if first is not None:
                    return first
        return None

    @property
    def longest_pause_ms(self) -> int | None:
        """The longest time between two instants at which it fires; None: it hardly ever does."""
        within = [b - a for a, b in zip(self.times_ms, self.times_ms[1:], strict=False)]
        days = [midnight_of(day) for day in _days_from(_FROM) if self.fires_on(day)]
        overnight_ms = self.times_ms[0] - self.times_ms[-1]
        across = [b - a + overnight_ms for a, b in itertools.pairwise(days)]
        return max([*within, *across]) if across else None


def interval_of(schedule: str | None) -> int:
    """The longest time in ms between two runs of a schedule; a day where none is known."""
    cron = None if schedule is None else Cron.of(schedule)
    return (None if cron is None else cron.longest_pause_ms) or DAY_MS


def _days_from(first: date) -> Iterator[date]:
    return (first + timedelta(number) for number in range(_FOUR_YEARS))


def _values(field: str, least: int, most: int, names: dict[str, int] | None = None) -> set[int]:
    """The values that a field allows; none, where it says what is not known here."""
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return set()
        first, last, step = match[1], match[2], int(match[3] or 1)
        start = least if first in {"*", "?"} else _number(first, names)
        ends_late = first in {"*", "?"} or (last is None and match[3] is not None)
        end = most if ends_late else start if last is None else _number(last, names)
        if start is None or end is None or step < 1 or not least <= start <= end <= most:
            return set()
        found |= set(range(start, end + 1, step))
    return found


def _number(text: str, names: dict[str, int] | None) -> int | None:
    return int(text) if text.isdigit() else (names or {}).get(text)
