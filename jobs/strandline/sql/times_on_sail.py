"""Operations on times with another result on Sail than on Spark; see `types_on_sail`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline.sql.column_types import WHOLE, Problem
from strandline.sql.operations import Operation

OF_TIMES_OF_DAY = ("has a type TIME, which Spark has not", "use the TIMESTAMP itself")
OF_ANOTHER_TYPE = {
    "bitmap_bit_position": "BIGINT",
    "bitmap_bucket_number": "BIGINT",
    "date_diff": "INT",
    "datediff": "INT",
    "regexp_count": "INT",
}
"""Functions with another type of whole number than on Spark."""
_OF_DAYS = re.compile(r"\(*INTERVAL\b(?!.*(?:HOUR|MINUTE|SECOND)).*", re.IGNORECASE | re.DOTALL)
_UNITS = {
    *("year", "y", "years", "yr", "yrs", "quarter", "qtr", "month", "mon", "mons", "months"),
    *("week", "w", "weeks", "day", "d", "days", "doy", "hour", "h", "hours", "hr", "hrs"),
    *("minute", "m", "min", "mins", "minutes", "second", "s", "sec", "seconds", "secs"),
}
_UNITS_OF_TRUNC = {"year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"}
_UNITS_OF_DAYS = {"day": 1, "week": 7}


def units(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Units of EXTRACT and `date_part`."""
    unit = operation.operands[0].text or ""
    if unit.strip("'\"").lower() in {"dow", "dayofweek", "dow_iso", "dayofweek_iso"}:
        return "begins the week elsewhere", "dayofweek(t)"
    if unit.strip("'\"").lower() == "yearofweek":
        return "has no such unit", "year(date_add(d, 3 - (dayofweek(d) + 5) % 7))"
    if any((kind or "").startswith("interval") for kind in types):
        return "counts the whole interval", "CAST(x AS BIGINT)"
    if unit.strip("'\"").lower() not in _UNITS:
        return "takes units that Spark refuses", "EXTRACT(YEAR FROM t)"
    return None


def of_intervals(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Arithmetic of intervals: hours added to a date give a TIMESTAMP on Spark."""
    spans = [(kind or "").startswith("interval") for kind in types]
    if operation.name == "/" and any(spans):
        return "cuts off the microseconds", "(unix_micros(b) - unix_micros(a)) / 2"
    texts = [one.text or "" for one, span in zip(operation.operands, spans, strict=True) if span]
    if "date" in types and not all(map(_OF_DAYS.fullmatch, texts)):
        return "gives a DATE", "CAST(d AS TIMESTAMP) + INTERVAL 1 HOUR"
    return None


def truncated(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`date_trunc` to milliseconds, and of what is no TIMESTAMP; a DATE may be written as one."""
    is_written = types[1:] == ["date"] and operation.type_is_given
    if types[1:] and types[1] in {"string", "date", "timestamp_ntz"} and not is_written:
        return "gives TIMESTAMP_NTZ", "date_trunc('month', CAST(x AS TIMESTAMP))"
    if (operation.operands[0].literal or "").lower()[1:-1] == "millisecond":
        return "rounds up before 1970", "timestamp_millis(unix_millis(t))"
    return None


def formatted(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`date_format` with a computed pattern, or with the names of zones."""
    pattern = operation.operands[1].literal if len(types) == 2 else None
    if pattern is None or "zzzz" in pattern:
        return "writes the names of zones otherwise", "date_format(t, 'yyyy-MM-dd HH:mm:ss')"
    return None


def in_zone(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`from_utc_timestamp` with a zone of three letters, which has no history in Java."""
    zone = operation.operands[1].literal if len(types) == 2 else None
    if zone is not None and zone[1:-1].upper() in {"EST", "HST", "MST"}:
        return "reads this zone otherwise before 1911", "'America/New_York', or '-05:00'"
    return None


def truncated_days(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`trunc`, which gives null for units of less than a week."""
    unit = operation.operands[1].literal if len(types) == 2 else None
    if unit is not None and unit.lower()[1:-1] in _UNITS_OF_TRUNC:
        return None
    return "takes other units", "trunc(d, 'MONTH'), or date_trunc"


def of_seconds(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`timestamp_seconds` of fractions."""
    if types and types[0] not in WHOLE:
        return "leaves out the fraction", "timestamp_millis(CAST(x * 1000 AS BIGINT))"
    return None


def of_another_type(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Whole numbers of another type."""
    if len(types) == 3:
        return whole_units_between(operation, types)
    if operation.type_is_given:
        return None
    kind = OF_ANOTHER_TYPE[operation.name]
    return "gives another type", f"CAST({operation.name}(…) AS {kind})"


def whole_units_between(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Whole days and months from one time to another; hours and less are as on Spark."""
    unit = (operation.operands[0].text or "").lower()
    if unit in {"month", "quarter", "year"}:
        return "counts another month backwards", "CAST(months_between(b, a) AS BIGINT)"
    if (days := _UNITS_OF_DAYS.get(unit)) and {*types[1:]} != {"date"}:
        return "counts midnights", f"timestampdiff(HOUR, a, b) DIV {24 * days}"
    return None
