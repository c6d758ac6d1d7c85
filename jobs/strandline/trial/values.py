"""Casts, comparisons and arithmetic of Spark SQL on Python's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from strandline.spec.values import parse_instant

MS = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its times and dates as ISO-8601 texts, as JSON and YAML have them."""
    return {
        name: value.isoformat().replace("+00:00", "Z") if isinstance(value, date) else value
        for name, value in row.items()
    }


class ThrownError(Exception):
    """An expression throws an error on a row, as it does in Spark."""


def compared(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The comparison of two values; a text is cast to the type of the other value."""

    def apply(a: Any, b: Any) -> bool:
        a, b = _of_one_type(a, b)
        return test(a, b)

    return apply


def _of_one_type(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values as Spark compares them: a text is cast to a time or a number."""
    if isinstance(a, str) != isinstance(b, str):
        text, other = (a, b) if isinstance(a, str) else (b, a)
        read = cast_to(text, kind_of(other), is_try=False)
        return (read, other) if isinstance(a, str) else (other, read)
    if isinstance(a, datetime) != isinstance(b, datetime):
        return as_time(a), as_time(b)
    return a, b


_KINDS = {
    **{bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"},
    **{datetime: "TIMESTAMP", date: "DATE", timedelta: "INTERVAL"},
}


def kind_of(value: Any) -> str:
    """The SQL type of a value."""
    return _KINDS[type(value)]


def as_time(value: Any) -> datetime:
    """A value as an instant: of a date its midnight, of a text the time in it."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return to_time(value)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def plus(sign: int) -> Callable[[Any, Any], Any]:
    """The sum of two numbers, or of a time and an interval; with -1 the difference."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(b, timedelta):
            return as_time(a) + sign * b
        if isinstance(a, timedelta):
            return as_time(b) + a
        _require_numbers(a, b)
        return a + sign * b

    return apply


def _require_numbers(*values: Any) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            msg = f"{value!r} is not a number"
            raise ThrownError(msg)


def times(a: Any, b: Any) -> Any:
    """The product of two numbers."""
    _require_numbers(a, b)
    return a * b


def divided(a: Any, b: Any) -> float:
    """The quotient as a double.

    Raises:
        ThrownError: the divisor is zero.
    """
    _require_numbers(a, b)
    if b == 0:
        msg = "division by zero"
        raise ThrownError(msg)
    return float(a / b)


def whole_division(a: Any, b: Any) -> int:
    """Spark's `div`: the quotient without its fractional part."""
    divided(a, b)
    if isinstance(a, float) or isinstance(b, float):
        quotient: int = math.trunc(a / b)
        return quotient
    whole: int = abs(a) // abs(b)
    return whole if (a >= 0) == (b >= 0) else -whole


def remainder(a: Any, b: Any) -> Any:
    """The remainder, with the sign of the dividend."""
    divided(a, b)
    return (
        math.fmod(a, b)
        if isinstance(a, float) or isinstance(b, float)
        else a - b * (whole_division(a, b))
    )


def cast_to(value: Any, kind: str, *, is_try: bool) -> Any:
    """A value cast to another type; None if it cannot be cast and `is_try` is set.

    Raises:
        ThrownError: it cannot be cast.
    """
    try:
        return CASTS[kind](value)
    except (ValueError, OverflowError, TypeError, KeyError):
        if is_try:
            return None
        msg = f"{value!r} cannot be cast to {kind}"
        raise ThrownError(msg) from None


def to_time(value: Any) -> datetime:
    """A value as a timestamp; a text without a zone is in UTC.

    Raises:
        ValueError: it is not a timestamp.
    """
    if isinstance(value, str):
        return EPOCH + parse_instant(value.strip().replace(" ", "T", 1)) * MS
    if isinstance(value, bool) or not isinstance(value, int | float | date):
        raise ValueError(value)
    return EPOCH + timedelta(seconds=value) if isinstance(value, int | float) else as_time(value)


def _to_date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else to_time(str(value)).date()


def _to_whole(bits: int) -> Callable[[Any], int]:
    def cast(value: Any) -> int:
        if isinstance(value, datetime):
            value = (value - EPOCH) // timedelta(seconds=1)
        whole = int(value.strip()) if isinstance(value, str) else math.trunc(value)
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise OverflowError
        return int(whole)

    return cast


def to_text(value: Any) -> str:
    """A value as text, in Spark's format."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.rstrip("0").removesuffix(".") if "." in text else text
    return str(value)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        named = {"true": True, "t": True, "yes": True, "y": True, "1": True}
        return (named | {"false": False, "f": False, "no": False, "n": False, "0": False})[
            value.strip().lower()
        ]
    return bool(value)


CASTS: dict[str, Callable[[Any], Any]] = {
    "STRING": to_text,
    "TINYINT": _to_whole(8),
    "SMALLINT": _to_whole(16),
    "INT": _to_whole(32),
    "BIGINT": _to_whole(64),
    "FLOAT": float,
    "DOUBLE": float,
    "BOOLEAN": _to_boolean,
    "TIMESTAMP": to_time,
    "DATE": _to_date,
}
