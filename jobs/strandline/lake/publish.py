"""publish: bring a diff into a published table, so that doing it twice is doing it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from strandline.engine.records.expressions import in_quotes
from strandline.errors import RetryableError
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.identities import marked
from strandline.lake.reads import columns_of
from strandline.lake.rewrite import rewrite
from strandline.lake.schema import Fit, fit, schema_of, spark_type
from strandline.lake.small_diff import SMALL_BYTES, alike
from strandline.lake.store import Store
from strandline.tables import FIRING_COLUMNS, NOT_OF_A_FIRING, QUARANTINE, PublishedTable

_NAMED_BY_DELTA_RS_ONLY = {*" ,;{}()\n\t="}
"""Signs in the names of columns that Spark takes where it finds them, and gives no table anew."""
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


def create(store: Store, target: PublishedTable, schema: StructType) -> None:
    """Create a table that is not there yet; call it under the lock."""
    fields = StructType([_field(target, field) for field in schema.fields])
    store.create(target.name, Schema.from_json(fields.json()), [target.partition])


def _field(target: PublishedTable, field: T.StructField) -> T.StructField:
    """A staged column as a new one of its table; nothing of its source's metadata stays."""
    if target.name == QUARANTINE.name:
        return marked(field)
    return T.StructField(field.name, field.dataType, nullable=True)


def hold(store: Store, target: PublishedTable, staged: StructType) -> Fit | None:
    """Hold staged columns against their table; None: it does not exist yet.

    Raises:
        InputError: the table cannot take a column without loss.
    """
    table = store.table(target.name)
    place = f"{store.pipeline}: {target.name}"
    return None if table is None else fit(staged, schema_of(table), place)


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
    run_id: str,
    small: pa.Table | None = None,
) -> None:
    """Bring a diff into its table in one commit; none if nothing changes. Call it under the lock.

    A small one goes into a folder's table without Spark, which takes seconds for a merge, and for
    an append starts a process for the rights of every file and folder: for a year of days a minute.
    Columns that are new, or wider than the table has them, are made room for first.

    Args:
        store: the pipeline's tables.
        target: which of them.
        changes: the diff.
        counts: what it inserts, updates and deletes.
        run_id: named in the commit.
        small: the same diff, where it is at hand without Spark.

    Raises:
        InputError: the table cannot take a column without loss.
        RetryableError: somebody wrote the table meanwhile without the lock.
    """
    if not any(counts.values()):
        return
    spark = changes.sparkSession
    uri = store.uri(target.name)
    held = hold(store, target, without_op(changes.schema))
    if held is not None:
        _make_room(spark, store, target, held, run_id)
        changes = held.of(changes, OP)
    only_inserts = counts[UPDATE] == counts[DELETE] == 0
    if small is not None and not alike(small.drop(OP).schema, columns_of(DeltaTable(uri))):
        small = None
    most_bytes = _MOST_APPENDED_BYTES if only_inserts else SMALL_BYTES
    if small is None and store.lake.folder is not None and _staged_bytes(changes) <= most_bytes:
        small = changes.toArrow()
    if small is not None:
        if only_inserts:
            store.append_once(target.name, small.drop(OP), f"{run_id}/{target.name}", run_id)
            return
        names = {name.lower(): name for name in small.column_names}  # the table's
        keys = [names[key.lower()] for key in target.keys]
        if rewrite(DeltaTable(uri), target.partition, keys, small, run_id):
            return
    try:
        if only_inserts:
            _append(changes, uri, target, run_id)
        else:
            _merge(spark, changes, uri, target)
    except PySparkException as error:
        if "Concurrent" not in type(error).__name__ + str(error):
            raise
        raise RetryableError(
            uri, "somebody wrote it without the pipeline's lock", "try again"
        ) from None


