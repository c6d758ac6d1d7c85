"""How the report words instants, durations and shares, and how text gets into a plot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from strandline.visible import visible

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;"}
NOTHING = "–"


def plain(text: Any) -> str:
    """A text for a plot, shown as it is: plotly reads a subset of HTML and `%{...}` in texts."""
    return "".join(_MARKUP.get(character, character) for character in visible(str(text)))


def moment(value: Any) -> str:
    """An instant such as `2013-01-05 06:00`, in UTC, finer only where it is; a dash for null."""
    if not isinstance(value, datetime) or value != value:  # noqa: PLR0124 - NaT differs from itself
        return NOTHING
    aware = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    # isoformat, since strftime leaves out the leading zeros of early years
    text = aware.isoformat(" ", "milliseconds").removesuffix("+00:00").removesuffix(".000")
    return text.removesuffix(":00")


def day_or_moment(value: Any) -> str:
    """An instant as a date where it is midnight; a dash for null."""
    return moment(value).removesuffix(" 00:00")


def duration(duration_ms: float) -> str:
    """A duration in its two largest units, such as `5h 21m`."""
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
    """A share such as `0.26 %`, never rounded to 0 or 100 unless it is; a dash of nothing."""
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
