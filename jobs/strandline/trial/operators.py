"""The operators and functions of Spark SQL that tests of pipelines support.

A condition has three values: true, false, or null for unknown. Whole numbers have 8 to 64 bits, and
an operator fails where it needs more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlglot import exp

from strandline.trial.values import EPOCH, MS, ThrownError, as_time, cast_to, compared, to_text

Row = Mapping[str, Any]
Evaluate = Callable[[Row], Any]
"""Computes an expression on a row."""
_EQUAL = compared(lambda a, b: bool(a == b))


def both(left: Evaluate, right: Evaluate) -> Evaluate:
    """`left AND right`."""
    return _decided_by(False, left, right)


def either(left: Evaluate, right: Evaluate) -> Evaluate:
    """`left OR right`."""
    return _decided_by(True, left, right)


def _decided_by(decisive: bool, left: Evaluate, right: Evaluate) -> Evaluate:
    """The decisive value if an operand has it, even beside null; else null or the other value."""

    def value(row: Row) -> bool | None:
        a: bool | None = left(row)
        if a is decisive:
            return decisive
        b: bool | None = right(row)
        if b is decisive:
            return decisive
        return None if a is None or b is None else not decisive

    return value


def negated(of: Evaluate) -> Evaluate:
    """`NOT of`."""

    def value(row: Row) -> bool | None:
        found = of(row)
        return None if found is None else not found

    return value


def same(left: Evaluate, right: Evaluate) -> Evaluate:
    """`left <=> right`: null equals null."""

    def value(row: Row) -> bool:
        a, b = left(row), right(row)
        return a is b if a is None or b is None else _EQUAL(a, b)

    return value


def among(of: Evaluate, others: Sequence[Evaluate]) -> Evaluate:
    """`of IN (others)`."""

    def value(row: Row) -> bool | None:
        found = of(row)
        if found is None:
            return None
        values = [other(row) for other in others]
        if any(one is not None and _EQUAL(found, one) for one in values):
            return True
        return None if None in values else False

    return value


def like(text: Any, pattern: Any) -> bool:
    r"""`text LIKE pattern`: `%` matches any characters, `_` one; `\` escapes them and itself.

    Raises:
        ThrownError: another character, or none, follows a `\`.
    """
    parts = re.findall(r"\\.?|%|_|[^\\%_]+", str(pattern), re.DOTALL)
    wildcards = {"%": ".*", "_": "."}
    if any(part.startswith("\\") and part not in {"\\%", "\\_", "\\\\"} for part in parts):
        msg = f"LIKE {pattern!r}: only %, _ or a backslash may follow a backslash"
        raise ThrownError(msg)
    literals = (re.escape(part.removeprefix("\\") or "\\") for part in parts)
    pairs = zip(parts, literals, strict=True)
    regex = "".join(wildcards.get(part, literal) for part, literal in pairs)
    return re.fullmatch(regex, str(text), re.DOTALL) is not None


def chosen(branches: Sequence[tuple[Evaluate, Evaluate]], otherwise: Evaluate | None) -> Evaluate:
    """The value of the first branch whose test is true; else the default, or null."""

    def value(row: Row) -> Any:
        for test, then in branches:
            if test(row) is True:
                return then(row)
        return None if otherwise is None else otherwise(row)

    return value


_OPERATORS = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
"""Operators that give the wider type of two whole numbers."""
_PARTS = {"year", "month", "day", "hour", "minute", "second", "length"}
"""Functions that give an INT."""
_CASTS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NAMES = {8: "tinyint", 16: "smallint", 32: "integer", 64: "long"}


def bits_of(tree: exp.Expr) -> int | None:
    """The bits of a whole number by its expression; None: it is a DECIMAL, and has any number.

    Columns of a test have no types: their whole numbers are BIGINT.

    Example:
        32 for `1 + 2`, 64 for `x + 1`, None for `x + 9223372036854775808`
    """
    if isinstance(tree, exp.Literal):
        return _bits_of_literal(tree)
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        return _bits_of_literal(tree.this, sign=-1)
    if isinstance(tree, exp.Paren | exp.Neg):
        return bits_of(tree.this)
    if isinstance(tree, _OPERATORS):
        both = bits_of(tree.this), bits_of(tree.expression)
        return None if None in both else max(filter(None, both))
    if isinstance(tree, exp.Anonymous):
        name = str(tree.this).lower()
        return 32 if name in _PARTS else _CASTS.get(name, 64)
    kind = tree.to.sql(dialect="spark") if isinstance(tree, exp.Cast) else ""
    return _CASTS.get(kind.lower(), 64)


def _bits_of_literal(tree: exp.Literal, sign: int = 1) -> int | None:
    text = str(tree.this)
    if tree.args.get("is_string") or not text.isdecimal():
        return 64
    return next((bits for bits in (32, 64) if _fits(sign * int(text), bits)), None)


def _fits(number: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def within(bits: int | None, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator whose whole numbers have some bits; None: any number of bits.

    Example:
        `within(32, plus(1))(2147483647, 1)` throws, as `2147483647 + 1` does
    """
    if bits is None:
        return apply

    def checked(a: Any, b: Any) -> Any:
        result = apply(a, b)
        if isinstance(result, int) and not _fits(result, bits):
            msg = f"{_NAMES[bits]} overflow"
            raise ThrownError(msg)
        return result

    return checked


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
