"""Operations with another result on Sail than on Spark for certain types; see `on_sail`.

Each rule takes an operation with the types of its operands, as far as the engine knows them, and
returns what Sail does and what to write instead; None if Sail does what Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from strandline.sql.column_types import FLOATS, WHOLE, Problem, digits_of, is_decimal, is_nested
from strandline.sql.json_on_sail import read_json
from strandline.sql.missing_on_sail import (
    decoded,
    joined,
    not_for_these_types,
    part_of_text,
    unless_null,
    without_nulls,
    zero_for_null,
)
from strandline.sql.operations import COMPARISONS, Operand, Operation
from strandline.sql.texts_on_sail import (
    BYTES_AS_TEXT,
    JOINS,
    MATCHING,
    OF_TEXTS,
    binary,
    encoded,
    found_from,
    like,
    regular_expression,
    to_boolean,
    to_text,
)
from strandline.sql.times_on_sail import (
    OF_ANOTHER_TYPE,
    OF_TIMES_OF_DAY,
    formatted,
    in_zone,
    of_another_type,
    of_intervals,
    of_seconds,
    truncated,
    truncated_days,
    units,
    whole_units_between,
)

_Rule = Callable[[Operation, Sequence[str | None]], Problem | None]

_NUMBER = re.compile(r"-?\s*\d+")
_FLOATING = re.compile("double|float")


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
    """`nvl` of values of two types; of one type it is written as `coalesce`."""
    if len({*types}) > 1 and not {*types} <= {*WHOLE, *FLOATS, "void"}:
        return "gives another type", "coalesce(x, y) of one type"
    return None


def _nullif(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if len({*types}) > 1 and types and is_decimal(types[0]):
        return "gives another DECIMAL", "CASE WHEN x <> y THEN x END"
    return _mixed(operation, types)


def _greatest(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if any(map(is_nested, types)):
        return "orders nulls in structs and arrays otherwise", "values of plain types"
    return _together(operation, types)


def _together(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Texts beside other values, of which Spark makes numbers or times."""
    if "string" in types and {*types} - {"string", "void", None}:
        return "makes texts of all values", "CAST(x AS STRING) for the others"
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
    if operation.name == "pmod":
        return "gives another DECIMAL", "CAST(x AS DOUBLE) for both"
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
    is_time = to == "boolean" and (types[0] or "").startswith(("date", "timestamp"))
    if is_time or (to == "binary" and types[0] in WHOLE):
        other = "x IS NOT NULL" if is_time else "unhex(hex(x))"
        return f"makes {to.upper()} of it, which Spark refuses", other
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


def _of_intervals(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if types and (types[0] or "").startswith("interval"):
        micros = f"{operation.name}(unix_micros(b) - unix_micros(a)) for {operation.name}(b - a)"
        return "gives another type or microsecond of intervals", micros
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


def _to_places(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`ceil` and `floor` of floating point to some places."""
    if len(types) != 2 or types[0] not in FLOATS:
        return None
    return "rounds to fewer digits first", f"{operation.name}(CAST(x AS DECIMAL(30, 15)), 2)"


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


def _tried(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    if any((kind or "").startswith("timestamp") for kind in types):
        return "gives TIMESTAMP_NTZ", "t + INTERVAL '1' DAY"
    if all(one.literal for one in operation.operands):
        return "gives BIGINT of two numbers", "the result itself"
    return not_for_these_types(operation, types)


def _untyped(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    return ("gives a null without a type", "CAST(NULL AS …)") if "void" in types else None


RULES: dict[str, tuple[_Rule, ...]] = {
    **dict.fromkeys(("case", "if"), (_choice,)),
    **dict.fromkeys(("nvl", "ifnull"), (_coalesced,)),
    **dict.fromkeys(("greatest", "least"), (_greatest,)),
    **dict.fromkeys(COMPARISONS, (_compared,)),
    **dict.fromkeys(("array", "coalesce"), (_together,)),
    **dict.fromkeys(("ilike", "like"), (like,)),
    **dict.fromkeys(("+", "-", "/"), (_arithmetic, of_intervals)),
    **dict.fromkeys(("*", "%", "div", "mod", "pmod"), (_arithmetic,)),
    **dict.fromkeys((*JOINS, *OF_TEXTS), (to_text,)),
    **dict.fromkeys(("cast", "try_cast"), (_cast,)),
    **dict.fromkeys(("avg", "mean"), (_of_decimals, _of_intervals)),
    "round": (_rounded,),
    **dict.fromkeys(("ceil", "ceiling", "floor"), (_to_places,)),
    "sum": (_summed, _of_intervals),
    "nullif": (_nullif,),
    "from_json": (read_json,),
    **dict.fromkeys(("hash", "xxhash64"), (_hashed,)),
    **dict.fromkeys(
        ("array_max", "array_min", "array_sort", "max", "max_by", "min", "min_by", "sort_array"),
        (_ordered,),
    ),
    **dict.fromkeys((*BYTES_AS_TEXT, "left", "right"), (binary, to_text)),
    "to_char": (binary,),
    **dict.fromkeys(("locate", "position"), (to_text, found_from)),
    "encode": (to_text, encoded),
    "array_except": (without_nulls,),
    "array_join": (to_text, joined),
    "decode": (decoded,),
    "nvl2": (unless_null,),
    "zeroifnull": (zero_for_null,),
    **dict.fromkeys(("try_divide", "try_mod"), (not_for_these_types,)),
    **dict.fromkeys(("substr", "substring"), (binary, to_text, part_of_text)),
    **dict.fromkeys(("extract", "date_part", "datepart"), (units,)),
    "date_format": (formatted,),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), (in_zone,)),
    "date_trunc": (truncated,),
    "trunc": (truncated_days,),
    **dict.fromkeys(("try_add", "try_multiply", "try_subtract"), (_tried,)),
    "timestamp_seconds": (of_seconds,),
    **dict.fromkeys(MATCHING, (regular_expression,)),
    **dict.fromkeys(OF_ANOTHER_TYPE, (of_another_type,)),
    "regexp_count": (regular_expression, of_another_type),
    **dict.fromkeys(("listagg", "string_agg"), (to_text, _untyped)),
    "make_date": (_untyped,),
    "timestampdiff": (whole_units_between,),
}  # fmt: skip
"""The rules for each operation."""
