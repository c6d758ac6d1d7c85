"""publish: the idempotent application of a diff to a published table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from strandline.lake.publish.adopt import Adoption, Attempt, Written, rows_by_log
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE, with_changes
from strandline.lake.publish.batches import in_pieces
from strandline.lake.publish.change_feed import has_change_feed, merge_with_feed
from strandline.lake.publish.staged_diff import Change
from strandline.lake.store.identities import marked
from strandline.lake.store.lock import commit
from strandline.lake.store.places import path_of
from strandline.lake.store.reads import dataset_of, rows_in_days, rows_of
from strandline.lake.store.schema import (
    Fit,
    arrow_of,
    fit,
    mark_of,
    schema_of,
    spark_type,
    with_all_columns,
)
from strandline.lake.store.store import Store
from strandline.tables import FIRING_COLUMNS, NOT_OF_A_FIRING, QUARANTINE, PublishedTable


def firings_schema(windows: StructType) -> StructType:
    """The columns of `firings`, from the columns of `windows`."""
    schema = StructType([field for field in windows.fields if field.name not in NOT_OF_A_FIRING])
    for name, kind in FIRING_COLUMNS.items():
        schema.add(name, spark_type(kind))
    return schema


def create(store: Store, target: PublishedTable, staged: StructType) -> None:
    """Create a table if it does not exist; call it under the lock.

    An existing table gets its second columns here: a diff has no marks, and knows them by name.
    """
    table = store.create(target.name, _as_fields(target, staged), [target.partition])
    if target.holds_source_rows:
        fitted = fit_into(table, target, staged, store.pipeline)
        added = [column for name in fitted.new if mark_of(column := fitted.schema[name])]
        _add(target, added, table, commit(store.uri(target.name)))


def _in_table(target: PublishedTable, columns: Iterable[T.StructField]) -> StructType:
    """New columns of a table; of their metadata only the marks of second columns stay."""
    fields = [
        T.StructField(f.name, f.dataType, nullable=True, metadata=mark_of(f)) for f in columns
    ]
    return StructType([*map(marked, fields)] if target.name == QUARANTINE.name else fields)


def _as_fields(target: PublishedTable, columns: Iterable[T.StructField]) -> Schema:
    """`_in_table` in the form of delta-rs."""
    return Schema.from_json(_in_table(target, columns).json())


def _add(
    target: PublishedTable,
    columns: Sequence[T.StructField],
    table: DeltaTable,
    properties: CommitProperties,
) -> None:
    """Add columns to a table, null in all its rows; without columns there is no commit."""
    if columns:
        fields = _as_fields(target, columns).fields
        table.alter.add_columns(fields, commit_properties=properties)


def fit_into(
    table: DeltaTable,
    target: PublishedTable,
    staged: StructType,
    pipeline: str,
    *,
    has_names_of_table: bool = False,
) -> Fit:
    """The fit of staged columns, or of a diff's, with an open table; see `fit`.

    Raises:
        InputError: a staged column cannot be converted to the table's type without loss.
    """
    columns, place = without_op(staged), f"{pipeline}: {target.name}"
    has_names_of_table |= OP in staged.names
    return fit(columns, schema_of(table), place, target, has_names_of_table=has_names_of_table)


def apply(store: Store, change: Change, attempt: Attempt) -> None:
    """Apply a change to its table in one commit, or in none if it is empty. Call it under the lock.

    Inserts alone are appended. Any other diff rewrites the changed partitions: rows with keys of
    the diff are removed, and its inserted and updated rows are added. A change that replaces
    everything brings its own columns, and the earlier rows remain as an older version. It is
    idempotent. New or wider columns are added to the table first.

    Args:
        store: the pipeline's tables.
        change: the change; if its rows have no `OP`, all of them are inserted.
        attempt: the attempt that publishes; the commit names its run.

    Raises:
        InputError: a column cannot be converted to the table's type without loss, or the table's
            change data feed cannot be written for its keys.
        RetryableError: another process wrote the table without the lock, or staged rows are
            missing.
    """
    target, rows = change.target, change.rows
    adoption = Adoption(store.uri(target.name), target.partition, attempt)
    if change.replaces_all:
        fields = _in_table(target, rows.schema)
        _replace(adoption, rows.rows(), change.counts[INSERT], fields)
        return
    if change.is_empty:
        return
    table = DeltaTable(adoption.uri)
    fitted = fit_into(table, target, rows.schema, store.pipeline)
    if fitted.widened or fitted.new:
        _make_room(target, fitted, adoption)
        table = DeltaTable(adoption.uri)
    applying = _Applying(adoption, table, change, fitted)
    if change.counts[UPDATE] == change.counts[DELETE] == 0:
        applying.append()
    else:
        applying.rewrite_partitions()


@dataclass(frozen=True)
class _Applying:
    """The application of a diff to a table that has all its columns.

    Attributes:
        adoption: writes and commits the table's files.
        table: the open table.
        change: the staged diff.
        fitted: the conversion of its columns to the table's columns.
    """

    adoption: Adoption
    table: DeltaTable
    change: Change
    fitted: Fit

    def append(self) -> None:
        """Append all rows, unless the run has appended them before."""
        target, inserted = self.change.target, self.change.counts[INSERT]
        application = f"{self.adoption.attempt.run_id}/{target.name}"
        if self.table.transaction_version(application) is None:
            linked, others = self._linked()
            rows = (with_all_columns(rows, self._columns) for rows in map(self.fitted.of, others))
            pieces = in_pieces([rows], [target.partition], self._keys)
            written = self.adoption.write((rows for (rows,) in pieces), self.table)
            written += linked
            self.adoption.require(written, inserted, inserted)
            self.adoption.append(self.table, written, application)

    def rewrite_partitions(self) -> None:
        """Rewrite the changed partitions."""
        partition, counts = self.adoption.partition, self.change.counts
        days = {day for rows in self._rows() for day in pc.unique(rows[partition]).to_pylist()}
        if has_change_feed(self.table):
            merge_with_feed(self.adoption, self.table, self._keys, self._rows(), days)
            return
        columns = self._columns
        published = (rows.cast(columns) for rows in rows_in_days(self.table, partition, days))
        pieces = in_pieces([published, self._rows()], [partition], self._keys)
        brought_in = (with_changes(rows, diff, self._keys) for rows, diff in pieces)
        written = self.adoption.write(brought_in, self.table)
        before = rows_by_log(self.table, partition, days)
        # upkeep may have removed rows that the diff updates, and which it brings back; of a second
        # attempt rows may have come, or gone, already
        if before is not None:
            most = before + counts[INSERT] + counts[UPDATE]
            least = before - counts[DELETE]
            self.adoption.require(written, least, most)
        self.adoption.swap(self.table, written, days)

    def _linked(self) -> tuple[Written, Iterator[pa.Table]]:
        """The staged files that are exactly the new rows of a date, and the rows of other files."""
        changes = self.change.rows
        place, names = path_of(changes.place), changes.schema.names
        if place is None or names != [*self.fitted.names.values()] or OP in names:
            return Written([], 0), changes.rows()
        days = changes.files_of_one(self.adoption.partition, self.fitted.arrow)
        linked = self.adoption.link(place, days, self.table)
        return linked, replace(changes, left_out=frozenset(days)).rows()

    @property
    def _columns(self) -> pa.Schema:
        return arrow_of(schema_of(self.table))

    @property
    def _keys(self) -> list[str]:
        """The columns that identify a row, by the table's names."""
        names = {name.lower(): name for name in self._columns.names}
        return [names[key.lower()] for key in self.change.target.keys]

    def _rows(self) -> Iterator[pa.Table]:
        return map(self.fitted.of, self.change.rows.rows())


