"""`max_by` and `min_by` whose result does not depend on the order of records with equal keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strandline.sql.column_types import is_nested
from strandline.sql.comparable import comparable
from strandline.sql.operations import Operation, Place
from strandline.sql.parsing import sql_of
from strandline.sql.rewriting import Rule, TypeOf, Types, put, rewritten

_FIELD = re.compile(r"([^:,<>`]+):([a-z_]+(?:\(\d+,\d+\))?)")


def with_decided_ties(text: str, type_of: TypeOf) -> str:
    """An expression in which `max_by` and `min_by` compare the values where their keys are equal.

    Example:
        `max_by(x, y)` is the largest `x` of the largest `y`.
    """
    return rewritten(text, type_of, decided_ties)


def decided_ties(operation: Operation) -> Iterator[Rule]:
    """The rule for `max_by` and `min_by`."""
    if operation.name in {"max_by", "min_by"} and len(operation.operands) == 2:
        yield _decide


def _decide(place: Place, types: Types) -> bool:
    value, key = (sql_of(node) for node in place.operands)
    by_value, by_key = parts_of(value, types[0]), parts_of(key, types[1])
    if by_value is None or types[1] is None:
        return False
    parts = ", ".join([*(by_key or [key]), *by_value])
    put(place.operands[1], f"CASE WHEN {key} IS NOT NULL THEN struct({parts}) END")
    return True


def parts_of(text: str, kind: str | None) -> list[str] | None:
    """The values by which a value is ordered as on Spark, nulls first; None: it is not known how.

    Args:
        text: the value in SQL.
        kind: its type, by its name in Spark SQL: a plain one, or a struct of plain fields.
    """
    if kind is None or "void" in kind or kind.startswith(("variant", "interval")):
        return None
    if not is_nested(kind):
        return [f"{text} IS NOT NULL", comparable(text, kind) or text]
    if not kind.startswith("struct<"):
        return None
    inside = kind.removeprefix("struct<").removesuffix(">")
    fields = _FIELD.findall(inside)
    if ",".join(f"{name}:{of}" for name, of in fields) != inside:
        return None
    parts = (parts_of(f"({text}).`{name}`", of) for name, of in fields)
    return [f"{text} IS NOT NULL", *(one for part in parts if part for one in part)]
