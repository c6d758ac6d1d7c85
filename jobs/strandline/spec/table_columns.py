"""Columns of landing tables that no pipeline can read, by their names and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strandline.errors import InputError
from strandline.spec.pipeline import OWN_PREFIX, PipelineSpec
from strandline.spec.used_expressions import uses_of
from strandline.sql.calls import NotUnderstood, read_sql
from strandline.sql.column_types import Columns, ColumnType, sql_name
from strandline.tables import INPUT

Tables = Mapping[str, Columns | None]
"""The columns of a pipeline's tables by `Use.table`; None: unknown, and no column is missing."""


def wrong_columns(spec: PipelineSpec, tables: Tables, origin: str) -> Iterator[InputError]:
    """The columns of the landing tables that have to be renamed or cast, each with its place.

    Args:
        spec: the pipeline.
        tables: the columns of its tables.
        origin: the first part of each place: the file, or the pipeline's name.
    """
    for side in spec.sides:
        place = f"{origin}: sources.{side}.table" if side else f"{origin}: source.table"
        for name in tables.get(side) or ():
            if name.lower().startswith(OWN_PREFIX):
                yield InputError(
                    place, f"its column {name!r} has a reserved name", "rename it there"
                )
            if side and name.lower() == INPUT:
                problem = f"its column {name} has the name of a column that Strandline adds"
                yield InputError(place, problem, "rename it there")
    if spec.has_two_sources:
        left, right = tables.get("left") or {}, tables.get("right") or {}
        yield from _not_alike(spec, left, right, f"{origin}: sources.right.table")


def _not_alike(
    spec: PipelineSpec, left: Columns, right: Columns, place: str
) -> Iterator[InputError]:
    """The right columns with a left column's name in another case, or of another type.

    Two types matter only where the pipeline reads both columns as one. Of types with types inside
    only the engine knows whether they are equal.
    """
    of_left = {name.lower(): name for name in left}
    for name, kind in right.items():
        other = of_left.get(name.lower())
        if other is None or name.lower() == INPUT:
            continue
        here, there = _as_named(name, kind), _as_named(other, left[other])
        are_plain = isinstance(kind, str) and isinstance(left[other], str)
        differs = are_plain and here != there
        if name != other or (differs and reads_of_both(spec, name.lower())):
            yield columns_differ(place, here, there)


def columns_differ(place: str, right: str, left: str) -> InputError:
    """The error of two columns that cannot be one column; both as `amount (bigint)`."""
    problem = f"its column {right} differs from {left} of the left source in case or type"
    return InputError(place, problem, "give both one name and type, or two names")


def reads_of_both(spec: PipelineSpec, name: str) -> bool:
    """Whether an expression or the function reads a column of both inputs; `name` in lower case."""
    if spec.process is not None:
        return True
    for use in uses_of(spec):
        sql = read_sql(use.text) if use.table == "both" else None
        if isinstance(sql, NotUnderstood) or (sql is not None and sql.reads_all):
            return True
        if sql is not None and any(one.path[0].lower() == name for one in sql.reads):
            return True
    return False


def _as_named(name: str, kind: ColumnType) -> str:
    """A column as messages name it, such as `amount (bigint)`."""
    return f"{name} ({sql_name(kind)})"
