"""The types of columns with texts, as in CSV: the narrowest type that fits all values."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_LADDER = (pa.int64(), pa.float64(), pa.bool_(), pa.string())
"""The types in order; a column gets the first type that fits all its values."""
_CODE = r"^[+-]?0[0-9]"
"""Matches a code with leading zeros, which would be lost in a number."""


class Types:
    """The types of columns, determined block by block."""

    def __init__(self) -> None:
        """Start without columns."""
        self._steps: dict[str, int] = {}
        self._given: dict[str, pa.DataType] = {}
        self._seen: set[str] = set()

    def see(self, rows: pa.Table) -> None:
        """Add the values of a block."""
        for field in rows.schema:
            if field.type != pa.string():
                self._see_typed(field)
                continue
            column, step = rows.column(field.name), self._steps.get(field.name, 0)
            while step < len(_LADDER) - 1 and not _fits(column, _LADDER[step]):
                step += 1
            self._steps[field.name] = step
            if column.null_count < len(column):
                self._seen.add(field.name)

    def _see_typed(self, field: pa.Field) -> None:
        """Combine a file's type with the type of earlier files."""
        before = self._given.setdefault(field.name, field.type)
        if before != field.type:
            numbers = all(
                pa.types.is_integer(one) or pa.types.is_floating(one)
                for one in (before, field.type)
            )
            floating = any(pa.types.is_floating(one) for one in (before, field.type))
            both = (pa.float64() if floating else pa.int64()) if numbers else pa.string()
            self._given[field.name] = both

    @property
    def schema(self) -> pa.Schema:
        """The columns with the types that fit all their values; text for a column of nulls."""
        names = dict.fromkeys([*self._steps, *self._given])
        return pa.schema([pa.field(name, self._type(name)) for name in names])

    def _type(self, name: str) -> pa.DataType:
        if name not in self._steps:
            return self._given[name]
        if name in self._given:
            return self._given[name] if name not in self._seen else pa.string()
        return _LADDER[self._steps[name]] if name in self._seen else pa.string()


def as_typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows cast to a schema; a missing column is null."""
    return pa.table([_column(rows, field) for field in schema], schema=schema)


def as_one(blocks: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Several blocks as one table with a schema."""
    found = [as_typed(block, schema) for block in blocks]
    return pa.concat_tables(found) if found else schema.empty_table()


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
    return rows.column(field.name).cast(field.type)


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    if not pa.types.is_boolean(kind):
        codes = pc.match_substring_regex(column, _CODE)
        if pc.any(codes).as_py():
            return False
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
