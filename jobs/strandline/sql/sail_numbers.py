"""Operations on numbers as SQL with which Sail gives Spark's results.

Each function takes an operation with the types of its operands and returns the SQL to compute it
by; None if Sail computes it as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline.sql.column_types import FLOATS, WHOLE
from strandline.sql.operations import Operation

_DIGITS = re.compile(r"[0-9]{1,2}")
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")
_MOST_DIGITS = 15
"""The digits behind the point up to which a DOUBLE is rounded exactly."""
_EXACT = "4000000000000000D"
"""Less than 2^52, below which a DOUBLE and a half is exact."""


def checked(operation: Operation, types: Sequence[str | None]) -> str | None:
    """`+`, `-`, `*` of whole numbers in a wider type, whose cast fails where they overflow."""
    if len(types) != 2 or not {*types} <= {*WHOLE}:
        return None
    widest = max(map(str, types), key=[*WHOLE].index)
    wide = "DECIMAL(20, 0)" if widest == "bigint" else "BIGINT"
    one, other = (f"CAST({part.text} AS {wide})" for part in operation.operands)
    return f"CAST({one} {operation.name} {other} AS {widest})"


def summed(operation: Operation, types: Sequence[str | None]) -> str | None:
    """A sum of BIGINT in a wider type, whose cast fails where it overflows."""
    if types != ["bigint"]:
        return None
    distinct = "DISTINCT " if operation.is_distinct else ""
    wide = f"{distinct}CAST({operation.operands[0].text} AS DECIMAL(38, 0))"
    return f"CAST(sum({wide}){operation.filtered} AS BIGINT)"


def extreme(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The least or the largest number.

    NaN is larger than all others. Sail finds it among them, or not, and no infinite number if all
    are infinite.
    """
    if len(types) != 1 or types[0] not in FLOATS:
        return None
    name, kind, filtered = operation.name, types[0], operation.filtered
    text = operation.operands[0].text
    is_none, other = f"isnan({text})", f"CASE WHEN NOT isnan({text}) THEN {text} END"
    infinite = f"CAST('{'-' if name == 'max' else ''}Infinity' AS {kind})"
    none_if, all_infinite = "bool_or", f"{text} = {infinite}"
    if name == "min":
        none_if, all_infinite = "bool_and", f"{is_none} OR {all_infinite}"
    return (
        f"CASE WHEN {none_if}({is_none}){filtered} THEN CAST('NaN' AS {kind}) "
        f"WHEN bool_and({all_infinite}){filtered} THEN {infinite} "
        f"ELSE {name}({other}){filtered} END"
    )


def share(operation: Operation, types: Sequence[str | None]) -> str | None:
    """A percentile of numbers that fails at a NaN, whose place among them Sail does not know."""
    if not types or types[0] not in FLOATS or operation.is_distinct:
        return None
    first, *others = (part.text for part in operation.operands)
    fails = f"raise_error('Sail has no {operation.name}() of NaN: give --engine spark')"
    numbers = f"CASE WHEN isnan({first}) THEN {fails} ELSE {first} END"
    return f"{operation.name}({', '.join([numbers, *others])}){operation.filtered}"


def rounded(operation: Operation, types: Sequence[str | None]) -> str | None:
    """A number rounded to some digits behind the point, where 1.005 is half of two hundredths."""
    if len(types) != 2 or types[0] not in FLOATS:
        return None
    digits = operation.operands[1].literal or ""
    if not _DIGITS.fullmatch(digits) or not 0 < int(digits) <= _MOST_DIGITS:
        return None
    given = operation.operands[0].text
    text = f"CAST({given} AS DOUBLE)"
    exact = f"CAST({_exactly(text, int(digits))} AS {types[0]})"
    is_exact = _is_exact(text, int(digits))
    return f"CASE WHEN {is_exact} THEN {exact} ELSE round({given}, {digits}) END"


def to_decimal(operation: Operation, types: Sequence[str | None]) -> str | None:
    """A floating-point number as a DECIMAL, rounded in the same way."""
    found = _DECIMAL.fullmatch(operation.to or "")
    if found is None or len(types) != 1 or types[0] not in FLOATS:
        return None
    name, to, digits = operation.name, operation.to, int(found[2])
    text = f"CAST({operation.operands[0].text} AS DOUBLE)"
    fails = "raise_error('Sail makes no DECIMAL of such a number: give --engine spark')"
    of_digits = (
        f"WHEN abs({text}) < 1e16D THEN {name}(CAST({text} AS STRING) AS {to}) "
        f"WHEN {text} IS NOT NULL THEN {fails}"
    )
    if digits > _MOST_DIGITS:
        return f"CASE {of_digits} END"
    exact = f"{name}({_exactly(text, digits)} AS {to})"
    return f"CASE WHEN {_is_exact(text, digits)} THEN {exact} {of_digits} END"


def _is_exact(text: str, digits: int) -> str:
    """Whether a number is rounded by `_exactly`."""
    return f"abs({text}) * 1{'0' * digits}D < {_EXACT}"


def _exactly(text: str, digits: int) -> str:
    """A number rounded by its decimal digits, halves up.

    The quotient is the number next to the half of two steps, so that it is the number itself
    exactly if its shortest decimal digits end there.
    """
    size, scale = f"abs({text})", f"1{'0' * digits}D"
    below = f"floor({size} * {scale})"
    up = f"CAST(({below} + 0.5D) / {scale} <= {size} AS INT)"
    sign = f"CASE WHEN {text} < 0 THEN -1D ELSE 1D END"
    return f"{sign} * (({below} + {up}) / {scale})"


def inverted(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The inverted bits of a TINYINT or a SMALLINT, of which Sail makes an INT."""
    kind = types[0] if len(types) == 1 else None
    if kind not in {"tinyint", "smallint"}:
        return None
    return f"CAST(~({operation.operands[0].text}) AS {kind})"
