"""The fit of staged columns with their table; a lossy cast is an error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from strandline.engine.records.side_by_side import second_names
from strandline.errors import InputError
from strandline.lake.store.second_columns import SECOND_OF
from strandline.lake.store.type_widening import common_type, in_type, key_of, same_type
from strandline.sql.column_types import column_named
from strandline.tables import PublishedTable

_ARROW = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "array<string>": pa.list_(pa.string()),
}


@dataclass(frozen=True)
class Fit:
    """The combination of the columns of staged rows and of their table.

    Attributes:
        schema: the table's new schema: its columns, then new columns, each with a type that both
            sides fit into.
        widened: the names of the table's columns that must be widened.
        new: the names of the columns that the table does not have yet.
        names: the name in the table of each staged column.
    """

    schema: T.StructType
    widened: tuple[str, ...]
    new: tuple[str, ...]
    names: dict[str, str]

    @property
    def second(self) -> dict[str, T.StructField]:
        """The table's second columns, by the name of the staged column whose values they have."""
        return {
            name: self.schema[of_table]
            for name, of_table in self.names.items()
            if _is_second_of(name, self.schema[of_table])
        }

    @cached_property
    def arrow(self) -> pa.Schema:
        """The new schema as an Arrow schema."""
        return arrow_of(self.schema)

    @property
    def not_staged(self) -> list[str]:
        """The columns of the table that staged rows do not have."""
        present = {*self.names.values(), *self._without_value}
        return [name for name in self.schema.names if name not in present]

    def of(self, rows: pa.Table) -> pa.Table:
        """Staged rows with the names, types and order of the table's columns.

        Of a source column and its second columns all but one are null. A column that the rows do
        not have is missing; `OP`, which no table has, is the first column.
        """
        by_key = {key_of(self.names.get(name, name)): name for name in rows.column_names}
        return self._fitted(rows, by_key, nulls=self._without_value)

    def of_published(self, rows: pa.Table) -> pa.Table:
        """Published rows with the types of the new schema."""
        return self._fitted(rows, {key_of(name): name for name in rows.column_names})

    def _fitted(
        self, rows: pa.Table, there: Mapping[str, str], nulls: Collection[str] = ()
    ) -> pa.Table:
        known = {key_of(name) for name in self.schema.names}
        fitted = {own: rows[own] for name, own in there.items() if name not in known}
        for field in self.arrow:
            own = there.get(key_of(field.name))
            if own is not None:
                fitted[field.name] = in_type(rows[own], field.type)
            elif field.name in nulls:
                fitted[field.name] = pa.nulls(len(rows), field.type)
        return pa.table(fitted)

    @cached_property
    def _without_value(self) -> list[str]:
        """The table's columns that are null in staged rows: one of another type has the value."""
        with_name: dict[str, set[str]] = {}
        for name, of_table in self.names.items():
            with_name.setdefault(key_of(name), set()).add(of_table)
        return [
            field.name
            for field in self.schema.fields
            for source in {key_of(field.name), _source_of_second(field)}
            if with_name.get(source, set()) - {field.name}
        ]


def fit(
    staged: T.StructType,
    published: T.StructType,
    place: str,
    target: PublishedTable | None = None,
    *,
    has_names_of_table: bool = False,
) -> Fit:
    """The fit of staged columns with their table.

    Names are compared without case, as in Spark. Types may be widened on either side (whole
    numbers, floating-point numbers, decimals, new fields of structs). A source column with a type
    that cannot be combined without loss gets a second column, `<name>__<type>`; a source column may
    also be widened from whole numbers to fractions.

    Args:
        staged: the columns of the rows to publish.
        published: the columns of the table.
        place: the place for an error.
        target: the table's description; None: it has no source rows, and no key is known.
        has_names_of_table: whether the columns already have the table's names, as a diff's do.

    Raises:
        InputError: a staged column cannot be combined with the table's without loss.
    """
    columns = {field.name: field for field in published.fields}
    names: dict[str, str] = {}
    for field in staged.fields:
        free = {name: one for name, one in columns.items() if name not in names.values()}
        by_source = target is not None and target.is_of_source(key_of(field.name))
        mark = mark_of(field) if by_source else None
        if by_source and not has_names_of_table:
            free = _without_seconds_of_others(field, free, mark)
        column = next(_columns_for(field, free, mark, by_source=by_source), None)
        if column is None:
            own = None if by_source else column_named(field.name, columns)
            if own is not None:
                _refuse(field, columns[own], place, target)
            column = _new_column(field, columns, staged.names, mark)
        columns[column.name], names[field.name] = column, column.name
    return Fit(
        schema=T.StructType([*columns.values()]),
        widened=tuple(
            field.name
            for field in published.fields
            if not same_type(field.dataType, columns[field.name].dataType)
        ),
        new=tuple(name for name in columns if name not in published.names),
        names=names,
    )


