"""Operations on values of several types, or of types that Spark refuses; see `types_on_sail`."""

from __future__ import annotations

import re

from strandline.sql.column_types import FLOATS, WHOLE, are_alike, is_decimal, is_nested, key_of
from strandline.sql.differences import Row, Types
from strandline.sql.operations import COMPARISONS, Operation
from strandline.sql.times_on_sail import has_intervals

_OF_ARRAYS = (
    "array array_append array_except array_intersect array_position array_prepend "
    "array_remove array_union arrays_overlap coalesce concat equal_null greatest ifnull least "
    "map_concat nullif nvl"
)
"""Functions that compare values which may be arrays, or make one array or map of several."""


_OF_NUMBERS = (
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees exp expm1 hypot ln log "
    "log10 log1p log2 pow power radians sec sign signum sin sinh sqrt tan tanh"
)
"""Functions of DOUBLE."""
_OF_TEXTS_ALONE = (
    "ascii btrim char_length character_length contains endswith find_in_set instr lcase "
    "left levenshtein locate lower lpad ltrim position regexp_count regexp_substr "
    "repeat right rpad rtrim soundex split_part startswith substring_index translate trim ucase "
    "try_validate_utf8 upper validate_utf8"
)
"""Functions of texts that take no array."""
_TEXT = {"string", "void", None}


def _holds_other_types(operation: Operation, types: Types) -> bool:
    """Whether one value holds a type where another one holds one of another class.

    Of structs Spark compares the names of fields, too.
    """
    has_structs = any("struct<" in (kind or "") for kind in types)
    is_one_type = len({*types} - {"void", None}) <= 1
    return any(map(is_nested, types)) and not (is_one_type if has_structs else are_alike(types))


def _mixes_times_with_numbers(operation: Operation, types: Types) -> bool:
    return any(map(_is_time, types)) and any(map(_is_number, types))


def _is_time(kind: str | None) -> bool:
    return kind in {"date", "timestamp", "timestamp_ntz"}


def _is_number(kind: str | None) -> bool:
    return kind in {*WHOLE, *FLOATS} or is_decimal(kind)


def _makes_a_time(first: str | None, second: str | None = "") -> bool:
    """Whether types are a DATE alone, or anything with a TIME."""
    return re.match(r"time\b", str(second)) is not None if second else first == "date"


def _are_several(types: Types) -> bool:
    """Whether values have several types; beside a DATE alone a text is written as a DATE."""
    kinds = {*types} - {"void", None}
    return len(kinds) > 1 and kinds != {"date", "string"}


def _is_whole(kind: str | None) -> bool:
    return kind in {*WHOLE, "void", None}


def _to_number(operation: Operation) -> bool:
    to = operation.to or ""
    return to in {*WHOLE, *FLOATS} or to.startswith("decimal")


def _has_another_key(operation: Operation, types: Types) -> bool:
    """Whether a map is asked for a key of another class than its own."""
    key = key_of(types[0])
    return key is not None and not are_alike([key, *types[1:]])


