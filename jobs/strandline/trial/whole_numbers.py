"""Whole numbers of Spark SQL, which have 32 or 64 bits and fail where they need more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from strandline.trial.values import ThrownError

_SMALL = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
"""Operators that give an INT of two INTs."""
_PARTS = {"year", "month", "day", "hour", "minute", "second", "length"}
"""Functions that give an INT."""
_NAMES = {32: "integer", 64: "long"}


def bits_of(tree: exp.Expr) -> int:
    """The bits of a whole number: 32 if it is surely an INT, else 64.

    Columns of a test have no types: their whole numbers are BIGINT.
    """
    return 32 if _is_int(tree) else 64


def _is_int(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Literal):
        text = str(tree.this)
        return not tree.args.get("is_string") and text.isdecimal() and int(text) < 2**31
    if isinstance(tree, exp.Paren | exp.Neg):
        return _is_int(tree.this)
    if isinstance(tree, _SMALL):
        return _is_int(tree.this) and _is_int(tree.expression)
    if isinstance(tree, exp.Anonymous):
        return str(tree.this).lower() in _PARTS | {"int"}
    return isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.INT


def within(bits: int, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator whose whole numbers have some bits.

    Example:
        `within(32, plus(1))(2147483647, 1)` throws, as `2147483647 + 1` does
    """

    def checked(a: Any, b: Any) -> Any:
        result = apply(a, b)
        if isinstance(result, int) and not -(2 ** (bits - 1)) <= result < 2 ** (bits - 1):
            msg = f"{_NAMES[bits]} overflow"
            raise ThrownError(msg)
        return result

    return checked
