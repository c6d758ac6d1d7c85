"""Sums over rows that come some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

ROWS = "rows"
"""The column of how many rows a group has."""
_MOST = 2**20


def sums_by(rows: Iterable[pa.Table], by: Sequence[str], names: Sequence[str] = ()) -> pa.Table:
    """The sums of some columns over the rows that have the same of others, and `ROWS`.

    Args:
        rows: some at a time, the first with their columns.
        by: which rows are of one group; nulls are.
        names: the columns that are added up; a sum of nulls alone is null.
    """
    held, most = list[pa.Table](), _MOST
    for some in rows:
        groups = some.group_by([*by]).aggregate([*((n, "sum") for n in names), ([], "count_all")])
        held.append(groups.rename_columns([*by, *names, ROWS]))
        if sum(map(len, held)) > most:
            held = [_added(held, by, names)]
            most = max(_MOST, 2 * len(held[0]))
    return _added(held, by, names)


def _added(parts: Sequence[pa.Table], by: Sequence[str], names: Sequence[str]) -> pa.Table:
    sums = [*names, ROWS]
    groups = pa.concat_tables(parts).group_by([*by]).aggregate([(name, "sum") for name in sums])
    return groups.rename_columns([*by, *sums])