OF_SEVERAL_TYPES: tuple[Row[str], ...] = (
    (f"{' '.join(COMPARISONS)} {_OF_ARRAYS}", _holds_other_types,
        "compares, or makes one of, several types inside of arrays, maps and structs",
        "one type first, as transform(a, x -> CAST(x AS DOUBLE))"),
    ("element_at try_element_at map_contains_key", _has_another_key,
        "looks for keys of another type, which Spark refuses", "a cast of the key"),
    ("array", lambda o, t: not are_alike(t), "makes one type of several", "a CAST of each"),
    ("greatest least", _mixes_times_with_numbers,
        "makes dates of numbers, which Spark refuses", "a CAST of each"),
    ("nullif", lambda o, t: _are_several(t) and not {*t} <= {*WHOLE, *FLOATS, "void", None},
        "gives another type", "CASE WHEN x <> y THEN x END"),
    ("in", lambda o, t: "string" in t and _are_several(t) and len(t) > 2,
        "compares all as texts", "x IN (…) OR x IN (…), each of one type"),
    # types that Spark refuses
    (_OF_NUMBERS, lambda o, t: any(_is_time(kind) or kind == "boolean" for kind in t),
        "takes types that Spark refuses", "CAST(x AS INT), or unix_micros(x)"),
    (_OF_TEXTS_ALONE, lambda o, t: any(map(is_nested, t)),
        "makes texts of arrays, which Spark refuses", "array_join(x, ',')"),
    ("flatten", lambda o, t: not (t[0] or "array<array<").startswith("array<array<"),
        "takes types that Spark refuses", "x itself"),
    ("factorial", lambda o, t: len(t) != 1 or not {*t} <= {"tinyint", "smallint", "int"},
        "takes types that Spark refuses", "factorial(CAST(x AS INT))"),
    ("hypot", lambda o, t: "bigint" in t,
        "loses the digits of large numbers", "hypot(CAST(x AS DOUBLE), CAST(y AS DOUBLE))"),
    ("array_repeat", lambda o, t: len(t) == 2 and t[1] not in {"tinyint", "smallint", "int", None},
        "takes types that Spark refuses", "array_repeat(x, CAST(n AS INT))"),
    ("array_join",
        lambda o, t: not {*t[1:]} <= _TEXT,
        "makes texts of other types", "array_join(a, ',')"),
    ("date_format from_unixtime",
        lambda o, t: (_is_time(t[0]) and o.name == "from_unixtime") or not {*t[1:]} <= _TEXT,
        "takes types that Spark refuses, or other patterns", "{name}(x, 'yyyy-MM-dd')"),
    ("equal_null", _mixes_times_with_numbers,
        "compares dates with numbers, which Spark refuses", "unix_date(d)"),
    ("greatest least", lambda o, t: len(t) == 1,
        "takes a single operand, which Spark refuses", "x itself"),
    ("log", lambda o, t: "string" in t,
        "gives null for texts that are no number", "CAST(x AS DOUBLE)"),
    ("left right shiftleft shiftright shiftrightunsigned",
        lambda o, t: len(t) == 2 and t[1] in {"bigint", *FLOATS},
        "takes numbers that are too large, where Spark fails", "CAST(x AS INT)"),
    ("shiftrightunsigned", lambda o, t: len(t) == 2 and o.operands[1].literal is None,
        "shifts otherwise by a negative number", "a written number, as shiftrightunsigned(x, 2)"),
    ("make_timestamp_ltz try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz",
        lambda o, t: len(t) < 3 and not _makes_a_time(*t),
        "takes types that Spark refuses", "CAST(d AS TIMESTAMP)"),
    ("timestamp_micros timestamp_millis", lambda o, t: not all(map(_is_whole, t)),
        "takes types that Spark refuses", "{name}(CAST(x AS BIGINT))"),
    ("timestampdiff", lambda o, t: len(t) == 2,
        "takes two operands, which Spark refuses", "timestampdiff(DAY, a, b)"),
    ("unix_micros unix_millis unix_seconds zeroifnull", lambda o, t: len(t) != 1,
        "takes several operands, which Spark refuses", "{name}(x)"),
    ("date_from_unix_date", lambda o, t: any(map(_is_time, t)),
        "takes dates, which Spark refuses", "x itself"),
    ("date_add date_sub dateadd",
        lambda o, t: len(t) == 2 and (_is_number(t[0]) or t[1] in FLOATS or is_decimal(t[1])),
        "takes numbers that Spark refuses", "{name}(d, CAST(x AS INT))"),
    ("round", lambda o, t: len(t) == 2 and o.operands[1].literal is None,
        "rounds to a computed place, which Spark refuses", "round(x, 2)"),
    ("regr_avgx regr_avgy regr_intercept regr_slope regr_sxx regr_sxy regr_syy",
        lambda o, t: any(map(is_decimal, t)),
        "gives DOUBLE of DECIMAL", "{name}(CAST(x AS DOUBLE), CAST(y AS DOUBLE))"),
    ("~ & | ^", lambda o, t: not all(map(_is_whole, t)),
        "takes types that Spark refuses", "CAST(x AS BIGINT)"),
    ("div", lambda o, t: bool({*t} & FLOATS),
        "takes types that Spark refuses", "CAST(x / y AS BIGINT)"),
    ("/", lambda o, t: any(_is_time(kind) or kind == "boolean" for kind in t),
        "takes types that Spark refuses", "CAST(x AS INT), or unix_micros(x)"),
    ("*", lambda o, t: "bigint" in t and has_intervals(o, t),
        "lets intervals overflow in silence", "make_dt_interval(0, 0, 0, x), or CAST(x AS INT)"),
    ("|| concat", lambda o, t: "binary" in t and len({*t}) > 1,
        "makes text of BINARY", "hex(x)"),
    ("count_if", lambda o, t: not {*t} <= {"boolean", "void", None},
        "counts numbers, which Spark refuses", "count_if(x <> 0)"),
    ("kurtosis median percentile skewness", lambda o, t: not _is_number(t[0]) and t[0] is not None
        and not has_intervals(o, t[:1]),
        "takes types that Spark refuses", "CAST(x AS DOUBLE)"),
    ("cast try_cast", lambda o, t: t[0] == "timestamp_ntz" and _to_number(o)
        and not str(o.operands[0].text).lower().startswith("date_trunc("),
        "makes a number of it, which Spark refuses", "unix_micros(CAST(x AS TIMESTAMP))"),
    ("try_cast", lambda o, t: t[0] == "date" and _to_number(o),
        "gives null, where Spark refuses it", "unix_date(x)"),
    ("try_cast", lambda o, t: t[0] == "binary" and o.to == "string",
        "gives null for bytes that are no text", "CAST(x AS STRING)"),
    ("timestampadd dateadd date_add", lambda o, t: len(t) == 3 and _is_number(t[2]),
        "makes times of numbers, which Spark refuses", "timestamp_seconds(x)"),
    ("timestampdiff datediff date_diff", lambda o, t: len(t) == 3 and any(map(_is_number, t[1:])),
        "makes times of numbers, which Spark refuses", "timestamp_seconds(x)"),
)  # fmt: skip
"""The operations, which of their calls, how Sail differs, and what to write instead."""
