"""The rows of a diff that a preview shows, before and after; and the number of other rows.

Rows are read in batches, and only the shown rows are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.lake.publish.arrow_diff import TOLERANCE, Pairs, differ
from strandline.lake.publish.batches import in_pieces

_SIZE = "_strandline_size"
_BEFORE = "_strandline_before_"


@dataclass(frozen=True)
class Largest:
    """The rows with the largest changes, in descending order.

    Attributes:
        before: the published rows.
        after: the staged rows, in the same order.
        in_values: the number of all rows with changed values, shown or not.
    """

    before: pa.Table
    after: pa.Table
    in_values: int


def largest_updates(
    updated: Iterable[pa.Table],
    published: Iterable[pa.Table],
    keys: Sequence[str],
    values: Sequence[str],
    most: int,
) -> Largest:
    """The updated rows of a diff with the largest changes.

    The size of a change is the largest over its values: of two numbers the relative difference to
    the larger one; 1 for a number and null, and for other values that differ.

    Args:
        updated: the updated rows as staged.
        published: the published rows, with the same columns; further rows are ignored.
        keys: the columns that identify a row.
        values: the columns that decide on the size of a change.
        most: the number of rows to keep.
    """
    in_values = 0

    def sized() -> Iterator[pa.Table]:
        nonlocal in_values
        for staged, earlier in in_pieces([updated, published], keys):
            rows = _sized(staged, earlier, keys, values)
            in_values += pc.sum(pc.greater(rows[_SIZE], 0.0)).as_py() or 0
            yield rows

    first = first_rows(sized(), _SIZE, keys, most).drop(_SIZE)
    names = [name for name in first.column_names if not name.startswith(_BEFORE)]
    before = first.select([_BEFORE + name for name in names]).rename_columns(names)
    return Largest(before, first.select(names), int(in_values))


def first_rows(rows: Iterable[pa.Table], by: str, keys: Sequence[str], most: int) -> pa.Table:
    """The rows with the largest values of a column, in descending order."""
    stream = iter(rows)
    first = next(stream)
    flat = [name for name in keys if not pa.types.is_nested(first.schema.field(name).type)]
    order = [(by, "descending"), *((name, "ascending") for name in flat)]
    for some in chain([first.slice(0, 0)], stream):
        first = pa.concat_tables([first, some])
        first = first.take(pc.sort_indices(first, sort_keys=order).slice(0, most))
    return first


def _sized(
    staged: pa.Table, published: pa.Table, keys: Sequence[str], values: Sequence[str]
) -> pa.Table:
    """The staged rows, the published rows, and the size of each change."""
    pairs = Pairs.of_keys(staged.select(keys), published.select(keys))
    after, before = staged.take(pairs.first), published.take(pairs.second)
    size = np.zeros(len(after))
    for name in values:
        size = np.maximum(size, _sizes(before[name], after[name]))
    for name in staged.column_names:
        after = after.append_column(_BEFORE + name, before[name])
    return after.append_column(_SIZE, pa.array(size))


def _sizes(before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    size = np.ones(len(after))
    if pa.types.is_integer(after.type) or _has_fractions(after.type):
        one, other = (
            values.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy()
            for values in (before, after)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
        size = np.where(np.isnan(share), size, np.maximum(share, TOLERANCE))
    return np.where(differ(after, before), size, 0.0)


def _has_fractions(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))
