"""The types of columns with texts, as in CSV: the narrowest type that fits all values."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_LADDER = (pa.int64(), pa.float64(), pa.bool_(), pa.string())
"""The types in order; a column gets the first type that fits all its values."""
_CODE = r"^[+-]?0[0-9]"
"""Matches a code with leading zeros, which would be lost in a number."""


class TypeInference:
    """The types of columns, determined block by block."""

    def __init__(self) -> None:
        """Start without columns."""
        self._ladder_steps: dict[str, int] = {}  # of text columns: the place in _LADDER
        self._file_types: dict[str, pa.DataType] = {}  # of columns that a file gives a type
        self._has_values: set[str] = set()  # the text columns with a value that is not null

    def add(self, rows: pa.Table) -> None:
        """Add the values of a block."""
        for field in rows.schema:
            if field.type != pa.string():
                self._add_typed(field)
                continue
            column, step = rows.column(field.name), self._ladder_steps.get(field.name, 0)
            while step < len(_LADDER) - 1 and not _fits(column, _LADDER[step]):
                step += 1
            self._ladder_steps[field.name] = step
            if column.null_count < len(column):
                self._has_values.add(field.name)

    def _add_typed(self, field: pa.Field) -> None:
        """Combine a file's type with the type of earlier files."""
        before = self._file_types.setdefault(field.name, field.type)
        if before != field.type:
            numbers = all(
                pa.types.is_integer(one) or pa.types.is_floating(one)
                for one in (before, field.type)
            )
            floating = any(pa.types.is_floating(one) for one in (before, field.type))
            both = (pa.float64() if floating else pa.int64()) if numbers else pa.string()
            self._file_types[field.name] = both

    @property
    def schema(self) -> pa.Schema:
        """The columns with the types that fit all their values; text for a column of nulls."""
        names = dict.fromkeys([*self._ladder_steps, *self._file_types])
        return pa.schema([pa.field(name, self._type(name)) for name in names])

    def _type(self, name: str) -> pa.DataType:
        """The type of a column; text if it has values as text in one file and a type in another."""
        if name not in self._ladder_steps:
            return self._file_types[name]
        if name in self._file_types:
            return self._file_types[name] if name not in self._has_values else pa.string()
        return _LADDER[self._ladder_steps[name]] if name in self._has_values else pa.string()


def as_typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows cast to a schema; a missing column is null."""
    return pa.table([_column(rows, field) for field in schema], schema=schema)


def concatenated(blocks: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
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
