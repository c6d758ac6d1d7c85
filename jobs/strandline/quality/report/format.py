"""Instants as text, for the report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from strandline.quality.figures import NOTHING


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
