"""Rows of whole numbers in pandas, some of them null; without Spark."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

_KINDS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Arrow's rows, their integers as `Int64`: of some that are null pandas would make floats.

    A watermark can lie anywhere in a long (event time less a bound of up to 64 bits), and floats
    are exact to 2^53.
    """
    whole: pd.DataFrame = rows.to_pandas(types_mapper=_KINDS.get)
    return whole


def any_bit(bits: pd.Series[int], groups: pd.Series[int]) -> pd.Series[int]:
    """The bits that any value of a group has, group by group; null: none has one.

    `groups`: the number of the group of each value, -1 for none.
    """
    of, known = groups.to_numpy(), bits.fillna(0).astype("int64").to_numpy()
    found = np.zeros(of.max(initial=-1) + 1, dtype=np.int64)
    np.bitwise_or.at(found, of[of >= 0], known[of >= 0])
    return pd.Series(found, dtype="Int64").mask(found == 0)
