"""The rows of two landing tables in one table: columns with one name and type are one column.

If both tables have a name in two types, the right table's column is added as `<name>__<type>`,
unless the pipeline reads both columns as one. Whole numbers are widened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain, count

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import union_by_name
from strandline.engine.records.expressions import NESTED, quoted
from strandline.errors import InputError
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.table_columns import columns_differ, reads_of_both
from strandline.tables import INPUT

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def second_name(name: str, kind: T.DataType) -> str:
    """The name of a source column's values in a second type, such as `amount__double`."""
    word = kind.typeName() if isinstance(kind, NESTED) else kind.simpleString()
    return f"{name}__{re.sub(r'[^A-Za-z0-9]+', '_', word).strip('_')}"


def second_names(name: str, kind: T.DataType) -> Iterator[str]:
    """The names for a second column in order of choice: `amount__double`, `amount__double_2`, …."""
    second = second_name(name, kind)
    return chain([second], (f"{second}_{number}" for number in count(2)))


def columns_side_by_side(
    schemas: Mapping[str, T.StructType], spec: PipelineSpec
) -> dict[str, dict[str, T.StructField]]:
    """For each input and column name, the column of the combined table that holds it.

    Raises:
        InputError: a column has the name of INPUT; or both have one of the same name in two
            spellings, or in two types that the pipeline reads as one.
    """
    shared = dict[str, T.StructField]()
    found: dict[str, dict[str, T.StructField]] = {name: {} for name in schemas}
    for name, schema in schemas.items():
        place = f"{spec.pipeline}: sources.{name}.table"
        for field in schema.fields:
            key = field.name.lower()
            if key == INPUT and len(schemas) > 1:
                problem = f"its column {field.name} has the name of a column that Strandline adds"
                raise InputError(place, problem, "rename it there")
            other = shared.get(key, field)
            differs = not _same_type(field, other)
            if field.name != other.name or (differs and reads_of_both(spec, key)):
                raise columns_differ(place, _with_type(field), _with_type(other))
            column = _beside(field, other, schemas.values())
            shared[column.name.lower()] = column
            found[name][field.name] = column
    return {
        name: {own: shared[column.name.lower()] for own, column in columns.items()}
        for name, columns in found.items()
    }


def _with_type(field: T.StructField) -> str:
    """A column as messages name it, such as `amount (bigint)`."""
    return f"{field.name} ({field.dataType.simpleString()})"


def _same_type(field: T.StructField, other: T.StructField) -> bool:
    return field.dataType.simpleString() == other.dataType.simpleString()


def _beside(
    field: T.StructField, other: T.StructField, schemas: Iterable[T.StructType]
) -> T.StructField:
    """The combined column for a column of one input, if the other input has one of its name."""
    if isinstance(field.dataType, _WHOLE) and isinstance(other.dataType, _WHOLE):
        kind = max(field.dataType, other.dataType, key=lambda one: _WHOLE.index(type(one)))
        return T.StructField(field.name, kind)
    name = field.name if _same_type(field, other) else _free_name(field, schemas)
    return T.StructField(name, field.dataType)


def side_by_side(rows: Mapping[str, DataFrame], spec: PipelineSpec) -> DataFrame:
    """The rows of both inputs, each with its INPUT; a missing column is null.

    Raises:
        InputError: see `columns_side_by_side`.
    """
    columns = columns_side_by_side({name: one.schema for name, one in rows.items()}, spec)
    selected = (
        of_input.select(
            *(
                quoted(field.name).cast(column.dataType).alias(column.name)
                if (column := columns[name][field.name]).dataType != field.dataType
                else quoted(field.name).alias(column.name)
                for field in of_input.schema.fields
            ),
            F.lit(name).alias(INPUT),
        )
        for name, of_input in rows.items()
    )
    return reduce(union_by_name, selected)


def _free_name(field: T.StructField, schemas: Iterable[T.StructType]) -> str:
    """The second name of a column, numbered if a landing table has a column of that name."""
    in_use = {one.name.lower() for schema in schemas for one in schema.fields}
    names = second_names(field.name, field.dataType)
    return next(name for name in names if name.lower() not in in_use)