def with_marks(rows: T.StructType, second_of: Mapping[str, str]) -> T.StructType:
    """The columns of staged rows with the marks of second columns.

    No mark of a landing table stays, which may be a copy of another pipeline's quarantine.

    Args:
        rows: the columns.
        second_of: for each column that has another one's values in a second type, its name.
    """
    fields = []
    for field in rows.fields:
        own = {key: value for key, value in (field.metadata or {}).items() if key != SECOND_OF}
        if field.name in second_of:
            own[SECOND_OF] = second_of[field.name]
        fields.append(T.StructField(field.name, field.dataType, field.nullable, own))
    return T.StructType(fields)


def mark_of(field: T.StructField) -> dict[str, str] | None:
    """The metadata by which a column is a second one; None: it is not."""
    of = (field.metadata or {}).get(SECOND_OF)
    return {SECOND_OF: of} if of else None


def _without_seconds_of_others(
    field: T.StructField, columns: Mapping[str, T.StructField], mark: Mapping[str, str] | None
) -> dict[str, T.StructField]:
    """The table's columns without second columns of others than a staged one.

    A landing column that is called like one of these, as `amount__double`, does not share it.
    """
    own = {"", key_of(field.name), *map(key_of, (mark or {}).values())}
    return {name: one for name, one in columns.items() if _source_of_second(one) in own}


def _columns_for(
    field: T.StructField,
    columns: Mapping[str, T.StructField],
    mark: Mapping[str, str] | None,
    *,
    by_source: bool,
) -> Iterator[T.StructField]:
    """The table's columns, widened if needed, that can hold a staged one; equal types first."""
    names = [field.name, *(mark or {}).values()]
    named = [one for name in names for one in columns.values() if key_of(one.name) == key_of(name)]
    if by_source:
        named += [one for n in names for one in columns.values() if _is_second_of(n, one)]
    for one in named:
        if same_type(one.dataType, field.dataType):
            yield one
    for one in named:
        kind = common_type(field.dataType, one.dataType, into_fractions=by_source)
        if kind is not None:
            yield T.StructField(one.name, kind, nullable=True, metadata=one.metadata)


def _new_column(
    field: T.StructField,
    columns: Mapping[str, T.StructField],
    staged: Iterable[str],
    mark: dict[str, str] | None,
) -> T.StructField:
    """The new column of a table for a staged one; a second column if its name is in use."""
    kind = field.dataType
    if column_named(field.name, columns) is None:
        return T.StructField(field.name, kind, nullable=True, metadata=mark)
    in_use = {key_of(name) for name in (*columns, *staged)}
    name = next(name for name in second_names(field.name, kind) if key_of(name) not in in_use)
    return T.StructField(name, kind, nullable=True, metadata={SECOND_OF: field.name})


def _is_second_of(name: str, column: T.StructField) -> bool:
    return _source_of_second(column) == key_of(name)


def _source_of_second(column: T.StructField) -> str:
    """The key of the source column of which a column holds a second type; empty: of none."""
    return key_of((column.metadata or {}).get(SECOND_OF, ""))


def schema_of(table: DeltaTable) -> T.StructType:
    """The columns of a table as a Spark schema, without a JVM."""
    return T.StructType.fromJson(json.loads(table.schema().to_json()))


def _refuse(
    staged: T.StructField,
    published: T.StructField,
    place: str,
    target: PublishedTable | None,
) -> NoReturn:
    was, pipeline = published.dataType.simpleString(), place.partition(":")[0]
    way_out = (
        f"in the pipeline file cast aggregates.{staged.name} to {was}, or give it another name"
    )
    if target is not None and key_of(staged.name) in map(key_of, target.keys):
        way_out = (
            "with a key of another type it is another pipeline: give it a new name, or replace "
            f"all that it has published: strandline advance {pipeline} --to INSTANT --recreate "
            "--reason TEXT"
        )
    raise InputError(
        place,
        f"column {staged.name} is {staged.dataType.simpleString()}, but published as {was}; "
        "nothing is published",
        way_out,
    )


def arrow_of(columns: T.StructType) -> pa.Schema:
    """Columns as an Arrow schema; all are nullable."""
    schema = to_arrow_schema(columns, timezone="UTC")
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def with_all_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with exactly the given columns, in order; missing columns are null."""
    names = {*rows.column_names}
    columns = [
        rows[field.name] if field.name in names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema)


def spark_type(name: str) -> T.DataType:
    """The Spark type with a Delta name."""
    return T.StructField.fromJson(
        {"name": "", "type": name, "nullable": True, "metadata": {}}
    ).dataType


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns with Delta's names of types."""
    return pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
