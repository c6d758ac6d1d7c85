"""Results at hand: small ones on the driver, their whole numbers as they are; large ones kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import WindowSpec

from strandline.engine.whole_numbers import to_pandas


class Executor(Protocol):
    """What the engine's plans ask of a session's engine, besides the DataFrame API."""

    @property
    def writes_json_as_spark(self) -> bool:
        """Whether `to_json` gives the texts that Apache Spark's gives."""

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept as long as the session lives."""


_EXECUTORS: dict[SparkSession, Executor] = {}


def introduce(spark: SparkSession, executor: Executor) -> None:
    """Make the engine of a session known to the plans that it will compute."""
    _EXECUTORS[spark] = executor


def executor_of(spark: SparkSession) -> Executor:
    """The engine of a session that was introduced."""
    return _EXECUTORS[spark]


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed once and kept as long as their session lives."""
    return executor_of(rows.sparkSession).computed(rows)


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

    Unlike `union_by_name` it gives every engine the type of a struct.
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
    """The rows of all; a column that only some have is null in the others, and no struct."""
    both = first
    for other in others:
        both = both.unionByName(other, allowMissingColumns=True)
    return both


@dataclass(frozen=True)
class PerIdentity:
    """Rows that depend on what identifies records, and so orders those of equal position.

    Attributes:
        make: makes them; called once for each identity.
    """

    make: Callable[[Column], DataFrame]
    _made: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    def any_or(self, identity: Column) -> DataFrame:
        """Those of the identity that was asked for first; of the given one, if none was."""
        return next(iter(self._made.values())) if self._made else self(identity)

    def __call__(self, identity: Column) -> DataFrame:
        """Those of an identity."""
        by = str(identity)
        if by not in self._made:
            self._made[by] = self.make(identity)
        return self._made[by]


def all_of(conditions: Iterable[Column]) -> Column:
    """Whether all conditions hold, of which there is at least one."""
    return reduce(Column.__and__, conditions)


def first_of_cases(cases: Iterable[tuple[Column, Column]], otherwise: Column) -> Column:
    """The value of the first condition that holds; side by side, for a client nests only few."""
    chosen: Column | None = None
    for condition, value in cases:
        chosen = (F if chosen is None else chosen).when(condition, value)
    return otherwise if chosen is None else chosen.otherwise(otherwise)


def collected(rows: DataFrame) -> pd.DataFrame:
    """The rows of a DataFrame on the driver."""
    return to_pandas(rows.toArrow())
