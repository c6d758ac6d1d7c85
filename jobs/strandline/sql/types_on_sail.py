"""Operations with another result on Sail than on Spark for certain types and arguments.

Regular expressions and patterns are in `texts_on_sail`, times in `times_on_sail`; see `on_sail`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from strandline.sql.by_name_on_sail import TIME_OF_DAY
from strandline.sql.column_types import FLOATS, WHOLE, Problem, digits_of, is_decimal, is_nested
from strandline.sql.differences import Table, Types, problem_in
from strandline.sql.functions_for_sail import are_tried, is_decoded, widest
from strandline.sql.operations import COMPARISONS, Operation
from strandline.sql.several_types_on_sail import OF_SEVERAL_TYPES
from strandline.sql.texts_on_sail import PATTERNS
from strandline.sql.times_on_sail import OF_TIMES, has_intervals, has_times

_NUMBER = re.compile(r"-?\s*\d+")
_FLOATING = re.compile("double|float")
_COMPARED = " ".join(COMPARISONS)
_BOOLEANS = {"true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"}
"""The texts that both engines read as BOOLEAN; Sail also reads `on` and `tru`."""
_OF_ALL_CHARACTERS = {"utf-8", "utf-16be", "utf-16le"}
"""The charsets in which both engines write the same bytes."""
_OF_BYTES = (
    "btrim contains endswith lcase lower lpad ltrim overlay reverse rpad rtrim startswith trim "
    "ucase upper"
)
"""Functions that Sail computes for BINARY as if it were text."""
_OF_TEXTS = (
    "|| array_join ascii base64 bit_length btrim char_length character_length concat concat_ws "
    "contains crc32 encode endswith find_in_set format_string instr lcase len length "
    "levenshtein listagg locate lower lpad ltrim md5 octet_length overlay position printf repeat "
    "replace reverse rpad rtrim sha sha1 sha2 split_part startswith string_agg substring_index "
    "translate trim try_validate_utf8 ucase upper validate_utf8"
)
"""Operations that convert operands of other types to text."""


def _takes_first(operation: Operation, types: Types) -> bool:
    """Whether Spark may give CASE another type, the widest one, than that of its first branch."""
    known = [kind for kind in types if kind != "void"]
    if None in known:
        kinds = {_kind_of_literal(one.literal) for one in operation.operands}
        return len(kinds) > 1 or None in kinds
    order = [*WHOLE, "double"]
    if {*known} <= {*order}:
        return any(order.index(str(kind)) > order.index(str(known[0])) for kind in known)
    return len({*known}) > 1


def _kind_of_literal(literal: str | None) -> str | None:
    if literal is None:
        return None
    return "whole" if _NUMBER.fullmatch(literal) else literal if "." in literal else literal[0]


def _are_exact(operation: Operation, types: Types) -> bool:
    """Whether two numbers are exact, and one of them is a DECIMAL."""
    return len(types) == 2 and any(map(is_decimal, types)) and not {*types} & FLOATS


def _has_too_many_digits(operation: Operation, types: Types) -> bool:
    if not _are_exact(operation, types):
        return False
    (p1, s1), (p2, s2) = (digits_of(kind) for kind in types)
    if operation.name == "*":
        return p1 + p2 + 1 > 38
    return max(p1 - s1, p2 - s2) + max(s1, s2) + 1 > 38


def _writes_floats(operation: Operation, types: Types) -> bool:
    return any((kind or "").removeprefix("array<").rstrip(">") in FLOATS for kind in types)


def _orders_nested(operation: Operation, types: Types) -> bool:
    """Whether values are ordered that hold others, and so nulls, which Sail puts last."""
    by = types[1:] if operation.name in {"max_by", "min_by"} else types[:1]
    if operation.name in {"array_sort", "sort_array", "array_max", "array_min"}:
        if operation.name == "array_sort" and len(types) == 2:
            return False
        by = [(kind or "").removeprefix("array<") for kind in by]
    return any(map(is_nested, by))


_TABLE = Table[str](
    *OF_TIMES,
    ("case if", _takes_first, "takes the type of the first branch", "CAST in each branch"),
    ("nvl ifnull", lambda o, t: len({*t}) > 1 and not {*t} <= {*WHOLE, *FLOATS, "void"},
        "gives another type", "coalesce(x, y) of one type"),
    ("nullif",
        lambda o, t: not {*t[1:]} <= {t[0], "void", None}
        and (is_decimal(t[0]) or t[0] == "string"),
        "gives another type", "CASE WHEN x <> y THEN x END"),
    ("greatest least", lambda o, t: any(map(is_nested, t)),
        "orders nulls in structs and arrays differently", "values of plain types"),
    ("greatest least array coalesce",
        lambda o, t: "string" in t and not {*t} <= {"string", "void", None},
        "makes texts of all values", "CAST(x AS STRING) for the others"),
    (_COMPARED, lambda o, t: any(is_nested(kind) and _FLOATING.search(str(kind)) for kind in t),
        "takes -0.0 and 0.0 inside of values for two", "their parts one by one"),
    (f"{_COMPARED} nullif greatest least array coalesce",
        lambda o, t: any(map(is_decimal, t)) and bool({*t} & FLOATS),
        "makes DECIMAL of DOUBLE beside DECIMAL", "a number as 1.5D, a column cast to DOUBLE"),
    # numbers
    ("+ - * / % div mod pmod",
        lambda o, t: len(t) == 2 and "float" in t and t[0] != t[1] and "double" not in t,
        "gives FLOAT where Spark gives DOUBLE", "CAST(x AS DOUBLE)"),
    ("pmod", _are_exact, "gives another DECIMAL", "CAST(x AS DOUBLE) for both"),
    ("/ div", _are_exact, "cuts off DECIMAL where Spark rounds", "CAST(x AS DOUBLE) / y"),
    ("+ - * % mod",
        lambda o, t: _are_exact(o, t)
        and any(_NUMBER.fullmatch(one.literal or "") for one in o.operands),
        "gives another DECIMAL beside a whole number", "the number with a point, as 2.0"),
    ("+ - * % mod", _has_too_many_digits,
        "keeps other digits of a number with more than 38", "CAST(x AS DECIMAL(18, 4))"),
    ("+ - *", lambda o, t: len(t) == 2 and None in t and {*t} <= {None, *WHOLE},
        "may let whole numbers overflow in silence", "CAST(x AS DOUBLE)"),
    ("try_add try_multiply try_subtract", has_times,
        "gives TIMESTAMP_NTZ", "t + INTERVAL '1' DAY"),
    ("try_add try_multiply try_subtract", lambda o, t: all(one.literal for one in o.operands),
        "gives BIGINT of two numbers", "the result itself"),
    ("try_add try_divide try_mod try_multiply try_subtract",
        lambda o, t: len(t) == 2 and not are_tried(o.name, t),
        "does not have it for these types", "CAST(x AS DOUBLE) for both"),
    ("avg mean", lambda o, t: any(map(is_decimal, t[:1])),
        "gives another last digit or type of DECIMAL", "{name}(CAST(x AS DOUBLE))"),
    ("sum", lambda o, t: any(is_decimal(kind) and digits_of(kind)[0] > 28 for kind in t),
        "lets DECIMAL overflow in silence", "sum(CAST(x AS DECIMAL(28, s)))"),
    ("avg mean sum", has_intervals, "gives another type or microsecond of intervals",
        "{name}(unix_micros(b) - unix_micros(a)) for {name}(b - a)"),
    ("round", lambda o, t: len(t) == 2 and t[0] in FLOATS and o.operands[1].literal is None,
        "rounds by binary digits to a computed place", "round(x, 2)"),
    ("round", lambda o, t: not o.type_is_given and any(map(is_decimal, t[:1])),
        "gives another DECIMAL", "CAST(round(x, n) AS DECIMAL(p, n))"),
    ("ceil ceiling floor", lambda o, t: len(t) == 2 and t[0] in FLOATS,
        "rounds to fewer digits first", "{name}(CAST(x AS DECIMAL(30, 15)), 2)"),
    ("hash xxhash64", lambda o, t: any(is_decimal(kind) or is_nested(kind) for kind in t),
        "hashes DECIMAL and structs differently", "CAST(x AS STRING) for it"),
    ("zeroifnull", lambda o, t: not {*t} <= {*WHOLE, *FLOATS},
        "gives another type", "coalesce(x, y) of one type"),
    ("bitmap_bit_position bitmap_bucket_number", lambda o, t: not o.type_is_given,
        "gives another type", "CAST({name}(…) AS BIGINT)"),
    # casts and texts
    ("cast try_cast", lambda o, t: o.to == "string" and _writes_floats(o, t),
        "writes floating point differently", "CAST(CAST(x AS DECIMAL(38, 6)) AS STRING)"),
    ("cast try_cast", lambda o, t: o.to == "string" and any(map(is_nested, t)),
        "writes nulls differently", "array_join(a, ',')"),
    ("cast try_cast", lambda o, t: bool(re.match(r"time\b", o.to or "")), *TIME_OF_DAY),
    ("cast try_cast",
        lambda o, t: o.to == "boolean" and (t[0] or "").startswith(("date", "timestamp")),
        "makes BOOLEAN of it, which Spark refuses", "x IS NOT NULL"),
    ("cast try_cast", lambda o, t: o.to == "binary" and t[0] in WHOLE,
        "makes BINARY of it, which Spark refuses", "unhex(hex(x))"),
    ("cast try_cast",
        lambda o, t: o.to == "boolean" and [*t] == ["string"]
        and (o.written(0) or "").lower() not in _BOOLEANS,
        "reads some texts that Spark does not", "lower(s) = 'true'"),
    ("cast try_cast",
        lambda o, t: (o.to or "").startswith("decimal") and t[0] in {"timestamp", "timestamp_ntz"},
        "rounds the microseconds", "unix_micros(t)"),
    ("try_cast",
        lambda o, t: [*t] == ["string"] and bool(re.match("double|float|decimal", o.to or "")),
        "gives null for some texts", "CAST(x AS {to})"),
    (f"{_OF_BYTES} left right substring to_char", lambda o, t: "binary" in t,
        "makes text of BINARY", "hex(x)"),
    (f"{_OF_TEXTS} left right substring", _writes_floats,
        "writes floating point differently", "CAST(CAST(x AS DECIMAL(38, 6)) AS STRING)"),
    (_OF_TEXTS, has_times, "writes times differently", "CAST(t AS STRING)"),
    ("format_string printf", lambda o, t: any(map(is_decimal, t)),
        "rounds halves differently", "CAST(x AS STRING)"),
    ("format_string printf", lambda o, t: "boolean" in t,
        "writes null as false", "CAST(x AS STRING)"),
    ("locate position", lambda o, t: len(t) == 3 and o.operands[2].literal is None,
        "gives null where the position is null", "instr(s, text), or a written position"),
    ("encode", lambda o, t: (o.written(1) or "").lower() not in _OF_ALL_CHARACTERS,
        "writes ? for a character that the charset lacks, or takes others", "encode(s, 'UTF-8')"),
    ("substring",
        lambda o, t: len(t) == 3 and any((o.written(n) or "-")[0] == "-" for n in (1, 2)),
        "takes other parts at a computed position or from the right",
        "left(substr(s, n), m) for n > 0"),
    ("decode", lambda o, t: len(t) > 2 and not is_decoded(t),
        "decodes BINARY only", "CASE WHEN x = 1 THEN … END"),
    ("nvl2", lambda o, t: len(t) == 3 and widest(t[1:]) is None,
        "takes the type of the first result", "CAST for both results"),
    ("array_except listagg make_date reverse string_agg", lambda o, t: "void" in t,
        "gives a null without a type", "CAST(NULL AS …)"),
    ("regexp_count", lambda o, t: not o.type_is_given,
        "gives another type", "CAST(regexp_count(…) AS INT)"),
    # arrays and JSON
    ("max_by min_by", lambda o, t: len(t) == 3, "gives one value", "array_sort(collect_list(x))"),
    ("array_max array_min array_sort max max_by min min_by sort_array", _orders_nested,
        "orders nulls in structs and arrays differently", "by values of plain types"),
    ("array_except",
        lambda o, t: len({(one.text or "").lower().startswith("array(") for one in o.operands}) > 1,
        "refuses an array that is written out",
        "array_distinct(filter(a, v -> v IS NULL OR v NOT IN (1, 2)))"),
    ("array_join", lambda o, t: len(t) == 3 and (o.operands[2].literal or "NULL") == "NULL",
        "joins where Spark gives null", "array_join(a, ',', 'text')"),
    ("from_json", lambda o, t: o.written(1) is None,
        "reads some types of a computed schema differently", "the schema as a literal"),
    ("from_json", lambda o, t: bool(re.match(r"\s*array\s*<", o.written(1) or "", re.IGNORECASE)),
        "gives an array where Spark gives null", "a schema with fields"),
    ("from_json", lambda o, t: not _is_read_alike(o.written(1) or ""),
        "takes other values for types such as DECIMAL, INT and times, and for NOT NULL",
        "a schema with STRING, BIGINT, DOUBLE and BOOLEAN, and a cast of the field"),
    ("from_json", lambda o, t: len(t) > 2,
        "leaves out most options", "from_json(x, 'field STRING'), and casts of the fields"),
    *OF_SEVERAL_TYPES,
)  # fmt: skip

OF_TYPES = _TABLE.names | PATTERNS.keys()
"""The operations of which some calls differ."""


def problems_of_types(operation: Operation, types: Types) -> Iterator[Problem]:
    """How Sail differs for the types and arguments of an operation, and for its pattern."""
    of_pattern = PATTERNS.get(operation.name)
    problems = (problem_in(_TABLE, operation, types), of_pattern and of_pattern(operation))
    yield from (problem for problem in problems if problem)


_JSON_TYPE = r"(?:STRING|BIGINT|LONG|DOUBLE|BOOLEAN|<>)"
_JSON_NAME = r"(?!`?_corrupt_record\b)(?:\w+|`[^`]+`)"
_JSON_COMMENT = r"""(?:\s+COMMENT\s+(?:'[^']*'|"[^"]*"))?"""
_JSON_FIELD = rf"{_JSON_NAME}(?:\s*:\s*|\s+){_JSON_TYPE}{_JSON_COMMENT}"
_JSON_FIELDS = rf"\s*{_JSON_FIELD}(?:\s*,\s*{_JSON_FIELD})*\s*"
_JSON_MAP = r"MAP\s*<\s*STRING\s*,\s*STRING\s*>"
_JSON_NESTED = re.compile(
    rf"\b(?:{_JSON_MAP}|ARRAY\s*<\s*{_JSON_TYPE}\s*>|STRUCT\s*<{_JSON_FIELDS}>)", re.IGNORECASE
)
"""Matches a map, and an array or a struct of which each nested type is written as `<>`."""
_JSON_SCHEMA = re.compile(rf"\s*<>\s*|{_JSON_FIELDS}", re.IGNORECASE)


def _is_read_alike(schema: str) -> bool:
    r"""Whether each type of a written schema, such as `a STRING, m MAP<STRING, STRING>`, is known.

    Args:
        schema: as in the SQL, with `\'` for a quote.
    """
    schema, before = schema.replace("\\'", "'"), ""
    while schema != before:
        schema, before = _JSON_NESTED.sub("<>", schema), schema
    return _JSON_SCHEMA.fullmatch(schema) is not None
