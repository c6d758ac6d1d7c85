"""The forms of functions that Sail has for some types only, or under another name.

Each rule takes an operation with the types of its operands, as far as the engine knows them.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.sql.column_types import FLOATS, NOT_ON_SAIL, WHOLE, is_decimal
from strandline.sql.differences import AS_IT_IS, Form, Table, Types, checked, first_as
from strandline.sql.operations import Operation

_SIGNS = {"try_add": "+", "try_subtract": "-", "try_multiply": "*"}
_REST = "({0}) % ({1})"


def widest(types: Types) -> str | None:
    """The common type of results that are of one type, or whole numbers; None: Sail has none."""
    kinds = {kind for kind in types if kind != "void"}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and kinds <= {*WHOLE}:
        return max((str(kind) for kind in kinds), key=[*WHOLE].index)
    return None


def _unless_null(operation: Operation, types: Types) -> Form:
    """nvl2, which Sail has only where all three types are one."""
    kind = widest(types[1:]) if len(types) == 3 else None
    if kind is None:
        return AS_IT_IS
    is_boolean = kind == "boolean"  # Sail computes its branches for every row; see `chosen`
    one, other = (_as("int" if is_boolean else kind, place, types) for place in (1, 2))
    case = f"CASE WHEN ({{0}}) IS NOT NULL THEN {one} ELSE {other} END"
    return Form(f"CAST({case} AS BOOLEAN)" if is_boolean else case)


def is_decoded(types: Types) -> bool:
    """Whether decode(x, value, result, …) can be a CASE: of texts, and no number is floating."""
    compared = widest([types[0], *types[1 : len(types) - 1 : 2]])
    results = {*types[2::2], *([] if len(types) % 2 else [types[-1]])}
    return compared is not None and compared not in FLOATS and results <= {"string", "void"}


def _decoded(operation: Operation, types: Types) -> Form:
    """decode(x, value, result, …, otherwise), in which null is equal to null."""
    if len(types) < 3 or not is_decoded(types):
        return AS_IT_IS
    places = range(1, len(types) - 1, 2)
    cases = (f"WHEN ({{0}}) <=> ({{{at}}}) THEN {{{at + 1}}}" for at in places)
    otherwise = "" if len(types) % 2 else f"ELSE {{{len(types) - 1}}} "
    return Form(f"CASE {' '.join(cases)} {otherwise}END")


def _as(kind: str, place: int, types: Types) -> str:
    return f"{{{place}}}" if types[place] == kind else f"CAST({{{place}}} AS {kind.upper()})"


def are_tried(name: str, types: Types) -> bool:
    """Whether Sail has the `try_…` form of an operator for two types, or it can be written."""
    if not {*types} <= {*WHOLE, *FLOATS}:
        return False
    if name == "try_mod":
        return [*types] in (["int", "int"], ["bigint", "bigint"], ["double", "double"])
    return (
        "float" not in types or name == "try_divide" or {*types} in ({"float"}, {"float", "double"})
    )


def _tried(operation: Operation, types: Types) -> Form:
    """`try_add(x, y)` and the like, in the common type of both."""
    if len(types) != 2 or not are_tried(operation.name, types):
        return AS_IT_IS
    sign = _SIGNS[operation.name]
    if {*types} & FLOATS:
        one, other = ("({0})", "({1})") if types[0] == types[1] else map(_double, (0, 1))
        return Form(f"({one} {sign} {other})")
    if types[0] == types[1] and types[0] in {"int", "bigint"}:
        return AS_IT_IS
    kind = str(widest(types))
    wide = "DECIMAL(20, 0)" if kind == "bigint" else "BIGINT"
    both = (f"CAST({{{place}}} AS {wide})" for place in (0, 1))
    return Form(f"TRY_CAST({f' {sign} '.join(both)} AS {kind.upper()})")


def _part_of_text(operation: Operation, types: Types) -> Form:
    """`substr(s, n)`, which is null where n is; Sail begins at the first character."""
    text = _text_of(types[0])
    if len(types) != 2 or operation.operands[1].literal is not None:
        return _of_text(text, types)
    return Form(f"CASE WHEN ({{1}}) IS NOT NULL THEN {operation.name}({text}, {{1}}) END")


def _of_length(operation: Operation, types: Types) -> Form:
    """`left(s, n)`, `lpad(s, n)` and the like, which are empty where n is negative."""
    literal = operation.operands[1].literal if len(types) > 1 else ""
    text = _text_of(types[0])
    if literal is not None and not literal.startswith("-"):
        return _of_text(text, types)
    length = "CASE WHEN ({0}) < 0 THEN 0 ELSE {0} END"
    return Form(operands=(text, length, *("{0}" for _ in types[2:])))


def _text_of(kind: str | None) -> str:
    """The form of an operand whose text is taken; Sail writes a time with `T` and `Z`."""
    return "CAST({0} AS STRING)" if (kind or "").startswith("timestamp") else "{0}"


def _of_text(text: str, types: Types) -> Form:
    """A function whose first operand has another form."""
    return AS_IT_IS if text == "{0}" else first_as(text, types)


def _of_texts(operation: Operation, types: Types) -> Form:
    """Functions of texts that Sail does not have for other values."""
    texts = types[:1] if operation.name == "repeat" else types
    forms = ["CAST({0} AS STRING)" if _is_plain(kind) else "{0}" for kind in texts]
    if {*forms} <= {"{0}"}:
        return AS_IT_IS
    return Form(operands=(*forms, *("{0}" for _ in types[len(forms) :])))


def _of_one_object(operation: Operation, types: Types) -> Form:
    """`from_json(s, …)` that fails at an object that is malformed, or has text behind it.

    Of it Spark gives the fields that it can read, and Sail none; of no text Spark gives null.
    """
    trimmed = r"btrim({0}, ' \t\r\n')"
    is_one = f"coalesce(get_json_object({{0}}, '$') = {trimmed}, false)"
    problem = f"{NOT_ON_SAIL}from_json() of JSON that is malformed or has text behind it"
    fails = f"WHEN {trimmed} LIKE '{{{{%' AND NOT {is_one} THEN raise_error('{problem}')"
    return first_as(f"CASE {fails} WHEN {trimmed} <> '' THEN {{0}} END", types)


def _is_plain(kind: str | None) -> bool:
    return kind in {*WHOLE, "boolean", "date"} or is_decimal(kind)


def _double(place: int) -> str:
    return f"CAST({{{place}}} AS DOUBLE)"


_TABLE = Table[Form](
    ("log", lambda o, t: len(t) == 1, Form("ln({0})")),
    ("log", lambda o, t: len(t) == 2, Form("CASE WHEN ({0}) > 0 THEN log({0}, {1}) END")),
    # a number without a sign, as Sail counts
    ("regr_count", lambda o, t: len(t) == 2 and not o.is_distinct,
        Form("CAST(regr_count({0}, {1}){filtered} AS BIGINT)")),
    # null where it is none or no BIGINT; there Sail fails
    ("factorial", lambda o, t: True,
        Form("CASE WHEN ({0}) BETWEEN 0 AND 20 THEN factorial(CAST({0} AS INT)) END")),
    ("ifnull nvl", lambda o, t: len(t) == 2 and t[0] == t[1] is not None,
        Form("coalesce({0}, {1})")),
    # at least an INT
    ("zeroifnull", lambda o, t: "bigint" in t,
        Form("coalesce(CAST({0} AS BIGINT), CAST(0 AS BIGINT))")),
    ("zeroifnull", lambda o, t: {*t} <= {*WHOLE},
        Form("coalesce(CAST({0} AS INT), CAST(0 AS INT))")),
    # -0.0 is another number for Sail
    ("nullifzero", lambda o, t: {*t} <= FLOATS,
        Form("CASE WHEN ({0}) + CAST(0 AS DOUBLE) = 0D THEN NULL ELSE {0} END")),
    # null where y is 0 or -0.0
    ("try_divide",
        lambda o, t: len(t) == 2 and are_tried(o.name, t) and not {*t} <= {"int", "bigint"},
        Form(f"({_double(0)} / nullif({_double(1)} + 0D, 0D))")),
    ("try_mod", lambda o, t: are_tried(o.name, t) and bool({*t} & FLOATS),
        Form(f"({_double(0)} % nullif({_double(1)} + 0D, 0D))")),
    # NaN on Sail where y is 0; % fails there
    ("pmod", lambda o, t: len(t) == 2 and bool({*t} & FLOATS),
        Form(f"CASE WHEN {_REST} < 0 THEN ({_REST} + ({{1}})) % ({{1}}) ELSE {_REST} END")),
    # from the end on Sail
    ("get", lambda o, t: not (o.written(1) or "-").isdecimal(),
        Form(operands=("{0}", "CASE WHEN ({0}) >= 0 THEN {0} END"))),
    # in lines of 76 characters
    ("base64", lambda o, t: True, Form(
        around=r"btrim(regexp_replace({0}, '(.{{76}})(\r\n)?', '$1\r\n'), '\r\n')")),
    ("~", lambda o, t: t[0] == "tinyint", Form("CAST(-1 - CAST({0} AS INT) AS TINYINT)")),
    ("~", lambda o, t: t[0] == "smallint", Form("CAST(-1 - CAST({0} AS INT) AS SMALLINT)")),
    ("date_trunc", lambda o, t: [*t[1:]] == ["date"],
        Form(operands=("{0}", "CAST({0} AS TIMESTAMP)"))),
    # from 0 again after 255
    ("char chr", lambda o, t: not (o.written(0) or "-").isdecimal() or len(str(o.written(0))) > 2,
        Form(operands=("CASE WHEN ({0}) > 255 THEN ({0}) % 256 ELSE {0} END",))),
    # digits of other scripts, which Spark reads
    ("try_to_number", lambda o, t: True, Form(operands=(
        checked(r"NOT {0} RLIKE '[\\p{{Nd}}&&[^0-9]]'", "try_to_number() of such digits"), "{0}"))),
)  # fmt: skip
"""The operations, which of their calls, and their forms."""


def _by_table(operation: Operation, types: Types) -> Form:
    row = _TABLE.row(operation, types)
    return AS_IT_IS if row is None else row[0]


FORMS: dict[str, Callable[[Operation, Types], Form]] = {
    **dict.fromkeys(_TABLE.names, _by_table),
    "nvl2": _unless_null,
    "decode": _decoded,
    **dict.fromkeys(_SIGNS, _tried),
    "substring": _part_of_text,
    **dict.fromkeys(("left", "lpad", "right", "rpad"), _of_length),
    **dict.fromkeys(("btrim", "ltrim", "repeat", "replace", "reverse", "rtrim", "trim"), _of_texts),
    "from_json": _of_one_object,
}
"""The rules by the names of functions."""
