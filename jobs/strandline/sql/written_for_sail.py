"""The forms of operations by which Sail gives Apache Spark's results; see `as_on_spark`.

Each rule takes an operation with the types of its operands, as far as the engine knows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from strandline.sql.column_types import FLOATS, NOT_ON_SAIL, NUMBER, WHOLE, is_decimal
from strandline.sql.differences import AS_IT_IS, Form, Types, checked, first_as
from strandline.sql.functions_for_sail import FORMS
from strandline.sql.operations import COMPARISONS, Operation
from strandline.sql.texts_on_sail import REGULAR, as_rust, unescaped
from strandline.sql.times_for_sail import DATE, DAY, FORMS_OF_TIMES, read_of_texts

_MOST = "1.7976931348623157E308D"
_DIGITS = re.compile(r"[0-9]{1,2}")
_DECIMAL = re.compile(r"decimal(?:\(([0-9]+)(?:, *([0-9]+))?\))?")
_MOST_DIGITS = 15
"""The digits behind the point up to which a DOUBLE is rounded exactly."""
_MILLIS = "((unix_micros({0}) + 8000000000000000000) DIV 1000 - 8000000000000000)"
_MOST_SECONDS = (2**63 - 1) // 1_000_000
_OUT_OF_RANGE = (
    f"WHEN ({{0}}) > {_MOST_SECONDS} THEN timestamp_micros({2**63 - 1}) "
    f"WHEN ({{0}}) < -{_MOST_SECONDS} THEN timestamp_micros(-{2**63 - 1} - 1)"
)
"""The last or first time for a number of seconds that is out of range, as Spark casts it."""
_DOUBLE = "CAST({0} AS DOUBLE)"
_SECONDS = "((unix_micros({0}) + 8000000000000000000) DIV 1000000 - 8000000000000)"
"""Units since 1970: DIV rounds up below 0, and no time is so far back."""


def _checked(operation: Operation, types: Types) -> Form:
    """`+`, `-`, `*` of whole numbers in a wider type, whose cast fails where they overflow."""
    kinds = [kind for kind in types if kind in WHOLE]
    if len(types) != 2 or len(kinds) != 2:
        return AS_IT_IS
    kind = max(kinds, key=[*WHOLE].index)
    one, other = (f"CAST({{{place}}} AS {_wider(kind)})" for place in range(2))
    return Form(_narrowed(operation, f"{one} {operation.name} {other}", kind))


def _of_one(operation: Operation, types: Types) -> Form:
    """`-x` and `abs(x)` of a whole number: the least one has no opposite."""
    kind = types[0] if len(types) == 1 and operation.operands[0].literal is None else None
    if kind not in WHOLE:
        return AS_IT_IS
    return Form(_narrowed(operation, f"{operation.name}(CAST({{0}} AS {_wider(kind)}))", kind))


def _narrowed(operation: Operation, text: str, kind: str) -> str:
    """A number in its own type; a bare CAST beside `<` and the like Sail would leave out."""
    narrow = f"CAST({text} AS {kind.upper()})"
    return f"({narrow} + CAST(0 AS {kind.upper()}))" if operation.type_is_given else narrow


def _wider(kind: str) -> str:
    return "DECIMAL(20, 0)" if kind == "bigint" else "BIGINT"


def _summed(operation: Operation, types: Types) -> Form:
    """A sum of BIGINT in a wider type, whose cast fails where it overflows."""
    if [*types] != ["bigint"]:
        return _compared(operation, types) if operation.is_distinct else AS_IT_IS
    distinct = "DISTINCT " if operation.is_distinct else ""
    return Form(f"CAST(sum({distinct}CAST({{0}} AS DECIMAL(38, 0))){{filtered}} AS BIGINT)")


def _compared(operation: Operation, types: Types) -> Form:
    """Floating-point numbers with one zero and one NaN, which Sail compares by their bits."""
    return _with(operation, types, lambda text, to: f"({text}) + CAST(0 AS {to})")


def _beside(operation: Operation, types: Types) -> Form:
    """Values that are compared; a text beside a DATE is one, as Spark casts it, not two texts."""
    are_texts = operation.name == "between" and types[0] == "string" and "string" in types[1:]
    if {*types} - {"void"} == {"date", "string"} and not are_texts:
        return read_of_texts(operation, types, [DATE] * len(types))
    return _compared(operation, types)


def _ordered(operation: Operation, types: Types) -> Form:
    """Floating-point numbers with one NaN, the largest number; -0.0 stays as it is."""
    return _with(operation, types, lambda text, to: text)


def _with(operation: Operation, types: Types, zero: Callable[[str, str], str]) -> Form:
    """Operands with one NaN; `zero`: writes a number, given its type, with its zeros."""

    def form(text: str, kind: str | None) -> str:
        if kind in FLOATS:
            return f"nanvl({zero(text, kind.upper())}, CAST('NaN' AS {kind.upper()}))"
        element = (kind or "").removeprefix("array<").removesuffix(">")
        return f"transform({text}, _v -> {form('_v', element)})" if element in FLOATS else text

    forms = [
        "{0}" if NUMBER.fullmatch(one.text or "") else form("{0}", kind)
        for one, kind in zip(operation.operands, types, strict=True)
    ]
    return AS_IT_IS if {*forms} <= {"{0}"} else Form(operands=tuple(forms))


def _unless_equal(operation: Operation, types: Types) -> Form:
    """nullif, whose first operand is compared, and is the result as it is, of its own type."""
    forms = _beside(operation, types).operands if len(types) == 2 else ()
    if not forms and len({*types}) == 2 and {*types} <= {*WHOLE}:
        forms = ("{0}", "{0}")
    if not forms:
        return AS_IT_IS
    one, other = forms[0], forms[1].replace("{0}", "{1}")
    return Form(f"CASE WHEN {one} = {other} THEN NULL ELSE {{0}} END")


def _overlapping(operation: Operation, types: Types) -> Form:
    """arrays_overlap, of which Sail makes null for an empty array beside one with a null."""
    if len(types) != 2:
        return AS_IT_IS
    one, other = _compared(operation, types).operands or ("{0}", "{0}")
    other = other.replace("{0}", "{1}")
    is_empty = "size({0}) = 0 AND ({1}) IS NOT NULL OR size({1}) = 0 AND ({0}) IS NOT NULL"
    return Form(f"CASE WHEN {is_empty} THEN false ELSE arrays_overlap({one}, {other}) END")


def _by(operation: Operation, types: Types) -> Form:
    """max_by and min_by, whose second operand is compared."""
    forms = _compared(operation, types).operands
    return Form(operands=("{0}", *forms[1:])) if forms[1:2] != ("{0}",) and forms else AS_IT_IS


def _finite(operation: Operation, types: Types) -> Form:
    """An aggregate of floating-point numbers that fails at a NaN and at an infinite number.

    Sail has neither the least of numbers with a NaN nor that of infinite ones.
    """
    if not types or types[0] not in FLOATS:
        return AS_IT_IS
    return first_as(checked(f"abs({{0}}) <= {_MOST}", f"{operation.name}() of it"), types)


def _rounded(operation: Operation, types: Types) -> Form:
    """A number rounded by its decimal digits: 1.005 is half of two hundredths, and -0.4 gives 0."""
    kind = types[0] if types else None
    kind = "double" if kind == "string" else kind
    if kind not in FLOATS:
        return AS_IT_IS
    digits = operation.operands[1].literal or "" if len(types) == 2 else "0"
    to = kind.upper()
    if not _DIGITS.fullmatch(digits) or not 0 < int(digits) <= _MOST_DIGITS:
        rounded = "round({0}, {1})" if len(types) == 2 else "round({0})"
        return Form(f"({rounded} + CAST(0 AS {to}))")
    return Form(f"CAST({_to_digits(int(digits))} AS {to})")


def chosen(types: Types) -> Form:
    """A CASE of BOOLEAN as one of numbers, whose branches Sail computes for their rows alone.

    Args:
        types: of its branches.
    """
    if "boolean" not in types or not {*types} <= {"boolean", "void"}:
        return AS_IT_IS
    return Form(operands=("CAST({0} AS INT)",) * len(types), around="CAST({0} AS BOOLEAN)")


def _cast(operation: Operation, types: Types) -> Form:
    kind, to = types[0] if types else None, operation.to or ""
    if kind == "timestamp" and to in WHOLE:
        return Form(f"{operation.name}({_SECONDS} AS {to.upper()})")
    if kind == "bigint" and to == "timestamp":
        return Form(f"CASE {_OUT_OF_RANGE} ELSE {operation.name}({{0}} AS TIMESTAMP) END")
    if (
        kind in {*WHOLE, *FLOATS, "date"} or is_decimal(kind)
    ) and to == "timestamp":  # timestamp(x) is another one
        return Form(f"{operation.name}({{0}} AS TIMESTAMP)")
    if kind in FLOATS and (found := _DECIMAL.fullmatch(to)):
        return Form(_decimal(operation.name, to, int(found[1] or 10), int(found[2] or 0)))
    if kind == "string" and to == "date":
        return read_of_texts(operation, types, [DAY])
    return AS_IT_IS


def _of_seconds(operation: Operation, types: Types) -> Form:
    """`to_timestamp(x)` of a number of seconds, of which Sail makes microseconds."""
    if len(types) > 1:  # with a format of a text
        return AS_IT_IS
    return _cast(replace(operation, name="cast", to="timestamp"), types)


def _decimal(cast: str, to: str, precision: int, digits: int) -> str:
    """A number as a DECIMAL by its decimal digits; Spark has none for NaN and infinity.

    From 1e16 on Sail writes a number with an exponent, which it cannot cast.
    """
    if digits <= _MOST_DIGITS:
        least = f"WHEN {_is_exact(digits)} THEN {cast}({_exactly(digits)} AS {to})"
    else:  # its own rounding differs at halves alone
        least = f"WHEN abs({_DOUBLE}) < 1e-4D THEN {cast}({_DOUBLE} AS {to})"
    by_text = f"WHEN abs({_DOUBLE}) < 1e16D THEN {cast}(CAST({_DOUBLE} AS STRING) AS {to})"
    fails = ""
    if precision - digits > 16:
        message = f"raise_error('{NOT_ON_SAIL}{to.upper()} of it')"
        fails = f"WHEN abs({_DOUBLE}) < 1e{precision - digits}D THEN {message} "
    too_large = f"{fails}WHEN abs({_DOUBLE}) <= {_MOST} THEN {cast}({_DOUBLE} AS {to})"
    return f"CASE {least} {by_text} {too_large} END"


def _to_digits(digits: int) -> str:
    """A number rounded to some decimal digits; by its text where a step is not exact.

    From 1e16 on each number is whole.
    """
    by_text = f"CAST(CAST({_DOUBLE} AS STRING) AS DECIMAL(38, {digits}))"
    return (
        f"CASE WHEN {_is_exact(digits)} THEN {_exactly(digits)} "
        f"WHEN abs({_DOUBLE}) < 1e16D THEN CAST(CAST({by_text} AS STRING) AS DOUBLE) "
        f"ELSE {_DOUBLE} END"
    )


def _is_exact(digits: int) -> str:
    """Whether `_exactly` rounds a number: beyond 14 digits it may be the half of two steps."""
    return f"abs({_DOUBLE}) * 1{'0' * digits}D < 100000000000000D"


def _exactly(digits: int) -> str:
    """A number rounded by its decimal digits, halves up.

    The quotient is the number next to the half of two steps, so that it is the number itself
    exactly if its shortest decimal digits end there.
    """
    scale = f"1{'0' * digits}D"
    below = f"floor(abs({_DOUBLE}) * {scale})"
    up = f"CAST(({below} + 0.5D) / {scale} <= abs({_DOUBLE}) AS INT)"
    sign = f"CASE WHEN {_DOUBLE} < 0 THEN -1D ELSE 1D END"
    return f"{sign} * (({below} + {up}) / {scale}) + 0D"


def _since_1970(operation: Operation, types: Types) -> Form:
    """The whole units since 1970 of a time, rounded down before 1970, too."""
    return Form({"unix_millis": _MILLIS, "unix_seconds": _SECONDS}[operation.name])


def _matched(operation: Operation, types: Types) -> Form:
    """A regular expression in the dialect of Rust."""
    literal = operation.operands[1].literal if len(types) > 1 else None
    pattern = None if literal is None else unescaped(literal)
    if pattern is None or as_rust(pattern) == pattern or REGULAR[operation.name](operation):
        return AS_IT_IS  # the last ones are refused
    written = as_rust(pattern).replace("\\", "\\\\").replace("'", "\\'")
    in_a_form = written.replace("{", "{{").replace("}", "}}")
    return Form(operands=("{0}", f"'{in_a_form}'", *("{0}" for _ in types[2:])))


RULES: dict[str, Callable[[Operation, Types], Form]] = {
    **dict.fromkeys(("+", "-", "*"), _checked),
    **dict.fromkeys(("abs", "negative"), _of_one),
    "sum": _summed,
    **dict.fromkeys(("max", "median", "min", "percentile"), _finite),
    **dict.fromkeys(("cast", "try_cast"), _cast),
    "round": _rounded,
    **dict.fromkeys(("to_timestamp", "to_timestamp_ltz", "try_to_timestamp"), _of_seconds),
    **dict.fromkeys(("unix_millis", "unix_seconds"), _since_1970),
    **dict.fromkeys(REGULAR, _matched),
    **dict.fromkeys((*COMPARISONS, "equal_null"), _beside),
    **dict.fromkeys(
        (
            *("mode", "array_distinct", "array_except", "array_intersect", "array_position"),
            *("array_remove", "array_union", "collect_set"),
        ),
        _compared,
    ),
    **dict.fromkeys(
        ("array_max", "array_min", "array_sort", "greatest", "least", "sort_array"), _ordered
    ),
    "arrays_overlap": _overlapping,
    "nullif": _unless_equal,
    **dict.fromkeys(("max_by", "min_by"), _by),
    **FORMS,
    **FORMS_OF_TIMES,
}
"""The rules by the names of operations, as in `Operation`."""
OF_WHOLE_NUMBERS = {"+", "-", "*", "abs", "negative"}
"""Operations that are written with casts if their operands are whole numbers."""


def may_differ(operation: Operation) -> bool:
    """Whether an operation may have another form, by its types."""
    return operation.name in RULES or operation.is_distinct


def form_of(operation: Operation, types: Types) -> Form:
    """The form in which Sail gives Spark's result of an operation."""
    return RULES.get(operation.name, _compared)(operation, types) if types else AS_IT_IS
