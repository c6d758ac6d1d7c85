"""The replay of a partition in a worker of the engine: Arrow in, Arrow out, one call a group.

The module is shipped to the workers as text, since this library is not installed there. Of the
library it imports modules of this room alone, which are shipped with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from strandline.engine.replay.added_columns import AddedColumns
from strandline.engine.replay.operator_io import OF_A_RECORD, Records, Rules
from strandline.engine.replay.window_operator import replay


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a replay by name.

    Attributes:
        group: the columns that identify a group.
        order: the columns that order the records of a group.
        records: the columns for the fields of `Records`, in that order; None: the rules read none.
        until_ms: the column of the watermark at which a group's replay ends; null: MAX_WATERMARK.
        compared: columns whose values are compared, each with the error message for a null.
        longest_ms: the largest allowed length of a record's own window, with the error message for
            a longer one; None: any length is allowed.
    """

    group: tuple[str, ...]
    order: tuple[str, ...]
    records: tuple[str | None, ...]
    until_ms: str
    compared: tuple[tuple[str, str], ...]
    longest_ms: tuple[int, str] | None = None


def replay_partition(
    batches: Iterable[pa.RecordBatch], names: Names, rules: Rules
) -> Iterator[pa.RecordBatch]:
    """Replay all groups of a partition, whose records come in any order.

    Args:
        batches: all records of the partition; `mapInArrow` gives them.
        names: the names of their columns.
        rules: the trigger and the evictor.

    Raises:
        ValueError: a value to compare is null, or a record's own window is too long.
    """
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    ordered = in_order(pa.Table.from_batches(parts), [*names.group, *names.order])
    for name, problem in names.compared:
        if ordered[name].null_count:
            raise ValueError(OF_A_RECORD + problem)
    if names.longest_ms is not None:
        most_ms, problem = names.longest_ms
        starts, ends = (ordered[str(name)] for name in names.records[:2])
        if pc.max(pc.subtract(ends, starts)).as_py() > most_ms:
            raise ValueError(OF_A_RECORD + problem)
    for name, values in _replayed(ordered, names, rules):
        ordered = ordered.append_column(name, values)
    yield from ordered.combine_chunks().to_batches()


def _replayed(ordered: pa.Table, names: Names, rules: Rules) -> Iterator[tuple[str, pa.Array]]:
    """The added columns of ordered records, replayed group after group."""
    columns = [[] if name is None else ordered[name].to_pylist() for name in names.records]
    bounds = bounds_of(ordered, names.group)
    until_ms = ordered[names.until_ms].take(pa.array(bounds[:-1])).to_pylist()
    added = AddedColumns(rules)
    for number, (begin, end) in enumerate(pairwise(bounds)):
        records = Records(*(column[begin:end] for column in columns))
        added.add(replay(records, rules, until_ms[number]), records.ts_ms)
    return added.columns()


def in_order(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows sorted by some columns; most engines already deliver them so."""
    if _is_sorted(rows, by):
        return rows
    return rows.sort_by([(name, "ascending") for name in by])


def _is_sorted(rows: pa.Table, by: Sequence[str]) -> bool:
    """Whether no row precedes the row before it, by the first column in which they differ."""
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
    """All values of a column except the last one, and all values except the first one."""
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
