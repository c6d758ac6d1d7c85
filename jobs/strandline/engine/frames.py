"""Small results on the driver, with their whole numbers as they are."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame


def collected(rows: DataFrame) -> pd.DataFrame:
    """The rows, their integers as `Int64`: where some are null pandas takes floats, exact to 2^53.

    A watermark can lie anywhere in a long: event time less a bound of up to 64 bits.
    """
    whole: pd.DataFrame = rows.toArrow().to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return whole
