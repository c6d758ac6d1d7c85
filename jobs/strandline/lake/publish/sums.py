"""Sums over batches of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

ROWS = "rows"
"""The column with the number of rows of a group."""
_MOST = 2**20


def sums_by(rows: Iterable[pa.Table], by: Sequence[str], names: Sequence[str] = ()) -> pa.Table:
    """The sums of some columns by groups, and the number of rows as `ROWS`.

    Args:
        rows: batches of rows; the first batch may be empty.
        by: the grouping columns; nulls are equal.
        names: the columns to sum; a sum over nulls only is null.
    """
    tables, most = list[pa.Table](), _MOST
    for some in rows:
        groups = some.group_by([*by]).aggregate([*((n, "sum") for n in names), ([], "count_all")])
        tables.append(groups.rename_columns([*by, *names, ROWS]))
        if sum(map(len, tables)) > most:
            tables = [_added(tables, by, names)]
            most = max(_MOST, 2 * len(tables[0]))
    return _added(tables, by, names)


def _added(parts: Sequence[pa.Table], by: Sequence[str], names: Sequence[str]) -> pa.Table:
    sums = [*names, ROWS]
    groups = pa.concat_tables(parts).group_by([*by]).aggregate([(name, "sum") for name in sums])
    return groups.rename_columns([*by, *sums])
