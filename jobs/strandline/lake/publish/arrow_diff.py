"""The diff of staged and published rows, and its application, as pure functions of Arrow tables.

All rows of a key must be in the same call; the other rows, and the order of rows, do not matter.
Values are equal as in Spark: null equals null, NaN equals NaN, and 0.0 equals -0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

OP = "_strandline_op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
NOT_COMPARED = {"run_id"}
_ROW = "row"
_Numbers: TypeAlias = npt.NDArray[np.int64]


def only_deleted(rows: int) -> dict[str, int]:
    """The counts of a diff that deletes some rows."""
    return {INSERT: 0, UPDATE: 0, DELETE: rows}


def diff(
    staged: pa.Table, published: pa.Table, keys: Sequence[str], kept: Collection[str] = ()
) -> pa.Table:
    """The rows to insert, update and delete, each with its `OP`.

    A published row that is not staged is deleted. A row is updated if any column but `run_id`
    differs (`differ`).

    Args:
        staged: the new rows.
        published: the published rows of the same scope, with the same columns and types.
        keys: the columns that identify a row.
        kept: columns that staged rows do not have: an updated row keeps its published values.
    """
    pairs = Pairs.of_keys(staged.select(keys), published.select(keys))
    changed = np.zeros(len(pairs.first), dtype=bool)
    for name in {*staged.column_names} - {*keys, *kept, *NOT_COMPARED}:
        changed |= differ(staged[name].take(pairs.first), published[name].take(pairs.second))
    before = published.take(pairs.second[changed])
    after = staged.take(pairs.first[changed])
    for name in kept:
        place = after.schema.get_field_index(name)
        after = after.set_column(place, after.schema.field(name), before[name])
    parts = {
        INSERT: staged.take(pairs.first_alone),
        DELETE: published.take(pairs.second_alone),
        UPDATE: after,
    }
    return pa.concat_tables(with_op(rows, op) for op, rows in parts.items())


def with_op(rows: pa.Table, op: str) -> pa.Table:
    """The rows as a diff with the same operation for all of them."""
    return rows.add_column(0, OP, pa.repeat(op, len(rows)))


def with_changes(rows: pa.Table, changes: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows after a diff: rows with its keys are removed, its inserted and updated rows are added.

    It is idempotent. A column that the diff does not have keeps its values.

    Args:
        rows: all rows with keys of the diff, and other rows.
        changes: the diff, with `OP`, in the types of the rows.
        keys: the columns that identify a row.
    """
    coming = changes.filter(pc.not_equal(changes[OP], DELETE)).drop(OP)
    kept = rows.take(Pairs.of_keys(rows.select(keys), changes.select(keys)).first_alone)
    lacking = [name for name in rows.column_names if name not in coming.column_names]
    if lacking:
        pairs = Pairs.of_keys(coming.select(keys), rows.select(keys))
        before = np.full(len(coming), -1)
        before[pairs.first] = pairs.second
        places = pa.array(before, mask=before < 0)
        for name in lacking:
            coming = coming.append_column(name, rows[name].take(places))
    return pa.concat_tables([kept, coming.select(rows.column_names)])


def names_rows_twice(changes: pa.Table, keys: Sequence[str]) -> bool:
    """Whether a diff changes two published rows with the same key."""
    changed = changes.filter(pc.not_equal(changes[OP], INSERT)).select(keys)
    groups = _numbered(changed).group_by(_names(len(keys))).aggregate([(_ROW, "count")])
    return len(groups) < len(changed)


@dataclass(frozen=True)
class Pairs:
    """The matches of the rows of two tables by key, as row numbers.

    Attributes:
        first: the row of the first table for each match.
        second: the row of the second table for each match.
        first_alone: the rows of the first table whose key is not in the second.
        second_alone: the rows of the second table whose key is not in the first.
    """

    first: _Numbers
    second: _Numbers
    first_alone: _Numbers
    second_alone: _Numbers

    @classmethod
    def of_keys(cls, some: pa.Table, others: pa.Table) -> Pairs:
        """The matches of two tables whose columns are the keys."""
        key = _keys_of(some, others)
        of_some, of_others = key[: len(some)], key[len(some) :]
        by_key = np.argsort(of_others, kind="stable")
        rows_of = np.bincount(of_others, minlength=key.max(initial=-1) + 1)
        begins = np.cumsum(rows_of) - rows_of
        times = rows_of[of_some]
        first = np.repeat(np.arange(len(some)), times)
        nth = np.arange(len(first)) - np.repeat(np.cumsum(times) - times, times)
        in_some = np.zeros(len(rows_of), dtype=bool)
        in_some[of_some] = True
        return cls(
            first=first,
            second=by_key[begins[of_some[first]] + nth],
            first_alone=np.flatnonzero(times == 0),
            second_alone=np.flatnonzero(~in_some[of_others]),
        )


def _keys_of(some: pa.Table, others: pa.Table) -> _Numbers:
    """A number for the key of each row of both tables, concatenated."""
    both = pa.concat_tables([_numbered(rows) for rows in (some, others)]).drop(_ROW)
    groups = _numbered(both).group_by(_names(some.num_columns)).aggregate([(_ROW, "list")])
    rows = groups[f"{_ROW}_list"].combine_chunks()
    key = np.empty(len(both), dtype=np.int64)
    lengths = pc.list_value_length(rows).to_numpy()
    key[rows.flatten().to_numpy()] = np.repeat(np.arange(len(groups)), lengths)
    return key


def _numbered(keys: pa.Table) -> pa.Table:
    """The keys in comparable form under generated names, with their row numbers."""
    columns = [*map(comparable, keys.columns), pa.array(np.arange(len(keys)))]
    return pa.table(columns, [*_names(keys.num_columns), _ROW])


def _names(count: int) -> list[str]:
    return [str(place) for place in range(count)]


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
