"""diff: what staging would change in what is published, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import with_nulls_for
from strandline.engine.records.expressions import in_quotes, quoted
from strandline.lake.schema import fit

OP = "_strandline_op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
TOLERANCE = 1e-9
NOT_COMPARED = {"run_id"}


def diff(
    staged: DataFrame,
    published: DataFrame,
    keys: Sequence[str],
    *,
    place: str,
    keep: bool = False,
) -> DataFrame:
    """The rows to insert, update and delete, each with its `OP`; published rows not staged go.

    Changed means: any column but `run_id` differs; floating point relatively by more than 1e-9.
    Names and types are those of `Fit`.

    Args:
        staged: what shall stand.
        published: what stands in the same scope.
        keys: the columns that identify a row; compared null-safely.
        place: what an error names.
        keep: whether a published column that is staged no more keeps its values; else they go.

    Raises:
        InputError: a column has a type that the published table cannot take.
    """
    fitted = fit(staged.schema, published.schema, place)
    staged, published = fitted.of(staged), fitted.of(published)
    kept = {*published.columns} - {*staged.columns} if keep else set()
    staged = with_nulls_for(published, staged)
    published = with_nulls_for(staged, published)
    keys = [fitted.names.get(key, key) for key in keys]
    not_compared = {*keys, *kept, *NOT_COMPARED}
    op = (
        F.when(F.col("p").isNull(), INSERT)
        .when(F.col("s").isNull(), DELETE)
        .when(_differ(f for f in staged.schema.fields if f.name not in not_compared), UPDATE)
    )
    columns = staged.columns
    row = [_of("p" if name in kept else "row", name).alias(name) for name in columns]
    left = staged.select(F.struct(*map(quoted, columns)).alias("s"))
    right = published.select(F.struct(*map(quoted, columns)).alias("p"))
    same_row = _all(_of("s", key).eqNullSafe(_of("p", key)) for key in keys)
    return (
        left.join(right, same_row, "full_outer")
        .withColumn(OP, op)
        .where(F.col(OP).isNotNull())
        .select(OP, "p", F.coalesce("s", "p").alias("row"))
        .select(OP, *row)
    )


def _differ(fields: Iterable[T.StructField]) -> Column:
    """Whether any of these columns has another value on either side."""
    differs = (~equal(_of("s", f.name), _of("p", f.name), f.dataType) for f in fields)
    return reduce(Column.__or__, differs, F.lit(False))


def _of(side: str, name: str) -> Column:
    return F.col(f"{side}.{in_quotes(name)}")


def equal(staged: Column, published: Column, kind: T.DataType) -> Column:
    """Whether two values of a type are no change."""
    if _holds_map(kind):
        return F.to_json(F.struct(staged)).eqNullSafe(F.to_json(F.struct(published)))
    same = staged.eqNullSafe(published)
    if isinstance(kind, T.DoubleType | T.FloatType):
        larger = F.greatest(F.abs(staged), F.abs(published))
        near = F.abs(staged - published) <= TOLERANCE * larger
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


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__and__, conditions)
