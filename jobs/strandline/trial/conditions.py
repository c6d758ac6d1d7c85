"""Conditions of Spark SQL with three values: true, false, or null for unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strandline.trial.values import ThrownError, compared

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
