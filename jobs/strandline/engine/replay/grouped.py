"""Arrow tables in groups of rows, in a worker of the engine.

The module is shipped to the workers as text: of the library it imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def in_order(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows sorted by some columns; most engines already deliver them so."""
    if _is_sorted(rows, by):
        return rows
    return rows.sort_by([(name, "ascending") for name in by])


def _is_sorted(rows: pa.Table, by: Sequence[str]) -> bool:
    """Whether each row comes after the one before, by the first column in which they differ."""
    undecided = pa.array([True] * (rows.num_rows - 1), pa.bool_())
    for name in by:
        before, after = _neighbours(rows, name)
        nulls_last = pc.and_(pc.is_valid(before), pc.is_null(after))
        ascends = pc.or_(nulls_last, pc.fill_null(pc.less(before, after), False))
        equal = _are_equal(before, after)
        if not pc.all(pc.or_(pc.invert(undecided), pc.or_(ascends, equal))).as_py():
            return False
        undecided = pc.and_(undecided, equal)
    return True


def bounds_of(ordered: pa.Table, group: Sequence[str]) -> list[int]:
    """The first row of each group of a sorted table, and the number of its rows."""
    begins = pa.array([False] * (ordered.num_rows - 1), pa.bool_())
    for name in group:
        begins = pc.or_(begins, pc.invert(_are_equal(*_neighbours(ordered, name))))
    places = (place + 1 for place in pc.indices_nonzero(begins).to_pylist())
    return [0, *places, ordered.num_rows]


def _neighbours(rows: pa.Table, name: str) -> tuple[pa.Array, pa.Array]:
    """All values of a column but the last, and all but the first."""
    values = rows[name].combine_chunks()
    return values.slice(0, rows.num_rows - 1), values.slice(1)


def _are_equal(before: pa.Array, here: pa.Array) -> pa.Array:
    """Whether neighbours belong to one group: two nulls are equal, and so are two NaNs."""
    equal = pc.fill_null(pc.equal(before, here), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(before), pc.is_null(here)))
    if pa.types.is_floating(before.type):
        no_numbers = pc.and_(pc.is_nan(before), pc.is_nan(here))
        equal = pc.or_(equal, pc.fill_null(no_numbers, False))
    return equal
