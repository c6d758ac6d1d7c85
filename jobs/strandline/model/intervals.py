"""Ranges of instants, and the days that arrivals and events fall on. All UTC, all half-open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, islice, takewhile

from strandline.visible import number_of

HOUR_MS = 3_600_000
DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.date()

LEAST_INSTANT_MS = -62_135_596_800_000
"""0001-01-01T00:00:00Z: the first instant that Spark, Python and delta-rs all hold."""
END_OF_INSTANTS_MS = 253_402_300_800_000
"""10000-01-01T00:00:00Z: the first instant past the years that they all hold."""


_RANGES = 5
"""The largest number of ranges that are named; of the others only the number of days is given."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The instants from `start_ms` up to, not including, `end_ms`."""

    start_ms: int
    end_ms: int

    def __contains__(self, instant_ms: int) -> bool:
        """Whether an instant lies in the range; its end does not."""
        return self.start_ms <= instant_ms < self.end_ms

    def overlaps(self, other: TimeRange) -> bool:
        """Whether the two ranges share an instant."""
        return self.start_ms < other.end_ms and other.start_ms < self.end_ms

    def shared_with(self, other: TimeRange) -> TimeRange | None:
        """The instants that lie in both ranges; None: none does."""
        if not self.overlaps(other):
            return None
        return TimeRange(max(self.start_ms, other.start_ms), min(self.end_ms, other.end_ms))

    def parts_in(self, others: Iterable[TimeRange]) -> Iterator[TimeRange]:
        """The instants shared with each of some ranges, where there are any."""
        shared = map(self.shared_with, others)
        return (part for part in shared if part is not None)

    def outside(self, other: TimeRange) -> list[TimeRange]:
        """The parts of the range before and after another one; at most two."""
        before = TimeRange(self.start_ms, min(self.end_ms, other.start_ms))
        after = TimeRange(max(self.start_ms, other.end_ms), self.end_ms)
        return [part for part in (before, after) if part.start_ms < part.end_ms]

    def to_json(self) -> dict[str, str]:
        """The `start` and the `end` as people read them."""
        return {"start": text_of(self.start_ms), "end": text_of(self.end_ms)}

    @property
    def as_options(self) -> str:
        """The range as options of a command, `--start INSTANT --end INSTANT`."""
        return f"--start {text_of(self.start_ms)} --end {text_of(self.end_ms)}"


def parts_outside(ranges: Sequence[TimeRange], others: Iterable[TimeRange]) -> list[TimeRange]:
    """The parts of some ranges that lie in none of some others."""
    disjoint = merged(others)
    return [part for one in ranges for part in parts_between(one, disjoint)]


def parts_between(one: TimeRange, disjoint: Sequence[TimeRange]) -> Iterator[TimeRange]:
    """The parts of a range that lie in none of some other ranges, in order.

    Args:
        one: the range.
        disjoint: the other ranges, ascending, with a gap between neighbours: see `merged`.
    """
    first = bisect_right(disjoint, one.start_ms, key=lambda other: other.end_ms)
    start_ms = one.start_ms
    others = islice(disjoint, first, None)
    for other in takewhile(lambda other: other.start_ms < one.end_ms, others):
        if start_ms < other.start_ms:
            yield TimeRange(start_ms, other.start_ms)
        start_ms = other.end_ms
    if start_ms < one.end_ms:
        yield TimeRange(start_ms, one.end_ms)


def merged(ranges: Iterable[TimeRange], gap_ms: int = 0) -> list[TimeRange]:
    """Some ranges in ascending order; ranges that overlap, touch or are close are one range.

    Args:
        ranges: in any order.
        gap_ms: the longest gap, in ms, between two ranges that become one; 0: they touch.
    """
    found: list[TimeRange] = []
    for one in sorted(ranges, key=lambda one: one.start_ms):
        if found and one.start_ms <= found[-1].end_ms + gap_ms:
            found[-1] = TimeRange(found[-1].start_ms, max(found[-1].end_ms, one.end_ms))
        else:
            found.append(one)
    return found


EVERYTHING = TimeRange(LEAST_INSTANT_MS, END_OF_INSTANTS_MS)
"""Every instant that a run can name."""


def midnight_before(instant_ms: int) -> int:
    """The last UTC midnight not after an instant."""
    return instant_ms - instant_ms % DAY_MS


def day_of(instant_ms: int) -> date:
    """The UTC date of an instant."""
    return _EPOCH_DAY + timedelta(days=instant_ms // DAY_MS)


def last_day_before(end_ms: int) -> date:
    """The UTC date of the millisecond before an instant; at the least 0001-01-01."""
    return day_of(max(end_ms - 1, LEAST_INSTANT_MS))


def midnight_of(day: date) -> int:
    """The first instant of a UTC date, in ms."""
    return (day - _EPOCH_DAY).days * DAY_MS


def instant_of(timestamp: datetime) -> int:
    """The milliseconds from 1970 to an aware datetime, floored."""
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)


def datetime_of(instant_ms: int) -> datetime:
    """The aware UTC datetime of an instant inside the years 0001 to 9999."""
    return _EPOCH + timedelta(milliseconds=instant_ms)


def text_of(instant_ms: int) -> str:
    """An instant as people read it: ISO-8601, UTC, no fraction unless there is one.

    Watermarks can lie outside the years 0001 to 9999; these are given in milliseconds.
    """
    if not LEAST_INSTANT_MS <= instant_ms < END_OF_INSTANTS_MS:
        return f"{instant_ms} ms"
    fraction = "milliseconds" if instant_ms % 1000 else "seconds"
    return datetime_of(instant_ms).replace(tzinfo=None).isoformat(timespec=fraction) + "Z"


def start_text_of(within: TimeRange) -> str:
    """The start of a range of windows, for messages; `the first one`: the range has no start.

    An example of a message is `windows from the first one to 2024-03-02T00:00:00Z`.
    """
    return "the first one" if within.start_ms == LEAST_INSTANT_MS else text_of(within.start_ms)


def known_text_of(known_ms: int) -> str:
    """The midnight up to which results are known, for messages after `up to`.

    It is `no midnight` if no results are known.
    """
    return "no midnight" if known_ms == LEAST_INSTANT_MS else text_of(known_ms)


def text_or_none(instant_ms: int | None) -> str | None:
    """An instant as people read it (`text_of`); None stays None."""
    return None if instant_ms is None else text_of(instant_ms)


def consecutive(days: Iterable[date]) -> list[list[date]]:
    """Days, in any order, as lists of consecutive days in ascending order."""
    runs = groupby(enumerate(sorted({*days})), lambda of: of[1].toordinal() - of[0])
    return [[day for _, day in run] for _, run in runs]


def days_named(days: Iterable[date | str]) -> str:
    """Days as ranges: `2024-03-01 to 2024-03-04, 2024-03-07`; at most five, and how many more.

    `days`: in any order, as dates or ISO texts.
    """
    ranges = consecutive(date.fromisoformat(str(day)) for day in days)
    shown = ", ".join(f"{r[0]} to {r[-1]}" if len(r) > 1 else str(r[0]) for r in ranges[:_RANGES])
    left_out = sum(len(one) for one in ranges[_RANGES:])
    return f"{shown} and {number_of(left_out, 'more day')}" if left_out else shown
