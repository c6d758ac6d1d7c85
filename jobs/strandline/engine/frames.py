"""Small results on the driver, with their whole numbers as they are."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

_KINDS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


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
