"""Columns that are about to be published, held against their table: nothing is cast in silence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.records.expressions import quoted
from strandline.errors import InputError

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FLOATING = (T.FloatType, T.DoubleType)
_DIGITS = 38
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
    """How the columns of staged rows and those of their table come together.

    Attributes:
        schema: what the table is to hold: its own columns, then the new ones, each with the type
            that both sides fit into.
        widened: the names of the columns whose type in the table has to grow.
        new: the names of the columns that the table does not have yet.
        names: the name that each staged column has in the table.
    """

    schema: T.StructType
    widened: tuple[str, ...]
    new: tuple[str, ...]
    names: dict[str, str]

    def of(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows of either side, by the names and in the types of the table; its order of columns.

        Args:
            rows: staged or published ones; a column that they do not have is left out.
            more: columns of theirs that stand before all others, as they are.
        """
        there = {_key(field.name): field for field in rows.schema.fields}
        fitted = [quoted(name) for name in more]
        for field in self.schema.fields:
            own = there.get(_key(field.name))
            if own is not None:
                value = _in_type(quoted(own.name), own.dataType, field.dataType)
                fitted.append(value.alias(field.name, metadata=field.metadata))
        return rows.select(*fitted)


def fit(staged: T.StructType, published: T.StructType, place: str) -> Fit:
    """How staged columns fit into those of their table.

    Names are compared as Spark compares them, without case; types may grow on either side (whole
    numbers, floating-point numbers, decimals, and fields of structs that are new), nothing else.

    Raises:
        InputError: a column has another type than its table can give it without loss.
    """
    there = {_key(field.name): field for field in published.fields}
    names = {f.name: there.get(_key(f.name), f).name for f in staged.fields}
    wanted = {_key(field.name): field for field in staged.fields}
    schema, widened = T.StructType(), []
    for field in published.fields:
        kind = field.dataType
        if (other := wanted.get(_key(field.name))) is not None:
            kind = _common(other.dataType, kind) or _refuse(other, field, place)
        if not _same(kind, field.dataType):
            widened.append(field.name)
        schema.add(T.StructField(field.name, kind, nullable=True, metadata=field.metadata))
    new = [field for field in staged.fields if _key(field.name) not in there]
    for field in new:
        schema.add(T.StructField(field.name, field.dataType, nullable=True))
    return Fit(schema, tuple(widened), tuple(field.name for field in new), names)


def schema_of(table: DeltaTable) -> T.StructType:
    """The columns of a table as Spark names them; needs no JVM."""
    return T.StructType.fromJson(json.loads(table.schema().to_json()))


def _refuse(staged: T.StructField, published: T.StructField, place: str) -> T.DataType:
    raise InputError(
        place,
        f"column {staged.name} is {staged.dataType.simpleString()}, but published as "
        f"{published.dataType.simpleString()}; nothing is published",
        "give the changed column another name, or cast it to the published type",
    )


def _key(name: str) -> str:
    return name.lower()


def _same(one: T.DataType, other: T.DataType) -> bool:
    return one.simpleString() == other.simpleString()


def _common(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """The narrower of the types that both fit into without loss; None: there is none.

    Names inside structs are those of `other`.
    """
    if _same(one, other):
        return other
    for family in (_WHOLE, _FLOATING):
        if isinstance(one, family) and isinstance(other, family):
            return max(one, other, key=lambda kind: family.index(type(kind)))
    if isinstance(one, T.DecimalType) and isinstance(other, T.DecimalType):
        scale = max(one.scale, other.scale)
        digits = scale + max(one.precision - one.scale, other.precision - other.scale)
        return T.DecimalType(digits, scale) if digits <= _DIGITS else None
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        element = _common(one.elementType, other.elementType)
        return None if element is None else T.ArrayType(element)
    if isinstance(one, T.MapType) and isinstance(other, T.MapType):
        value = _common(one.valueType, other.valueType)
        same_keys = _same(one.keyType, other.keyType)
        return T.MapType(other.keyType, value) if value is not None and same_keys else None
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return _common_struct(one, other)
    return None


def _common_struct(one: T.StructType, other: T.StructType) -> T.StructType | None:
    ours = {_key(field.name): field for field in one.fields}
    both = T.StructType()
    for field in other.fields:
        of_one = ours.pop(_key(field.name), field)
        kind = _common(of_one.dataType, field.dataType)
        if kind is None:
            return None
        both.add(field.name, kind)
    for field in ours.values():
        both.add(field.name, field.dataType)
    return both


def _in_type(value: Column, kind: T.DataType, wanted: T.DataType) -> Column:
    """A value in a type of `_common`; what is new in a struct is null."""
    if _same(kind, wanted):
        return value
    if isinstance(kind, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element, into = kind.elementType, wanted.elementType
        return F.transform(value, lambda one: _in_type(one, element, into))
    if isinstance(kind, T.MapType) and isinstance(wanted, T.MapType):
        held, into = kind.valueType, wanted.valueType
        return F.transform_values(value, lambda _, one: _in_type(one, held, into))
    if isinstance(kind, T.StructType) and isinstance(wanted, T.StructType):
        own = {_key(field.name): field for field in kind.fields}
        fields = [
            _in_type(value.getField(mine.name), mine.dataType, field.dataType).alias(field.name)
            if (mine := own.get(_key(field.name))) is not None
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value.cast(wanted)


def spark_type(name: str) -> T.DataType:
    """The type that Delta names so."""
    return T.StructField.fromJson(
        {"name": "", "type": name, "nullable": True, "metadata": {}}
    ).dataType


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The columns of a table by the names that Delta gives their types."""
    return pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
