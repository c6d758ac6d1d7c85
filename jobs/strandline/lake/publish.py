"""publish: bring a diff into a published table, so that doing it twice is doing it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from strandline.lake.adopt import Adoption, Attempt, rows_by_log
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.identities import marked
from strandline.lake.large_diff import append, merge, read, replace
from strandline.lake.places import path_of
from strandline.lake.reads import columns_of
from strandline.lake.rewrite import rewrite
from strandline.lake.schema import Fit, fit, schema_of, second_of, spark_type
from strandline.lake.small_diff import SMALL_BYTES, alike
from strandline.lake.store import Store
from strandline.tables import FIRING_COLUMNS, NOT_OF_A_FIRING, QUARANTINE, PublishedTable

_MOST_APPENDED_BYTES = 2 * SMALL_BYTES
"""An append holds the rows once; a rewrite what stands there beside them."""


def firings_schema(windows: StructType) -> StructType:
    """The columns of `firings` for a pipeline whose windows have these."""
    schema = StructType([field for field in windows.fields if field.name not in NOT_OF_A_FIRING])
    for name, kind in FIRING_COLUMNS.items():
        schema.add(name, spark_type(kind))
    return schema


def published(
    spark: SparkSession, store: Store, target: PublishedTable, like: DataFrame | None
) -> DataFrame:
    """What stands in a table now; no rows of the given kind if it does not exist yet."""
    if like is not None and store.table(target.name) is None:
        return like.limit(0)
    return store.frame(spark, target.name)


def create(store: Store, target: PublishedTable, staged: StructType) -> None:
    """Create a table that is not there yet; call it under the lock.

    One that is there gets its second columns here: by their mark a diff knows them (`fit`).
    """
    # nothing of the source's metadata stays
    plain = [
        T.StructField(f.name, f.dataType, nullable=True, metadata=second_of(f, staged))
        for f in staged.fields
    ]
    store.create(target.name, _as_fields(target, plain), [target.partition])
    held = hold(store, target, staged) if target.holds_source_rows else None
    if held is not None:
        second = [column for column in held.second.values() if column.name in held.new]
        _add(target, second, DeltaTable(store.uri(target.name)), commit=None)


def _as_fields(target: PublishedTable, columns: Iterable[T.StructField]) -> Schema:
    """New columns of a table as delta-rs takes them."""
    fields = map(marked, columns) if target.name == QUARANTINE.name else columns
    return Schema.from_json(StructType([*fields]).json())


def _add(
    target: PublishedTable,
    columns: Sequence[T.StructField],
    table: DeltaTable,
    commit: CommitProperties | None,
) -> None:
    """Add columns to a table, null in all rows that it has; no commit where there are none."""
    if columns:
        fields = _as_fields(target, columns).fields
        table.alter.add_columns(fields, commit_properties=commit)


def hold(store: Store, target: PublishedTable, staged: StructType) -> Fit | None:
    """Hold staged columns against their table; None: it does not exist yet.

    Raises:
        InputError: the table cannot take a column without loss.
    """
    table = store.table(target.name)
    place = f"{store.pipeline}: {target.name}"
    if table is None:
        return None
    return fit(staged, schema_of(table), place, target)


def tally(changes: DataFrame) -> dict[str, int]:
    """How many rows a diff inserts, updates and deletes."""
    counted = {row[0]: int(row[1]) for row in changes.groupBy(OP).count().collect()}
    return {op: counted.get(op, 0) for op in (INSERT, UPDATE, DELETE)}


def tally_of(changes: pa.Table) -> dict[str, int]:
    """The same of a small one."""
    counted = Counter(changes[OP].to_pylist())
    return {op: counted[op] for op in (INSERT, UPDATE, DELETE)}


def publish(
    store: Store,
    target: PublishedTable,
    changes: DataFrame,
    counts: dict[str, int],
    attempt: Attempt,
    small: pa.Table | None = None,
) -> None:
    """Bring a diff into its table in one commit; none if nothing changes. Call it under the lock.

    Of a small one a folder's table is written without the engine, for which a merge is seconds of
    work, and each file and folder of an append a call of its own. Columns that are new, or wider
    than the table has them, are made room for first.

    Args:
        store: the pipeline's tables.
        target: which of them.
        changes: the diff.
        counts: what it inserts, updates and deletes.
        attempt: which no other one is; its run is named in the commit.
        small: the same diff, where it is at hand without Spark.

    Raises:
        InputError: the table cannot take a column without loss.
        RetryableError: somebody wrote the table meanwhile without the lock, or the engine has lost
            rows.
    """
    if not any(counts.values()):
        return
    adoption = Adoption(store.uri(target.name), target.partition, attempt)
    held = hold(store, target, without_op(changes.schema))
    if held is not None:
        _make_room(changes.sparkSession, target, held, adoption)
        changes = held.of(changes, OP)
    table = DeltaTable(adoption.uri)
    only_inserts = counts[UPDATE] == counts[DELETE] == 0
    if small is not None and not alike(small.drop(OP).schema, columns_of(table)):
        small = None
    most_bytes = _MOST_APPENDED_BYTES if only_inserts else SMALL_BYTES
    if small is None and store.lake.folder is not None and _staged_bytes(changes) <= most_bytes:
        small = changes.toArrow()
    application = f"{attempt.run_id}/{target.name}"
    if only_inserts and small is not None:
        store.append_once(target.name, small.drop(OP), application, attempt.run_id)
    elif only_inserts:
        append(adoption, table, changes.drop(OP), counts[INSERT], application)
    else:
        names = {name.lower(): name for name in changes.columns}  # the table's
        keys = [names[key.lower()] for key in target.keys]
        if small is None or not rewrite(table, target.partition, keys, small, attempt.run_id):
            merge(adoption, table, keys, changes, counts)


def publish_anew(
    store: Store, target: PublishedTable, rows: DataFrame, inserted: int, attempt: Attempt
) -> None:
    """Put rows in place of all that a table holds, under their own columns, in one commit.

    Doing it twice is doing it once. What stood before stays as an older version. Call it under the
    lock.

    Args:
        store: the pipeline's tables.
        target: which of them.
        rows: what it is to hold.
        inserted: how many they are.
        attempt: which no other one is; its run is named in the commit.

    Raises:
        RetryableError: somebody wrote the table meanwhile without the lock, or the engine has lost
            rows.
    """
    plain = [T.StructField(f.name, f.dataType, nullable=True) for f in rows.schema.fields]
    fields = StructType([*map(marked, plain)] if target.name == QUARANTINE.name else plain)
    adoption = Adoption(store.uri(target.name), target.partition, attempt)
    replace(adoption, DeltaTable(adoption.uri), rows, inserted, fields)


def without_op(schema: StructType) -> StructType:
    """The columns of a diff without its `OP`."""
    return StructType([field for field in schema.fields if field.name != OP])


def _make_room(spark: SparkSession, target: PublishedTable, held: Fit, adoption: Adoption) -> None:
    """Let a table take staged columns: widen what is too narrow, add what is new.

    Widened by writing all of it, in one commit: delta-rs cannot read Delta's type widening.
    """
    table = DeltaTable(adoption.uri)
    if held.widened:
        fields = [field for field in held.schema.fields if field.name not in held.new]
        there = held.of_published(read(spark, adoption, table))
        count = rows_by_log(table, target.partition)
        replace(adoption, table, there, count, StructType(fields), part="wider")
    if held.new:
        added = [held.schema[name] for name in held.new]
        commit = CommitProperties({"userMetadata": adoption.attempt.run_id})
        _add(target, added, DeltaTable(adoption.uri), commit)


def _staged_bytes(changes: DataFrame) -> int:
    """The bytes of the staged files in a folder that a diff is read from."""
    paths = filter(None, map(path_of, changes.inputFiles()))
    return sum(path.stat().st_size for path in paths)
