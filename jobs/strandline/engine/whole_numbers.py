"""Nullable integer columns in pandas, without Spark."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

_KINDS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Arrow rows in pandas with integers as `Int64`: pandas would turn nullable ones into floats.

    A watermark can be any long (event time minus a bound of up to 64 bits), and floats are exact
    only up to 2^53.
    """
    whole: pd.DataFrame = rows.to_pandas(types_mapper=_KINDS.get)
    return whole


def any_bit(bits: pd.Series[int], groups: pd.Series[int]) -> pd.Series[int]:
    """The bitwise OR of the values of each group; null: the group has no bit set.

    `groups`: the number of the group of each value, -1 for none.
    """
    of, known = groups.to_numpy(), bits.fillna(0).astype("int64").to_numpy()
    found = np.zeros(of.max(initial=-1) + 1, dtype=np.int64)
    np.bitwise_or.at(found, of[of >= 0], known[of >= 0])
    return pd.Series(found, dtype="Int64").mask(found == 0)
