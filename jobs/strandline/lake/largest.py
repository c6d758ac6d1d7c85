"""Of a diff the rows that people look at first, as they stand and as they would; how many others.

The same twice, as a diff itself is: by Spark, and of few rows by Arrow. What comes to the driver is
bounded, however many rows a diff has and however long their values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import all_of, with_nulls_for
from strandline.engine.records.expressions import in_quotes, quoted
from strandline.lake.diff import OP, TOLERANCE, UPDATE, equal
from strandline.lake.schema import fit
from strandline.lake.small_diff import differ, of_same_keys

Rows: TypeAlias = DataFrame | pa.Table

LONGEST_TEXT = 200
"""So many signs of a text, or of what is shown as one, come to the driver, and one more."""
_SIZE = "_strandline_size"
_AS_THEY_ARE = (T.BooleanType, T.NumericType, T.TimestampType, T.DateType)


@dataclass(frozen=True)
class Largest:
    """Rows that change, the largest changes first: what stands, and what would.

    Attributes:
        before: as published; `after`: as staged, in the same order.
        in_values: how many rows change in a value by which their size goes, shown or not.
    """

    before: pa.Table
    after: pa.Table
    in_values: int


def largest_updates(
    changes: DataFrame,
    published: DataFrame,
    keys: Sequence[str],
    values: Sequence[str],
    most: int,
) -> Largest:
    """The rows that a diff updates, those that change most first.

    A change is as large as the largest of its values: of numbers the difference as a part of the
    larger one; of a number and nothing, and of whatever else differs, 1.

    Args:
        changes: the diff.
        published: the rows that it was made from, or more of that table.
        keys: the columns that identify a row; compared null-safely.
        values: those of `changes` by which the size of a change goes.
        most: how many rows come to the driver.
    """
    updated = changes.where(F.col(OP) == UPDATE).drop(OP)
    fields = updated.schema.fields
    sized = _sized(updated, published, keys, values).persist()
    try:
        in_values = sized.where(F.col(_SIZE) > 0).count()
        first = sized.orderBy(F.desc(_SIZE), *(_of("a", key) for key in keys)).limit(most)
        both = first.select(*_side("b", fields), *_side("a", fields)).toArrow()
    finally:
        sized.unpersist()
    stand, would = both.select(range(len(fields))), both.select(range(len(fields), 2 * len(fields)))
    names = updated.columns
    return Largest(stand.rename_columns(names), would.rename_columns(names), in_values)


def _sized(
    updated: DataFrame, published: DataFrame, keys: Sequence[str], values: Sequence[str]
) -> DataFrame:
    """Each updated row as staged (`a`) and as published (`b`), with the size of its change."""
    columns = [quoted(name) for name in updated.columns]
    fitted = fit(updated.schema, published.schema, "published rows").of_published(published)
    after = updated.select(F.struct(*columns).alias("a"))
    before = with_nulls_for(updated, fitted).select(F.struct(*columns).alias("b"))
    same_row = all_of(_of("b", key).eqNullSafe(_of("a", key)) for key in keys)
    sizes = [_size(field) for field in updated.schema.fields if field.name in values]
    return after.join(before, same_row).withColumn(_SIZE, F.greatest(F.lit(0.0), *sizes))


def largest_of_few(
    changes: pa.Table,
    published: pa.Table,
    keys: Sequence[str],
    values: Sequence[str],
    most: int,
) -> Largest | None:
    """`largest_updates` without Spark; None: some rows are not told apart by their key."""
    updated = changes.filter(ds.field(OP) == UPDATE).drop(OP)
    matched = of_same_keys(updated, published, keys)
    if matched is None:
        return None
    after, before = matched
    size = np.zeros(len(after))
    for name in values:
        size = np.maximum(size, _sizes(before[name], after[name]))
    order = _order(after.append_column(_SIZE, pa.array(size)), _SIZE, keys).slice(0, most)
    return Largest(before.take(order), after.take(order), int((size > 0).sum()))


def first_rows(changes: Rows, op: str, by: str, keys: Sequence[str], most: int) -> pa.Table:
    """The rows of a diff with an operation, those first that have most of a column."""
    if isinstance(changes, DataFrame):
        rows = changes.where(F.col(OP) == op).drop(OP)
        first = rows.orderBy(quoted(by).desc(), *map(quoted, keys)).limit(most)
        fields = rows.schema.fields
        shown = [_as_shown(quoted(f.name), f.dataType).alias(f.name) for f in fields]
        return first.select(*shown).toArrow()
    rows = changes.filter(ds.field(OP) == op).drop(OP)
    return rows.take(_order(rows, by, keys).slice(0, most))


def counted(changes: Rows, columns: Sequence[str], most: int) -> list[tuple[Any, ...]]:
    """How many rows of a diff have the same of some columns: these, and the number behind them.

    They are in order, and the first ones only where there are more than `most`.
    """
    if isinstance(changes, DataFrame):
        groups = changes.groupBy(*map(quoted, columns)).count().orderBy(*map(quoted, columns))
        return [tuple(row) for row in groups.limit(most).collect()]
    groups = changes.group_by(list(columns)).aggregate([([], "count_all")])
    groups = groups.sort_by([(name, "ascending") for name in columns]).slice(0, most)
    return [*zip(*(groups[name].to_pylist() for name in (*columns, "count_all")), strict=True)]


def _side(side: str, fields: Sequence[T.StructField]) -> list[Column]:
    return [
        _as_shown(_of(side, field.name), field.dataType).alias(f"{side}{place}")
        for place, field in enumerate(fields)
    ]


def _of(side: str, name: str) -> Column:
    return F.col(f"{side}.{in_quotes(name)}")


def _size(field: T.StructField) -> Column:
    before, after, kind = _of("b", field.name), _of("a", field.name), field.dataType
    size = F.lit(1.0)
    if isinstance(kind, T.NumericType):
        before_, after_ = before.cast("double"), after.cast("double")
        larger = F.greatest(F.abs(before_), F.abs(after_))
        share = F.nanvl(F.when(larger > 0, F.abs(before_ - after_) / larger), size)
        one_is_null = before.isNull() | after.isNull()
        size = F.when(one_is_null, size).otherwise(F.greatest(share, F.lit(TOLERANCE)))
    return F.when(equal(after, before, kind), 0.0).otherwise(size)


def _as_shown(value: Column, kind: T.DataType) -> Column:
    """A value as it comes to the driver: whatever may be long, as the beginning of a text."""
    if isinstance(kind, _AS_THEY_ARE):
        return value
    if isinstance(kind, T.ArrayType | T.StructType | T.MapType):
        value = F.to_json(value)
    elif isinstance(kind, T.BinaryType):
        value = F.hex(value)
    return F.substring(value.cast("string"), 1, LONGEST_TEXT + 1)


def _sizes(before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    size = np.ones(len(after))
    if pa.types.is_integer(after.type) or _has_fractions(after.type):
        one, other = (
            values.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy()
            for values in (before, after)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
        size = np.where(np.isnan(share), size, np.maximum(share, TOLERANCE))
    return np.where(differ(after, before), size, 0.0)


def _has_fractions(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _order(rows: pa.Table, by: str, keys: Sequence[str]) -> pa.Array:
    """The places of rows in the order of most of a column, then of their keys."""
    upwards = [(name, "ascending") for name in keys if not pa.types.is_nested(rows[name].type)]
    return pc.sort_indices(rows, sort_keys=[(by, "descending"), *upwards])
