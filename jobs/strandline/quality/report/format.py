"""How the report words instants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from strandline.quality.figures import NOTHING


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
