"""Operations with another result on Sail than on Spark for certain types; see `on_sail`.

Each rule takes an operation with the types of its operands, as far as the engine knows them, and
returns what Sail does and what to write instead; None if Sail does what Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from strandline.sql.column_types import FLOATS, WHOLE, Problem, digits_of, is_decimal, is_nested
from strandline.sql.operations import COMPARISONS, Operand, Operation
from strandline.sql.texts_on_sail import (
    JOINS,
    MATCHING,
    OF_TEXTS,
    binary,
    like,
    regular_expression,
    to_boolean,
    to_text,
)

_Rule = Callable[[Operation, Sequence[str | None]], Problem | None]

OF_TIMES_OF_DAY = ("has a type TIME, which Spark has not", "use the TIMESTAMP itself")
OF_ANOTHER_TYPE = {
    "bitmap_bit_position": "BIGINT",
    "bitmap_bucket_number": "BIGINT",
    "date_diff": "INT",
    "datediff": "INT",
    "regexp_count": "INT",
}
"""Functions with another type of whole number than on Spark."""
_NUMBER = re.compile(r"-?\s*\d+")
_FLOATING = re.compile("double|float")
_UNITS_OF_DAYS = {"day": 1, "week": 7}


def _choice(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """CASE and IF: Sail has the type of the first branch, Spark the widest type."""
    known = [kind for kind in types if kind != "void"]
    if None in known:
        is_right = _of_one_kind(operation.operands)
    else:
        is_right = len({*known}) <= 1 or _first_is_widest(known)
    return None if is_right else ("takes the type of the first branch", "CAST in each branch")


def _first_is_widest(types: Sequence[str | None]) -> bool:
    order = [*WHOLE, "double"]
    return {*types} <= {*order} and all(
        order.index(str(types[0])) >= order.index(str(other)) for other in types
    )


def _of_one_kind(operands: Sequence[Operand]) -> bool:
    kinds = {_kind_of_literal(one.literal) for one in operands}
    return len(kinds) == 1 and None not in kinds


def _kind_of_literal(literal: str | None) -> str | None:
    if literal is None:
        return None
    return "whole" if _NUMBER.fullmatch(literal) else literal if "." in literal else literal[0]


def _coalesced(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    holds_values = any(map(is_nested, types))
    of_times = any((kind or "").startswith("timestamp") for kind in types)
    if holds_values or of_times or (len({*types}) > 1 and any(map(is_decimal, types))):
        return "gives another type", "coalesce(x, y)"
    return None


def _nullif(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if len({*types}) > 1 and types and is_decimal(types[0]):
        return "gives another DECIMAL", "CASE WHEN x <> y THEN x END"
    return _mixed(operation, types)


def _greatest(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if any(map(is_nested, types)):
        return "orders nulls in structs and arrays otherwise", "values of plain types"
    return _mixed(operation, types)


def _mixed(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """DOUBLE with DECIMAL: Sail converts both to DECIMAL, and so rounds to 15 digits."""
    if any(map(is_decimal, types)) and any(kind in FLOATS for kind in types):
        return "makes DECIMAL of DOUBLE beside DECIMAL", "a number as 1.5D, a column cast to DOUBLE"
    return None


def _arithmetic(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if len(types) != 2:
        return None
    one, other = types
    name = operation.name
    if "float" in types and one != other and "double" not in types:
        return "gives FLOAT where Spark gives DOUBLE", "CAST(x AS DOUBLE)"
    if {*types} & FLOATS:
        return None
    if name == "-" and types == ["date", "date"]:
        return "gives a whole number", "CAST(datediff(a, b) AS INT)"
    if any(map(is_decimal, types)):
        return _decimals(operation, types)
    if name in {"+", "-", "*"} and None in types and {*types} <= {None, *WHOLE}:
        return "may let whole numbers overflow in silence", "CAST(x AS DOUBLE)"
    return None


def _decimals(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if operation.name in {"/", "div"}:
        return "cuts off DECIMAL where Spark rounds", "CAST(x AS DOUBLE) / y"
    if any(one.literal and _NUMBER.fullmatch(one.literal) for one in operation.operands):
        return "gives another DECIMAL beside a whole number", "the number with a point, as 2.0"
    (p1, s1), (p2, s2) = (digits_of(kind) for kind in types)
    scale = s1 + s2 if operation.name == "*" else max(s1, s2)
    digits = p1 + p2 + 1 if operation.name == "*" else max(p1 - s1, p2 - s2) + scale + 1
    if digits > 38:
        return "keeps other digits of a number with more than 38", "CAST(x AS DECIMAL(18, 4))"
    return None


def _compared(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Comparisons, also of arrays and structs."""
    if any(is_nested(kind) and _FLOATING.search(kind or "") for kind in types):
        return "takes -0.0 and 0.0 inside of values for two", "their parts one by one"
    return _mixed(operation, types)


