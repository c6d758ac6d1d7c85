"""diff: what staging would change in what is published, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.errors import InputError

OP = "_strandline_op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
_TOLERANCE = 1e-9
_NOT_COMPARED = {"run_id"}


def diff(staged: DataFrame, published: DataFrame, keys: Sequence[str], *, place: str) -> DataFrame:
    """The rows to insert, update and delete, each with its `OP`; published rows not staged go.

    Changed means: any column but `run_id` differs; floating point relatively by more than 1e-9.

    Args:
        staged: what shall stand.
        published: what stands in the same scope.
        keys: the columns that identify a row; compared null-safely.
        place: what an error names.

    Raises:
        InputError: a column has another type than the published table gives it.
    """
    _same_types(staged, published, place)
    gone = [f for f in published.schema.fields if f.name not in staged.columns]
    staged = staged.withColumns({f.name: F.lit(None).cast(f.dataType) for f in gone})
    new = [f for f in staged.schema.fields if f.name not in published.columns]
    published = published.withColumns({f.name: F.lit(None).cast(f.dataType) for f in new})
    columns = staged.columns
    left = staged.select(F.struct(*map(_quoted, columns)).alias("s"))
    right = published.select(F.struct(*map(_quoted, columns)).alias("p"))
    same_row = _all(F.col(f"s.{_q(key)}").eqNullSafe(F.col(f"p.{_q(key)}")) for key in keys)
    kinds = {field.name: field.dataType for field in staged.schema.fields}
    changed = [
        ~_equal(F.col(f"s.{_q(name)}"), F.col(f"p.{_q(name)}"), kinds[name])
        for name in columns
        if name not in {*keys, *_NOT_COMPARED}
    ]
    op = (
        F.when(F.col("p").isNull(), INSERT)
        .when(F.col("s").isNull(), DELETE)
        .when(reduce(Column.__or__, changed, F.lit(False)), UPDATE)
    )
    return (
        left.join(right, same_row, "full_outer")
        .withColumn(OP, op)
        .where(F.col(OP).isNotNull())
        .select(OP, F.coalesce("s", "p").alias("row"))
        .select(OP, *(F.col(f"row.{_q(name)}") for name in columns))
    )


def _equal(staged: Column, published: Column, kind: T.DataType) -> Column:
    if _holds_map(kind):
        return F.to_json(F.struct(staged)).eqNullSafe(F.to_json(F.struct(published)))
    same = staged.eqNullSafe(published)
    if isinstance(kind, T.DoubleType | T.FloatType):
        larger = F.greatest(F.abs(staged), F.abs(published))
        near = F.abs(staged - published) <= _TOLERANCE * larger
        finite = larger < float("inf")  # what is no number counts as larger than all of them
        return same | F.coalesce(finite & near, F.lit(False))
    return same


def _holds_map(kind: T.DataType) -> bool:
    """Whether values of a type hold a map, which Spark does not compare."""
    if isinstance(kind, T.ArrayType):
        return _holds_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, T.MapType)


def _same_types(staged: DataFrame, published: DataFrame, place: str) -> None:
    there = {field.name: field.dataType for field in published.schema.fields}
    for field in staged.schema.fields:
        if field.name in there and _plain(there[field.name]) != _plain(field.dataType):
            raise InputError(
                place,
                f"column {field.name} is {field.dataType.simpleString()}, but published as "
                f"{there[field.name].simpleString()}",
                "give the changed column another name, or cast it to the published type",
            )


def _plain(kind: T.DataType) -> str:
    return kind.simpleString()


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__and__, conditions)


def _q(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quoted(name: str) -> Column:
    return F.col(_q(name))