def without_op(schema: StructType) -> StructType:
    """The columns of a diff without its `OP`."""
    return StructType([field for field in schema.fields if field.name != OP])


def _make_room(target: PublishedTable, fitted: Fit, adoption: Adoption) -> None:
    """Widen the table's columns that are too narrow for staged ones, and add new columns.

    A table is widened by rewriting it in one commit: delta-rs cannot read Delta's type widening.
    """
    if fitted.widened:
        table = DeltaTable(adoption.uri)
        fields = [field for field in fitted.schema.fields if field.name not in fitted.new]
        published = map(fitted.of_published, rows_of(dataset_of(table)))
        count = rows_by_log(table, target.partition)
        _replace(adoption, published, count, StructType(fields), part="wider")
    if fitted.new:
        added = [fitted.schema[name] for name in fitted.new]
        table = DeltaTable(adoption.uri)
        _add(target, added, table, commit(adoption.uri, adoption.attempt.run_id))


def _replace(
    adoption: Adoption,
    rows: Iterable[pa.Table],
    count: int | None,
    fields: StructType,
    part: str = "rows",
) -> None:
    """Replace all rows and the columns of a table.

    Args:
        adoption: writes and commits the table's files.
        rows: batches of its new rows.
        count: their number; None: not known.
        fields: the new columns.
        part: the name of the written part.
    """
    table, columns = DeltaTable(adoption.uri), arrow_of(fields)
    pieces = in_pieces([(some.cast(columns) for some in rows)], [adoption.partition])
    written = adoption.write((piece for (piece,) in pieces), table, part)
    if count is not None:
        adoption.require(written, count, count)
    adoption.replace(table, written, Schema.from_json(fields.json()))
