"""The equality of values, in keys and in other columns of a diff.

It is Spark's: null equals null, NaN equals NaN, and 0.0 equals -0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TOLERANCE = 1e-9
"""The relative difference of floating-point numbers below which they are equal.

Sums of the same numbers in another order differ by less.
"""


def comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of a flat type that are equal, or both null, exactly if the given ones are equal.

    Numbers in structs, lists and maps are compared without tolerance.
    """
    kind = values.type
    if pa.types.is_nested(kind):
        plain = (None if value is None else repr(_plain(value)) for value in values.to_pylist())
        return pa.chunked_array([pa.array(plain, pa.string())])
    if pa.types.is_floating(kind):
        zero, none = pa.scalar(0.0, kind), pa.scalar(float("nan"), kind)
        return pc.if_else(pc.is_nan(values), none, pc.add(values, zero))
    return values


def differ(some: pa.ChunkedArray, others: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each pair of values whether they differ; numbers differ by more than `TOLERANCE`."""
    some, others = comparable(some), comparable(others)
    neither = pc.and_(pc.is_null(some), pc.is_null(others)).to_numpy()
    equal: npt.NDArray[np.bool_] = pc.equal(some, others).fill_null(False).to_numpy() | neither
    if pa.types.is_floating(some.type):
        equal = equal | _near(some, others)
    return ~equal


def _near(some: pa.ChunkedArray, others: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each pair of numbers whether they differ by at most `TOLERANCE`, or both are NaN."""
    known: npt.NDArray[np.bool_] = pc.and_(pc.is_valid(some), pc.is_valid(others)).to_numpy()
    one, other = (values.fill_null(0).to_numpy() for values in (some, others))
    larger = np.maximum(np.abs(one), np.abs(other)).astype(float)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(larger) & (np.abs(one - other) <= TOLERANCE * larger)
    same: npt.NDArray[np.bool_] = near | (np.isnan(one) & np.isnan(other))
    return known & same


def _plain(value: Any) -> Any:
    """A nested value with equal texts for equal numbers; a map keeps the order of its entries."""
    match value:
        case float():
            return value + 0.0
        case dict():
            return [_plain(field) for field in value.values()]
        case list() | tuple():
            return [_plain(element) for element in value]
        case _:
            return value
