"""Large diffs: the engine writes files of rows, and one commit of this process makes them count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltalake import DeltaTable, Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import all_of
from strandline.engine.records.days import in_days
from strandline.engine.records.expressions import quoted
from strandline.lake.adopt import Adoption, rows_by_log
from strandline.lake.change_feed import has_change_feed, merge_with_feed
from strandline.lake.diff import DELETE, INSERT, OP
from strandline.lake.places import table_at

_THEIRS = "_strandline_key_{}"


def append(
    adoption: Adoption, table: DeltaTable, rows: DataFrame, inserted: int, application: str
) -> None:
    """Append rows to a table, unless this application id has done so before.

    Args:
        adoption: of the table; call it under the lock.
        table: as it was opened.
        rows: by the names and in the types of the table.
        inserted: how many they are.
        application: the application id.

    Raises:
        RetryableError: the engine has lost rows.
    """
    if table.transaction_version(application) is None:
        written = adoption.write(rows, table)
        adoption.require(written, inserted, inserted)
        adoption.append(table, written, application)


def merge(
    adoption: Adoption,
    table: DeltaTable,
    keys: Sequence[str],
    changes: DataFrame,
    counts: Mapping[str, int],
) -> None:
    """Bring a diff into a table: rows of its keys go, and what it does not delete comes.

    The partitions that it touches are written again. Doing it twice is doing it once. Keys are
    compared null-safely.

    Args:
        adoption: of the table; call it under the lock.
        table: as it was opened.
        keys: the columns that identify a row, by the table's names; its partition is one of them.
        changes: the diff, with `OP`, by the names and in the types of the table.
        counts: what it inserts, updates and deletes.

    Raises:
        InputError: the table has a change data feed that cannot be written for its keys.
        RetryableError: somebody wrote the table meanwhile without the lock, or the engine has lost
            rows.
    """
    days = [row[0] for row in changes.select(adoption.partition).distinct().collect()]
    if has_change_feed(table):
        merge_with_feed(adoption, table, keys, changes, days)
        return
    there = read(changes.sparkSession, adoption, table).where(in_days(adoption.partition, days))
    written = adoption.write(with_changes(there, changes, keys), table)
    before = rows_by_log(table, adoption.partition, days)
    if before is not None:  # of a second attempt rows may have come, or gone, already
        adoption.require(written, before - counts[DELETE], before + counts[INSERT])
    adoption.swap(table, written, days)


def replace(
    adoption: Adoption,
    table: DeltaTable,
    rows: DataFrame,
    inserted: int | None,
    fields: T.StructType,
    part: str = "rows",
) -> None:
    """Put rows, and their columns, in place of all that a table holds.

    Args:
        adoption: of the table; call it under the lock.
        table: as it was opened.
        rows: what it is to hold.
        inserted: how many they are; None: it is not known.
        fields: the columns of the table.
        part: the name of what is written; one attempt writes each into a table once.

    Raises:
        RetryableError: somebody wrote the table meanwhile without the lock, or the engine has lost
            rows.
    """
    written = adoption.write(rows, table, part)
    if inserted is not None:
        adoption.require(written, inserted, inserted)
    adoption.replace(table, written, Schema.from_json(fields.json()))


def read(spark: SparkSession, adoption: Adoption, table: DeltaTable) -> DataFrame:
    """The rows of a table at the version at which it was opened."""
    reader = spark.read.format("delta").option("versionAsOf", table.version())
    return reader.load(table_at(spark, adoption.uri))


def with_changes(there: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Rows with a diff of them brought in; columns that the diff does not have stay as they are."""
    theirs = {key: _THEIRS.format(place) for place, key in enumerate(keys)}
    same_key = all_of(quoted(key).eqNullSafe(F.col(name)) for key, name in theirs.items())
    renamed = [quoted(key).alias(name) for key, name in theirs.items()]
    kept = there.join(changes.select(*renamed), same_key, "left_anti")
    coming = changes.where(F.col(OP) != DELETE).drop(OP)
    lacking = [name for name in there.columns if name not in changes.columns]
    if lacking:
        before = there.select(*renamed, *map(quoted, lacking))
        coming = coming.join(before, same_key, "left")
    return kept.unionByName(coming.select(*map(quoted, there.columns)))