def publish_anew(store: Store, target: PublishedTable, rows: DataFrame, run_id: str) -> None:
    """Put rows in place of all that a table holds, under their own columns, in one commit.

    Doing it twice is doing it once. What stood before stays as an older version. Call it under the
    lock.
    """
    fields = StructType([_field(target, field) for field in rows.schema.fields])
    _write_anew(rows, store.uri(target.name), target, fields, run_id)


def without_op(schema: StructType) -> StructType:
    """The columns of a diff without its `OP`."""
    return StructType([field for field in schema.fields if field.name != OP])


def _make_room(
    spark: SparkSession, store: Store, target: PublishedTable, held: Fit, run_id: str
) -> None:
    """Let a table take staged columns: widen what is too narrow, add what is new.

    Widened by writing it anew, in one commit: delta-rs cannot read Delta's type widening.
    """
    uri = store.uri(target.name)
    if held.widened:
        fields = [field for field in held.schema.fields if field.name not in held.new]
        rows = held.of(spark.read.format("delta").load(uri))
        _write_anew(rows, uri, target, StructType(fields), run_id)
    if held.new:
        fields = [_field(target, held.schema[name]) for name in held.new]
        added = Schema.from_json(StructType(fields).json()).fields
        commit = CommitProperties({"userMetadata": run_id})
        DeltaTable(uri).alter.add_columns(added, commit_properties=commit)


def _write_anew(
    rows: DataFrame, uri: str, target: PublishedTable, fields: StructType, run_id: str
) -> None:
    """Replace a table, its columns too, in one commit."""
    if _NAMED_BY_DELTA_RS_ONLY & {*"".join(rows.columns)}:
        schema = pa.schema(Schema.from_json(fields.json()).to_arrow())
        write_deltalake(
            uri,
            rows.toArrow().cast(schema),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=[target.partition],
            commit_properties=CommitProperties({"userMetadata": run_id}),
        )
        return
    (
        rows.repartition(target.partition)
        .write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .option("userMetadata", run_id)
        .partitionBy(target.partition)
        .save(uri)
    )


def _staged_bytes(changes: DataFrame) -> int:
    """The bytes of the staged files in a folder that a diff is read from."""
    return sum(Path(unquote(urlparse(uri).path)).stat().st_size for uri in changes.inputFiles())


def _append(changes: DataFrame, uri: str, target: PublishedTable, run_id: str) -> None:
    # the transaction id is of this run and table: a publish that is done again is skipped by Delta
    (
        changes.drop(OP)
        .repartition(target.partition)
        .write.format("delta")
        .mode("append")
        .option("txnAppId", f"{run_id}/{target.name}")
        .option("txnVersion", 1)
        .option("userMetadata", run_id)
        .save(uri)
    )


def _merge(spark: SparkSession, changes: DataFrame, uri: str, target: PublishedTable) -> None:
    dates = [row[0] for row in changes.select(target.partition).distinct().collect()]
    keys = " AND ".join(f"t.{in_quotes(key)} <=> s.{in_quotes(key)}" for key in target.keys)
    names = [in_quotes(name) for name in changes.columns if name != OP]
    row = {name: f"s.{name}" for name in names}
    (
        SparkDeltaTable.forPath(spark, uri)
        .alias("t")
        .merge(changes.alias("s"), f"{_in_dates(target.partition, dates)} AND {keys}")
        .whenMatchedDelete(f"s.{OP} = '{DELETE}'")
        .whenMatchedUpdate(set=row)  # type: ignore[arg-type]
        .whenNotMatchedInsert(f"s.{OP} <> '{DELETE}'", values=row)  # type: ignore[arg-type]
        .execute()
    )


def _in_dates(partition: str, dates: Sequence[date | None]) -> str:
    """The partitions that a merge touches, as literals: nothing else of the table is read."""
    named = ", ".join(f"DATE'{day.isoformat()}'" for day in dates if day is not None)
    inside = f"t.`{partition}` IN ({named})" if named else "false"
    return f"({inside} OR t.`{partition}` IS NULL)" if None in dates else f"({inside})"
