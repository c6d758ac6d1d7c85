"""Whole numbers of Spark SQL, which have 8 to 64 bits and fail where they need more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from strandline.trial.values import ThrownError

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
