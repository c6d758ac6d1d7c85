"""Durations, shares and instants as text."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))
NOTHING = "–"


def exact_duration(duration_ms: int) -> str:
    """A duration in all its units, such as `1d 23h 50m`: the value of a setting."""
    left, parts = abs(duration_ms), []
    for unit_ms, unit in _UNITS:
        count, left = divmod(left, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return ("−" if duration_ms < 0 else "") + (" ".join(parts) or "0s")


def least_shown(duration_ms: int) -> int:
    """The next duration, in ms, of which `duration` drops nothing: 4h 20m of 4h 19m 1s."""
    units = (unit_ms for unit_ms, _ in _UNITS)
    finer_ms = next((finer for unit_ms, finer in pairwise(units) if duration_ms >= unit_ms), 1)
    return -(-duration_ms // finer_ms) * finer_ms


def duration(duration_ms: float) -> str:
    """A duration in its two largest units, such as `5h 21m`; what is smaller is dropped."""
    left = round(abs(duration_ms))
    parts: list[str] = []
    for unit_ms, unit in _UNITS:
        if left >= unit_ms and len(parts) < 2:
            parts.append(f"{left // unit_ms}{unit}")
            left %= unit_ms
        elif parts:
            break
    return ("−" if duration_ms < 0 else "") + (" ".join(parts) or "0s")


def percent(part: float, whole: float) -> str:
    """A share such as `0.26 %`, rounded to 0 or 100 only if exact; a dash if the whole is 0."""
    if not whole:
        return NOTHING
    share = 100 * part / whole
    if share in (0, 100):
        return f"{share:.0f} %"
    if 0 < share < 0.01:
        return "< 0.01 %"
    if 99.99 < share < 100:
        return "> 99.99 %"
    return f"{share:.2f} %" if share < 10 or share > 99 else f"{share:.1f} %"


_STILL_COMING = ("open", "fired")


def share_so_far(share: float | None, state: str) -> str:
    """The accepted share of a slot's records: `97.6 %`; `100 % so far` until the slot closes."""
    if share is None:
        return NOTHING
    return percent(share, 1) + (" so far" if state in _STILL_COMING else "")


def instant(value: Any) -> str:
    """An instant in UTC such as `2013-01-05 06:00`, with seconds if it has any; a dash for null."""
    if not isinstance(value, datetime) or value != value:  # noqa: PLR0124 - NaT differs from itself
        return NOTHING
    aware = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    # isoformat, since strftime leaves out the leading zeros of early years
    text = aware.isoformat(" ", "milliseconds").removesuffix("+00:00").removesuffix(".000")
    return text.removesuffix(":00")


def day_or_instant(value: Any) -> str:
    """A midnight as a date, every other instant with its time; a dash for null."""
    return instant(value).removesuffix(" 00:00")
