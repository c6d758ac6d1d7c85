"""Small diffs: the partitions that they touch are written anew in one commit, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, write_deltalake

from strandline.lake.adopt import no_other_writer
from strandline.lake.change_feed import has_change_feed
from strandline.lake.diff import DELETE, OP
from strandline.lake.small_diff import are_comparable, by_key, published_rows


def rewrite(
    table: DeltaTable, partition: str, keys: Sequence[str], changes: pa.Table, run_id: str
) -> bool:
    """Bring a diff into a table: rows of its keys go, and what it does not delete comes.

    Doing it twice is doing it once. Keys are compared null-safely.

    Args:
        table: in a local folder, partitioned by one date; call it under the lock.
        partition: that column; it is one of the keys.
        keys: the columns that identify a row.
        changes: the diff, with `OP` and the columns of the table.
        run_id: named in the commit.

    Returns:
        Whether it was done. Nothing is where the touched partitions are large, where a key is of a
        type whose values Arrow and Spark compare differently, where a column is missing, or where
        the table has a change data feed: rows that have not changed would be written to it.

    Raises:
        RetryableError: somebody wrote the table meanwhile without the lock.
    """
    if has_change_feed(table):
        return False
    days = pc.unique(changes[partition])
    of_days = in_days(partition, days)
    there = published_rows(table, pc.is_in(ds.field(partition), days), of_days)
    if there is None or {*there.column_names} != {*changes.column_names} - {OP}:
        return False
    if not are_comparable(there.schema, keys):
        return False
    with no_other_writer(table.table_uri):
        write_deltalake(
            table,
            with_changes(there, changes, keys),
            mode="overwrite",
            predicate=of_days,
            commit_properties=CommitProperties({"userMetadata": run_id}),
        )
    return True


def with_changes(rows: pa.Table, changes: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows with a diff of them brought in; by the columns and types of the rows."""
    coming = changes.select(rows.schema.names).cast(rows.schema)
    kept = rows.filter(~_of_same_key(rows.select(keys), coming.select(keys)))
    return pa.concat_tables([kept, coming.filter(pc.not_equal(changes[OP], DELETE))])


def _of_same_key(rows: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    """For each row whether one of the others has its key; all columns are keys."""
    groups = by_key(rows, others)
    met = groups.filter(pc.greater_equal(groups["row_max"], len(rows)))
    same_key = np.zeros(len(rows) + len(others), dtype=bool)
    same_key[pc.list_flatten(met["row_list"]).to_numpy()] = True
    return same_key[: len(rows)]


def in_days(partition: str, days: pa.Array) -> str:
    """Some partitions in SQL, as delta-rs reads it."""
    named = ", ".join(f"'{day.isoformat()}'" for day in days.to_pylist() if day is not None)
    inside = f'"{partition}" IN ({named})' if named else "false"
    return f'{inside} OR "{partition}" IS NULL' if days.null_count else inside
