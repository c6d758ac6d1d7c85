"""The statistics of a Delta log as Arrow expressions, by which a reader skips files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_CUT_OFF_US = 1_000
"""The largest truncation of an upper bound, in microseconds: logs have whole milliseconds."""


def known_by_log(log: pa.Table) -> list[pc.Expression]:
    """For each file a condition that all its rows meet.

    It has no term for columns without bounds in the log.

    Args:
        log: add actions of a table, not flattened.
    """
    known = [pc.scalar(True)] * len(log)
    for holds in (*_of_partitions(log), *_of_bounds(log)):
        known = [before & more for before, more in zip(known, holds, strict=True)]
    return known


def _of_partitions(log: pa.Table) -> Iterator[list[pc.Expression]]:
    """For each partition column a condition for each file."""
    for name, values in _columns(log, "partition"):
        column = pc.field(name)
        yield [column == value if value.is_valid else column.is_null() for value in values]


def _of_bounds(log: pa.Table) -> Iterator[list[pc.Expression]]:
    """For each column with bounds in the log a condition for each file."""
    rows = log["num_records"].to_pylist()
    nulls = {name: counts.to_pylist() for name, counts in _columns(log, "null_count")}
    largest = dict(_columns(log, "max"))
    for name, least in _columns(log, "min"):
        if name not in largest or not _has_one_order(least.type):
            continue
        most = largest[name]
        if pa.types.is_timestamp(most.type):
            most = pc.add(most, pa.scalar(_CUT_OFF_US, pa.duration("us")))
        counted = nulls.get(name, [None] * len(log))
        files = zip(least, most, counted, rows, strict=True)
        yield [_between(pc.field(name), (low, high), *counts) for low, high, *counts in files]


def _between(
    column: pc.Expression, bounds: tuple[pa.Scalar, pa.Scalar], nulls: int | None, rows: int | None
) -> pc.Expression:
    """The condition on a column that all rows of a file meet.

    Args:
        column: the column.
        bounds: its smallest and its largest value; null if the log lacks them.
        nulls: its number of nulls; None if the log lacks it.
        rows: the number of rows of the file.
    """
    if nulls is not None and nulls == rows:
        return column.is_null()
    first, last = bounds
    if not (first.is_valid and last.is_valid):
        return pc.scalar(True)
    if nulls == 0:
        return column.is_valid() & (column >= first) & (column <= last)
    return ((column >= first) | column.is_null()) & ((column <= last) | column.is_null())


def _columns(log: pa.Table, fact: str) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """The columns with statistics in a log, without structs."""
    if fact in log.column_names:
        for field in log.schema.field(fact).type.fields:
            if not pa.types.is_nested(field.type):
                yield field.name, pc.struct_field(log[fact], [field.name])


def _has_one_order(kind: pa.DataType) -> bool:
    """Whether all writers order values of a type as Arrow does; not if values may be NaN."""
    return not pa.types.is_floating(kind)
