"""DataFrames from values on the driver, DataFrames computed once, and helpers for their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.whole_numbers import to_pandas

_NOT_NUMBERS = {c.ARRIVAL_DAY: pa.date32(), c.CHANNEL: pa.string()}
"""The types of the engine's columns that hold no whole numbers."""
Columns = Mapping[str, Iterable[Any]]
"""Values by the name of their column."""


class Executor(Protocol):
    """The abilities of a Spark or Sail session that plans need beside the DataFrame API."""

    @property
    def answers_as_spark(self) -> bool:
        """Whether its functions give Apache Spark's results; Sail's `to_json` and sums do not."""

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept as long as the session lives."""


_EXECUTORS: dict[SparkSession, Executor] = {}


def introduce(spark: SparkSession, executor: Executor) -> None:
    """Register the executor of a session, for the plans that the session will compute."""
    _EXECUTORS[spark] = executor


def executor_of(spark: SparkSession) -> Executor:
    """The registered executor of a session."""
    return _EXECUTORS[spark]


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed once and kept as long as their session lives."""
    return executor_of(rows.sparkSession).computed(rows)


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a DataFrame.

    Spark Connect cannot infer the types of an empty table, so the schema is given.
    """
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


def small_table(spark: SparkSession, columns: Columns) -> DataFrame:
    """A DataFrame of the engine's columns, from values on the driver; a missing value is null.

    Values are whole numbers, except in columns of `_NOT_NUMBERS`; an Arrow array keeps its type.
    """

    def column(name: str, values: Iterable[Any]) -> pa.Array:
        if isinstance(values, pa.Array):
            return values
        return pa.array([*values], _NOT_NUMBERS.get(name, pa.int64()), from_pandas=True)

    return from_arrow(spark, pa.table({name: column(name, of) for name, of in columns.items()}))


def named(columns: Mapping[str, Column]) -> list[Column]:
    """Columns under their names, to be selected."""
    return [column.alias(name) for name, column in columns.items()]


def long(value: int | None) -> Column:
    """A whole number as a BIGINT column, however small it is; or null.

    Spark types a small literal as INT, and not every engine widens the branches of a CASE.
    """
    return F.lit(value).cast("bigint")


def up_to_here(window: WindowSpec) -> WindowSpec:
    """The frame of rows from the first to the current row, without its peers in the order."""
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def before_here(window: WindowSpec) -> WindowSpec:
    """The frame of rows from the first to the row before the current row."""
    return window.rowsBetween(Window.unboundedPreceding, -1)


def fields_of(rows: DataFrame, struct: str) -> list[Column]:
    """The fields of a struct as columns; not every engine supports `select("struct.*")`."""
    kind = rows.schema[struct].dataType
    names = kind.names if isinstance(kind, T.StructType) else []
    return [F.col(struct)[name].alias(name) for name in names]


def union_by_name(one: DataFrame, other: DataFrame) -> DataFrame:
    """The union of two DataFrames by column name; a column that one of them lacks is null there.

    Unlike `allowMissingColumns`, this gives a struct column its type on every engine.
    """
    return _with_nulls_for(other, one).unionByName(_with_nulls_for(one, other))


def _with_nulls_for(other: DataFrame, rows: DataFrame) -> DataFrame:
    """Rows with the columns that only another DataFrame has, null and of that DataFrame's types."""
    names = {name.lower() for name in rows.columns}
    lacking = [field for field in other.schema.fields if field.name.lower() not in names]
    return rows.select("*", *(F.lit(None).cast(f.dataType).alias(f.name) for f in lacking))


def all_of(conditions: Iterable[Column]) -> Column:
    """Whether all conditions hold, of which there is at least one."""
    return reduce(Column.__and__, conditions)


def first_of_cases(cases: Iterable[tuple[Column, Column]], otherwise: Column) -> Column:
    """The value of the first condition that holds, as one flat CASE.

    A CASE for each condition inside of another one would exceed the nesting that clients allow.
    """
    chosen: Column | None = None
    for condition, value in cases:
        chosen = (F if chosen is None else chosen).when(condition, value)
    return otherwise if chosen is None else chosen.otherwise(otherwise)


def collected(rows: DataFrame) -> pd.DataFrame:
    """The rows of a DataFrame on the driver."""
    return to_pandas(rows.toArrow())
