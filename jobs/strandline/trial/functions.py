"""The functions of Spark SQL that tests of pipelines support, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from strandline.trial.values import EPOCH, MS, as_time, cast_to, to_text


def substring(value: Any, start: int, length: int | None = None) -> str:
    """The part of a text from a position; the first is 1, negative ones count from the end."""
    text = to_text(value)
    begin = start - 1 if start > 0 else max(len(text) + start, 0) if start else 0
    return text[begin:] if length is None else text[begin : begin + max(length, 0)]


_LEAST = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
"""The least value of each part of a time, the largest part first."""
_UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def _truncated(unit: str, value: Any) -> datetime:
    at, unit = as_time(value), unit.lower()
    if unit == "millisecond":
        return at.replace(microsecond=at.microsecond // 1_000 * 1_000)
    parts = [*_LEAST]
    smaller = parts[parts.index(_UNITS.get(unit, unit)) + 1 :]
    least: dict[str, Any] = {name: _LEAST[name] for name in smaller}
    return at.replace(**least)


def _part(name: str) -> Callable[[Any], int]:
    return lambda at: int(getattr(as_time(at), name))


def _since(unit: timedelta) -> Callable[[Any], int]:
    return lambda at: (as_time(at) - EPOCH) // unit


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "abs": (abs, (1,)),
    "ceil": (math.ceil, (1,)),
    "floor": (math.floor, (1,)),
    "lower": (lambda text: to_text(text).lower(), (1,)),
    "upper": (lambda text: to_text(text).upper(), (1,)),
    "length": (lambda text: len(to_text(text)), (1,)),
    "trim": (lambda text: to_text(text).strip(" "), (1,)),
    "concat": (lambda *texts: "".join(map(to_text, texts)), (1, 2, 3, 4, 5, 6)),
    "year": (_part("year"), (1,)),
    "month": (_part("month"), (1,)),
    "day": (_part("day"), (1,)),
    "hour": (_part("hour"), (1,)),
    "minute": (_part("minute"), (1,)),
    "second": (_part("second"), (1,)),
    "date_trunc": (_truncated, (2,)),
    "timestamp_seconds": (lambda n: EPOCH + timedelta(seconds=n), (1,)),
    "timestamp_millis": (lambda n: EPOCH + timedelta(milliseconds=n), (1,)),
    "timestamp_micros": (lambda n: EPOCH + timedelta(microseconds=n), (1,)),
    "unix_seconds": (_since(timedelta(seconds=1)), (1,)),
    "unix_millis": (_since(MS), (1,)),
    "unix_micros": (_since(timedelta(microseconds=1)), (1,)),
    "to_timestamp": (lambda value: cast_to(value, "TIMESTAMP", is_try=False), (1,)),
    "try_to_timestamp": (lambda value: cast_to(value, "TIMESTAMP", is_try=True), (1,)),
    "to_date": (lambda value: cast_to(value, "DATE", is_try=False), (1,)),
}
"""Functions that are null if an argument is null, with their numbers of arguments."""
OF_NULLS: dict[str, Callable[..., Any]] = {
    "coalesce": lambda *values: next((v for v in values if v is not None), None),
    "ifnull": lambda a, b: b if a is None else a,
    "nvl": lambda a, b: b if a is None else a,
    "nullif": lambda a, b: None if a == b else a,
    "isnull": lambda a: a is None,
    "isnotnull": lambda a: a is not None,
    "greatest": lambda *values: max((v for v in values if v is not None), default=None),
    "least": lambda *values: min((v for v in values if v is not None), default=None),
}
CALLED_LIKE_TYPES = {"bigint", "int", "double", "string", "boolean", "timestamp", "date"}
