"""Small values of a spec: durations, instants, names, expressions, and maps by their kind."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic_core import PydanticCustomError

from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, instant_of
from strandline.spec import described

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(-?\d+)(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]{1,18})\s*((?i:[kmgt]?b)?)")
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LONG = 2**63
_LONG_DIGITS = len(str(_LONG))
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,119}")
_PIPELINE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


class SpecModel(BaseModel):
    """A frozen part of a spec that refuses unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        json_schema_extra=described.with_descriptions,
    )


def refuse_at(path: str, value: Any, problem: str) -> NoReturn:
    """Refuse a value that is nested in the part whose validator refuses it.

    Args:
        path: the value's path below the part.
        value: the offending value; None: there is none.
        problem: the problem and, after a semicolon, the way out.
    """
    error = "located"
    raise PydanticCustomError(
        error, "{problem}", {"path": path, "value": value, "problem": problem}
    )


def parse_duration(value: Any) -> int:
    """The milliseconds of a duration such as `200ms`, `30s`, `5m`, `1h`, `-1d`.

    Raises:
        ValueError: it is not a whole number with a unit, or does not fit into 64 bits.
    """
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        msg = "not a duration; write a whole number and a unit: 200ms, 30s, 5m, 1h, 1d"
        raise ValueError(msg)
    # Python itself refuses to read thousands of digits, and none of so many fit
    fits = len(match[1].lstrip("-0")) <= _LONG_DIGITS
    duration_ms = int(match[1]) * _UNITS_MS[match[2]] if fits else _LONG
    if not -_LONG < duration_ms < _LONG:
        msg = f"longer than 64 bits of milliseconds; the longest is {_LONG - 1}ms"
        raise ValueError(msg)
    return duration_ms


def written(duration_ms: int) -> str:
    """A duration as in a pipeline file, in its largest whole unit: `90m`, `3h`, `-1d`, `0s`."""
    for unit, unit_ms in reversed(_UNITS_MS.items()):
        if duration_ms and duration_ms % unit_ms == 0:
            return f"{duration_ms // unit_ms}{unit}"
    return "0s"


def parse_bytes(value: Any) -> int:
    """The bytes of a size such as `500MB`, `20GB`, `1TB` (powers of ten), or a whole number.

    Raises:
        ValueError: it is neither, or not positive.
    """
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _BYTES[match[2].upper()] if match else 0
    if size <= 0:
        msg = "not a size; write a whole number of bytes, or with a unit: 500MB, 20GB, 1TB"
        raise ValueError(msg)
    return size


def parse_instant(value: Any) -> int:
    """The milliseconds since 1970 of an ISO-8601 instant, rounded down.

    A date is its midnight; an instant without a zone is in UTC.

    Raises:
        ValueError: it is not an instant of the years 0001 to 9999.
    """
    parsed = _parsed(value)
    if parsed is None:
        msg = "not an instant; write ISO-8601 such as 2013-01-15 or 2013-01-15T06:00:00Z"
        raise ValueError(msg)
    instant_ms = instant_of(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    if not LEAST_INSTANT_MS <= instant_ms < END_OF_INSTANTS_MS:
        msg = "outside the years 0001 to 9999 in UTC; give an instant inside them"
        raise ValueError(msg)
    return instant_ms


def _parsed(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


def _lateness(value: Any) -> int:
    duration_ms = parse_duration(value)
    if duration_ms < 0:
        msg = "a negative duration; give zero or more"
        raise ValueError(msg)
    return duration_ms


def parse_length(value: Any) -> int:
    """The milliseconds of a positive duration.

    Raises:
        ValueError: it is not a duration, or not positive.
    """
    duration_ms = parse_duration(value)
    if duration_ms <= 0:
        msg = "not a length; give a positive duration"
        raise ValueError(msg)
    return duration_ms


def records_from(least: int) -> Callable[[Any], int]:
    """A parser of a number of records with a minimum."""

    def number_of(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < _LONG:
            return value
        msg = f"not a number of records; give a whole number of at least {least}"
        raise ValueError(f"{msg}, and less than 2^63")

    return number_of


def _distance(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        msg = "not a distance; give a number of zero or more"
        raise ValueError(msg)
    return float(value)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        msg = "not a plain text (YAML reads yes, no, on, off and bare dates its own way); quote it"
        raise ValueError(msg)
    return str(value)


def _not_blank(value: Any) -> str:
    text = _text(value)
    if not text.strip():
        msg = "empty; name a column or give an expression"
        raise ValueError(msg)
    return text


def text_like(pattern: re.Pattern[str], problem: str) -> Callable[[Any], str]:
    """A parser of texts that match a pattern as a whole; else the value is `problem`."""

    def checked(value: Any) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise ValueError(problem)

    return checked


_name = text_like(
    NAME, "not a legal name of a column; use letters from a to z, digits and _, no digit first"
)
_pipeline_name = text_like(
    _PIPELINE_NAME,
    "not a legal name of a pipeline; use letters from a to z, digits, _ and -, a letter first",
)
Duration = Annotated[int, BeforeValidator(parse_duration), WithJsonSchema(described.DURATION)]
"""Any whole number of milliseconds in 64 bits, negative ones included."""
Lateness = Annotated[int, BeforeValidator(_lateness), WithJsonSchema(described.LATENESS)]
"""Zero or more milliseconds."""
Length = Annotated[int, BeforeValidator(parse_length), WithJsonSchema(described.LATENESS)]
"""More than zero milliseconds."""
Count = Annotated[int, BeforeValidator(records_from(1)), WithJsonSchema(described.at_least(1))]
"""A number of records, at least one."""
Distance = Annotated[
    float, BeforeValidator(_distance), WithJsonSchema({"type": "number", "minimum": 0})
]
"""How far a value may be from another: zero or more."""
Instant = Annotated[int, BeforeValidator(parse_instant), WithJsonSchema(described.INSTANT)]
"""Milliseconds since 1970 in UTC."""
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema(described.TEXT)]
"""A text; whole numbers count as text, so that Kafka partitions need no quotes."""
Expression = Annotated[str, BeforeValidator(_not_blank), WithJsonSchema(described.EXPRESSION)]
"""The name of a column or a Spark SQL expression."""
Name = Annotated[str, BeforeValidator(_name), WithJsonSchema(described.text(NAME.pattern))]
"""A name for a result column."""
PipelineName = Annotated[
    str, BeforeValidator(_pipeline_name), WithJsonSchema(described.text(_PIPELINE_NAME.pattern))
]
"""A name for a pipeline: it names a folder of the lake and a DAG, too."""


class Empty(SpecModel):
    """`{}`: a kind without keys of its own."""


def kind_among(kinds: Sequence[str]) -> Callable[[Any], str | None]:
    """The kind of a raw or parsed value among some kinds; None if it is none of them."""

    def kind(value: Any) -> str | None:
        keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
        # a kind that is a word of Python's own is a field with an underscore
        return next((name for name in kinds if name in keys or f"{name}_" in keys), None)

    return kind


def checked_kind(what: str, kinds: Sequence[str]) -> Callable[[Any], Any]:
    """A validator that a value has one of some kinds.

    Raises:
        ValueError: it has another kind; the message names the allowed kinds.
    """
    kind = kind_among(kinds)

    def checked(value: Any) -> Any:
        if kind(value) is None:
            msg = f"not a kind of {what}; the first key is one of {', '.join(kinds)}"
            raise ValueError(msg)
        return value

    return checked