def _cast(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    to = operation.to or ""
    if to == "string":
        if operation.name == "cast":
            return to_text(operation, types)
        return to_text(Operation("cast", operation.operands), types)
    if to.startswith("time") and not to.startswith("timestamp"):
        return OF_TIMES_OF_DAY
    if to == "boolean":
        return to_boolean(operation, types)
    if to.startswith("decimal") and types in (["timestamp"], ["timestamp_ntz"]):
        return "rounds the microseconds", "unix_micros(t)"
    is_read = to in {"date", *FLOATS} or to.startswith("decimal")
    if operation.name == "try_cast" and types == ["string"] and is_read:
        return "gives null for some texts", f"CAST(x AS {to.upper()})"
    return None


def _of_decimals(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if types and is_decimal(types[0]):
        return "gives another last digit or type of DECIMAL", f"{operation.name}(CAST(x AS DOUBLE))"
    return None


def _summed(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """A sum of DECIMALs: up to 28 digits it has ten more, which practically never overflow."""
    if types and is_decimal(types[0]) and digits_of(types[0])[0] > 28:
        return "lets DECIMAL overflow in silence", "sum(CAST(x AS DECIMAL(28, s)))"
    return None


def _rounded(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if len(types) == 2 and types[0] in FLOATS and operation.operands[1].literal is None:
        return "rounds by binary digits to a computed place", "round(x, 2)"
    if operation.type_is_given or not (types and is_decimal(types[0])):
        return None
    return "gives another DECIMAL", "CAST(round(x, n) AS DECIMAL(p, n))"


def _hashed(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if any(is_decimal(kind) or is_nested(kind) for kind in types):
        return "hashes DECIMAL and structs otherwise", "CAST(x AS STRING) for it"
    return None


def _ordered(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Functions that order values: Sail puts nested nulls last."""
    by = types[1:] if operation.name in {"max_by", "min_by"} else types[:1]
    if len(types) == 3:
        return "gives one value", "array_sort(collect_list(x))"
    if operation.name in {"array_sort", "sort_array", "array_max", "array_min"}:
        if operation.name == "array_sort" and len(types) == 2:
            return None
        by = [(kind or "").removeprefix("array<") for kind in by]
    if any(map(is_nested, by)):
        return "orders nulls in structs and arrays otherwise", "by values of plain types"
    return None


def _units(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    unit = operation.operands[0].text or ""
    if unit.strip("'\"").lower() in {"dow", "dayofweek", "dow_iso", "dayofweek_iso"}:
        return "begins the week elsewhere", "dayofweek(t)"
    if any((kind or "").startswith("interval") for kind in types):
        return "counts the whole interval", "CAST(x AS BIGINT)"
    return None


def _trunc(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if types[1:] and types[1] in {"string", "timestamp_ntz"}:
        return "gives TIMESTAMP_NTZ", "CAST(x AS TIMESTAMP)"
    return None


def _from_json(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    schema = operation.operands[1].literal if len(operation.operands) > 1 else None
    if schema is not None and schema.strip("'\"").lower().startswith("array"):
        return "gives an array where Spark gives null", "a schema with fields"
    if len(operation.operands) > 2:
        return "leaves out most options", "from_json(x, 'field STRING'), and casts of the fields"
    return None


def _tried(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if any((kind or "").startswith("timestamp") for kind in types):
        return "gives TIMESTAMP_NTZ", "t + INTERVAL '1' DAY"
    if all(one.literal for one in operation.operands):
        return "gives BIGINT of two numbers", "the result itself"
    return None


def _seconds(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if types and types[0] not in WHOLE:
        return "leaves out the fraction", "timestamp_millis(CAST(x * 1000 AS BIGINT))"
    return None


def _another_type(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if len(types) == 3:
        return _between(operation, types)
    if operation.type_is_given:
        return None
    kind = OF_ANOTHER_TYPE[operation.name]
    return "gives another type", f"CAST({operation.name}(…) AS {kind})"


def _between(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Whole days and months from one time to another; hours and less are as on Spark."""
    unit = (operation.operands[0].text or "").lower()
    if unit in {"month", "quarter", "year"}:
        return "counts another month backwards", "CAST(months_between(b, a) AS BIGINT)"
    if (days := _UNITS_OF_DAYS.get(unit)) and {*types[1:]} != {"date"}:
        return "counts midnights", f"timestampdiff(HOUR, a, b) DIV {24 * days}"
    return None


def _untyped(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    return ("gives a null without a type", "CAST(NULL AS …)") if "void" in types else None


RULES: dict[str, tuple[_Rule, ...]] = {
    **dict.fromkeys(("case", "if"), (_choice,)),
    **dict.fromkeys(("nvl", "ifnull"), (_coalesced,)),
    **dict.fromkeys(("greatest", "least"), (_greatest,)),
    **dict.fromkeys(COMPARISONS, (_compared,)),
    **dict.fromkeys(("array", "coalesce"), (_mixed,)),
    **dict.fromkeys(("ilike", "like"), (like,)),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "mod", "pmod"), (_arithmetic,)),
    **dict.fromkeys((*JOINS, *OF_TEXTS), (to_text,)),
    **dict.fromkeys(("cast", "try_cast"), (_cast,)),
    **dict.fromkeys(("avg", "mean"), (_of_decimals,)),
    "round": (_rounded,),
    "sum": (_summed,),
    "nullif": (_nullif,),
    "from_json": (_from_json,),
    **dict.fromkeys(("hash", "xxhash64"), (_hashed,)),
    **dict.fromkeys(
        ("array_max", "array_min", "array_sort", "max", "max_by", "min", "min_by", "sort_array"),
        (_ordered,),
    ),
    "overlay": (binary,),
    **dict.fromkeys(("left", "right", "substr", "substring"), (binary, to_text)),
    **dict.fromkeys(("extract", "date_part", "datepart"), (_units,)),
    "date_trunc": (_trunc,),
    **dict.fromkeys(("try_add", "try_multiply", "try_subtract"), (_tried,)),
    "timestamp_seconds": (_seconds,),
    **dict.fromkeys(MATCHING, (regular_expression,)),
    **dict.fromkeys(OF_ANOTHER_TYPE, (_another_type,)),
    "regexp_count": (regular_expression, _another_type),
    **dict.fromkeys(("listagg", "string_agg"), (to_text, _untyped)),
    "make_date": (_untyped,),
    "timestampdiff": (_between,),
}  # fmt: skip
"""The rules for each operation."""
