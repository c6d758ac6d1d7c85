"""diff: what staging would change in what is published, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import all_of, with_nulls_for
from strandline.engine.records.expressions import quoted
from strandline.lake.schema import Fit, fit

OP = "_strandline_op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
TOLERANCE = 1e-9
NOT_COMPARED = {"run_id"}
_STAGED, _PUBLISHED = "_strandline_staged_", "_strandline_published_"
"""What the columns of either side are named with."""
_IS_STAGED, _IS_PUBLISHED = "_strandline_is_staged", "_strandline_is_published"


def diff(
    staged: DataFrame,
    published: DataFrame,
    keys: Sequence[str],
    *,
    place: str,
    keep: bool = False,
    fitted: Fit | None = None,
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
        fitted: how the staged columns fit into the table's, where that is known.

    Raises:
        InputError: a column has a type that the published table cannot take.
    """
    fitted = fitted or fit(staged.schema, published.schema, place)
    staged, published = fitted.of(staged), fitted.of_published(published)
    kept = {*published.columns} - {*staged.columns} if keep else set()
    staged = with_nulls_for(published, staged)
    published = with_nulls_for(staged, published)
    keys = [fitted.names.get(key, key) for key in keys]
    not_compared = {*keys, *kept, *NOT_COMPARED}
    op = (
        F.when(F.col(_IS_PUBLISHED).isNull(), INSERT)
        .when(_is_deleted(), DELETE)
        .when(_differ(f for f in staged.schema.fields if f.name not in not_compared), UPDATE)
    )
    row = [_row(name, kept=name in kept).alias(name) for name in staged.columns]
    left = staged.select(F.lit(True).alias(_IS_STAGED), *_named(_STAGED, staged.columns))
    right = published.select(F.lit(True).alias(_IS_PUBLISHED), *_named(_PUBLISHED, staged.columns))
    same_row = all_of(_of(_STAGED, key).eqNullSafe(_of(_PUBLISHED, key)) for key in keys)
    both = left.join(right, same_row, "full_outer").withColumn(OP, op)
    return both.where(F.col(OP).isNotNull()).select(OP, *row)


def _named(side: str, columns: Iterable[str]) -> list[Column]:
    return [quoted(name).alias(side + name) for name in columns]


def _row(name: str, *, kept: bool) -> Column:
    """A column of a changed row: as staged; as published where nothing is staged, or it stays."""
    published = _of(_PUBLISHED, name)
    return published if kept else F.when(_is_deleted(), published).otherwise(_of(_STAGED, name))


def _is_deleted() -> Column:
    return F.col(_IS_STAGED).isNull()


def _differ(fields: Iterable[T.StructField]) -> Column:
    """Whether any of these columns has another value on either side."""
    differs = (~equal(_of(_STAGED, f.name), _of(_PUBLISHED, f.name), f.dataType) for f in fields)
    return reduce(Column.__or__, differs, F.lit(False))


def _of(side: str, name: str) -> Column:
    return quoted(side + name)


def equal(staged: Column, published: Column, kind: T.DataType) -> Column:
    """Whether two values of a type are no change."""
    if _holds_map(kind):
        return _json(staged).eqNullSafe(_json(published))
    same = staged.eqNullSafe(published)
    if isinstance(kind, T.DoubleType | T.FloatType):
        larger = F.greatest(F.abs(staged), F.abs(published))
        near = F.abs(staged - published) <= TOLERANCE * larger
        finite = larger < float("inf")  # what is no number counts as larger than all of them
        return same | F.coalesce(finite & near, F.lit(False))
    return same


def _json(value: Column) -> Column:
    """A value as JSON, under the same name on either side of the diff."""
    return F.to_json(F.struct(value.alias("value")))


def _holds_map(kind: T.DataType) -> bool:
    """Whether values of a type hold a map, which Spark does not compare."""
    if isinstance(kind, T.ArrayType):
        return _holds_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, T.MapType)
