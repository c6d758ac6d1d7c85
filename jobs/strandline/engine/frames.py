"""Results at hand: small ones on the driver, their whole numbers as they are; large ones kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import WindowSpec

_KINDS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


_COMPUTED_BY: dict[SparkSession, Callable[[DataFrame], DataFrame]] = {}
_WITH_THEIR_OWN_JSON: set[SparkSession] = set()


def compute_with(spark: SparkSession, computed: Callable[[DataFrame], DataFrame] | None) -> None:
    """Say how a session computes rows once and keeps them; every engine has its own way.

    None: the session has ended.
    """
    if computed is None:
        _COMPUTED_BY.pop(spark, None)
    else:
        _COMPUTED_BY[spark] = computed


def write_json_by_hand(spark: SparkSession) -> None:
    """Say that a session's `to_json` gives other texts than Spark's."""
    _WITH_THEIR_OWN_JSON.add(spark)


def writes_its_own_json(spark: SparkSession) -> bool:
    """Whether a session's `to_json` gives other texts than Spark's."""
    return spark in _WITH_THEIR_OWN_JSON


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed once and kept as long as their session lives."""
    return _COMPUTED_BY[rows.sparkSession](rows)


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small table of this process as a DataFrame; of an empty one a client needs the types."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


def long(value: int) -> Column:
    """A whole number as a BIGINT, however small it is.

    A small one alone is an INT, and not every engine gives a CASE the wider type of its branches.
    """
    return F.lit(value).cast("bigint")


def up_to_here(window: WindowSpec) -> WindowSpec:
    """The rows of a window in their order up to each row; without a frame peers would be in it."""
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def with_nulls_for(other: DataFrame, rows: DataFrame) -> DataFrame:
    """Rows with the columns that only another DataFrame has; they are null, of its types.

    Unlike `unionByName(allowMissingColumns=True)` it gives every engine the type of a struct.
    """
    names = {name.lower() for name in rows.columns}
    lacking = [field for field in other.schema.fields if field.name.lower() not in names]
    return rows.select("*", *(F.lit(None).cast(f.dataType).alias(f.name) for f in lacking))


def fields_of(rows: DataFrame, struct: str) -> list[Column]:
    """The fields of a struct as columns; `select("struct.*")` is not known to every engine."""
    kind = rows.schema[struct].dataType
    names = kind.names if isinstance(kind, T.StructType) else []
    return [F.col(struct)[name].alias(name) for name in names]


def union_by_name(first: DataFrame, *others: DataFrame) -> DataFrame:
    """The rows of all; a column that only some have is null in the others."""
    both = first
    for other in others:
        both = with_nulls_for(other, both).unionByName(with_nulls_for(both, other))
    return both


@dataclass(frozen=True)
class PerIdentity:
    """Rows that depend on what identifies records, and so orders those of equal position.

    Attributes:
        make: makes them; called once for each identity.
    """

    make: Callable[[Column], DataFrame]
    _made: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    def __call__(self, identity: Column) -> DataFrame:
        """Those of an identity."""
        by = str(identity)
        if by not in self._made:
            self._made[by] = self.make(identity)
        return self._made[by]


def collected(rows: DataFrame) -> pd.DataFrame:
    """The rows of a DataFrame on the driver."""
    return to_pandas(rows.toArrow())


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Arrow's rows, their integers as `Int64`: of some that are null pandas would make floats.

    A watermark can lie anywhere in a long (event time less a bound of up to 64 bits), and floats
    are exact to 2^53.
    """
    whole: pd.DataFrame = rows.to_pandas(types_mapper=_KINDS.get)
    return whole
