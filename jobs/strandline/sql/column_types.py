"""The columns of a table by its Delta schema, and the types that an expression may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any, Literal

from strandline.sql.calls import Path

ColumnType = str | Mapping[str, Any] | None
"""A type as in the JSON of a Delta or Spark schema (`long`, a map with `fields`); None: unknown."""
Columns = Mapping[str, ColumnType]
"""The columns of a table by their names."""
Wanted = Literal["time", "date", "condition", "sequence", "gap", "number", "any"]
"""The required kind of value of an expression over a record."""
Problem = tuple[str, str]
"""A problem and the way out."""
ON_SPARK = "give --engine spark"
"""The way out of an expression that Sail cannot compute."""
NOT_ON_SAIL = "Sail has no "
"""In the message for a value of which Sail has another result: `of it` for a number too large."""

_OF_SPARK = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestampNtz": "timestamp_ntz",
}
"""The names in Spark SQL of types that have another name in a schema."""
WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The types of whole numbers, with the digits of the DECIMAL to which each is widened."""
FLOATS = {"float", "double"}
"""The types of floating-point numbers."""
NUMBER = re.compile(
    r"(?:\d+(?:\.\d*)?|\.\d+)(?:E[-+]?\d+)?(?:L|S|Y|D|F|BD)?", re.IGNORECASE | re.ASCII
)
"""Matches the numbers of Spark SQL without a sign; other names may begin with a digit: `1st`."""
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_HELD = re.compile(r"(?:^|[<:,])([\w ]+)(?=[,>(]|$)")
"""Matches the types inside of another one, without their digits, and no names of fields."""
_TIMES = ("string", "timestamp", "timestamp_ntz", "date")


def columns_of(schema: Mapping[str, Any]) -> dict[str, ColumnType]:
    """The columns of a schema, given as its JSON."""
    return {field["name"]: field["type"] for field in schema["fields"]}


def sql_name(kind: ColumnType) -> str | None:
    """The type's name in Spark SQL; None if it is unknown."""
    if kind is None or isinstance(kind, str):
        return None if kind is None else _OF_SPARK.get(kind, kind)
    return str(kind["type"])  # a struct, an array, a map: what is inside matters to nobody here


def is_decimal(kind: str | None) -> bool:
    """Whether a type, by its name in Spark SQL, is a DECIMAL."""
    return (kind or "").startswith("decimal(")


def is_nested(kind: str | None) -> bool:
    """Whether a type, by its name in Spark SQL, holds values of other types."""
    return (kind or "").startswith(("array<", "struct<", "map<"))


def are_alike(kinds: Iterable[str | None]) -> bool:
    """Whether types hold types of one class at each place: one of times, or of binary numbers.

    Unknown types, and the type of NULL, are like any other. DECIMAL is only like DECIMAL.

    Example:
        `array<int>`, `array<double>` are alike, and an element `int`, too; `array<date>` is not.
    """
    of_kinds = (map(_class_of, _HELD.findall(kind or "void")) for kind in kinds)
    return all(len({*at_place} - {None, "void"}) <= 1 for at_place in zip_longest(*of_kinds))


def _class_of(kind: str) -> str:
    if kind in WHOLE or kind in FLOATS:
        return "number"
    return "time" if kind in {"date", "timestamp", "timestamp_ntz"} else kind


def key_of(kind: str | None) -> str | None:
    """The type of the keys of a map, by its name in Spark SQL; None: it is no map."""
    inside, depth = (kind or "").removeprefix("map<"), 0
    for at, sign in enumerate(inside if inside != kind else ""):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            return inside[:at]
    return None


def digits_of(kind: str | None) -> tuple[int, int]:
    """The digits of a number's type, and how many of them follow the point."""
    found = _DECIMAL.fullmatch(kind or "")
    return (int(found[1]), int(found[2])) if found else (WHOLE.get(kind or "", 38), 0)


def misfit(wanted: Wanted, text: str, kind: str) -> Problem | None:
    """The problem of an expression with a type that is not allowed; None if the type is allowed.

    Args:
        wanted: the required kind of value.
        text: the expression.
        kind: the expression's type, by its name in Spark SQL.
    """
    fits, problem, way_out = _RULES[wanted]
    if fits(kind):
        return None
    return problem.format(text=repr(text), kind=kind, KIND=kind.upper()), way_out.format(text=text)


def _is_whole(kind: str) -> bool:
    return kind in WHOLE or (kind.startswith("decimal(") and kind.replace(" ", "").endswith(",0)"))


def _is_number(kind: str) -> bool:
    return kind in {*WHOLE, "float", "double"} or kind.startswith("decimal")


_RULES: dict[Wanted, tuple[Callable[[str], bool], str, str]] = {
    "time": (
        _TIMES.__contains__,
        "{text} is {KIND}, which is not a time",
        "give an expression such as timestamp_millis({text})",
    ),
    "date": (_TIMES.__contains__, "is {KIND}", "give a date column"),
    "condition": ("boolean".__eq__, "gives {kind}", "give a boolean expression"),
    "sequence": (_is_whole, "is {KIND}", "give a whole number, cast to BIGINT"),
    "gap": (_is_whole, "is {KIND}", "give a whole number of milliseconds"),
    "number": (_is_number, "is {KIND}", "give a number"),
    "any": (lambda kind: True, "", ""),
}


def column_named(name: str, columns: Iterable[str]) -> str | None:
    """The column with a name, compared without case as Spark does; None if there is none."""
    return next((own for own in columns if own.lower() == name.lower()), None)


def type_at(path: Path, columns: Columns) -> ColumnType:
    """The type of a column or of a field inside it; None if it is unknown or missing."""
    own = column_named(path[0], columns)
    kind = None if own is None else columns[own]
    for name in path[1:]:
        kind = _inside(kind, name)
    return kind


def missing(path: Path, columns: Columns) -> Problem | None:
    """The problem of a missing column or field; None if it exists."""
    own = column_named(path[0], columns)
    if own is None:
        return f"there is no column {path[0]}", _perhaps(path[0], columns, "columns")
    kind, inside = columns[own], own
    for name in path[1:]:
        fields = _fields(kind)
        if fields is None:
            return None
        if column_named(name, fields) is None:
            return f"{inside} is {_in_words(kind)} and has no field {name}", _perhaps(
                name, fields, "fields"
            )
        kind, inside = _inside(kind, name), f"{inside}.{name}"
    return None


def _fields(kind: ColumnType) -> Columns | None:
    """The fields of a struct, or of an array's elements; None if they are not known."""
    if kind is None:
        return None
    if isinstance(kind, str):
        return None if kind == "variant" else {}
    if kind["type"] == "array":
        return _fields(kind["elementType"])
    return None if kind["type"] != "struct" else columns_of(kind)


def _inside(kind: ColumnType, name: str) -> ColumnType:
    """The type of a field; None if it is unknown, as inside arrays and maps."""
    if kind is None or isinstance(kind, str) or kind["type"] != "struct":
        return None
    fields = columns_of(kind)
    own = column_named(name, fields)
    return None if own is None else fields[own]


def _perhaps(name: str, columns: Columns, what: str) -> str:
    """A hint with similar names and all existing names."""
    by_lower = {own.lower(): own for own in columns}
    near = [by_lower[one] for one in get_close_matches(name.lower(), by_lower)]
    known = f"its {what} are {', '.join(columns)}" if columns else f"it has no {what}"
    return f"perhaps {' or '.join(near)}; {known}" if near else known


def _in_words(kind: ColumnType) -> str:
    return str(sql_name(kind)).upper()
