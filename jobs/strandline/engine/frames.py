"""Results at hand: small ones on the driver, their whole numbers as they are; large ones kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession

_KINDS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def on_one_machine(spark: SparkSession) -> bool:
    """Whether the executors live in the driver's own process."""
    return str(spark.sparkContext.master).startswith("local")


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed once and kept by the executors.

    On a cluster each part is kept by two of them: Spark could not compute it again where one dies.
    """
    if on_one_machine(rows.sparkSession):
        return rows.localCheckpoint()
    return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK_2)


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
