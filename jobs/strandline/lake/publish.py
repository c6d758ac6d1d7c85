"""publish: bring a diff into a published table, so that doing it twice is doing it once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from strandline.lake.adopt import Adoption, Attempt, Written, rows_by_log
from strandline.lake.change_feed import has_change_feed, merge_with_feed
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE, with_changes
from strandline.lake.identities import marked
from strandline.lake.lock import commit
from strandline.lake.pieces import in_pieces
from strandline.lake.places import path_of
from strandline.lake.reads import dataset_of, rows_in_days, rows_of
from strandline.lake.schema import (
    Fit,
    arrow_of,
    fit,
    schema_of,
    second_of,
    spark_type,
    with_all_columns,
)
from strandline.lake.staging import Part
from strandline.lake.store import Store
from strandline.tables import FIRING_COLUMNS, NOT_OF_A_FIRING, QUARANTINE, PublishedTable


def firings_schema(windows: StructType) -> StructType:
    """The columns of `firings` for a pipeline whose windows have these."""
    schema = StructType([field for field in windows.fields if field.name not in NOT_OF_A_FIRING])
    for name, kind in FIRING_COLUMNS.items():
        schema.add(name, spark_type(kind))
    return schema


def create(store: Store, target: PublishedTable, staged: StructType) -> None:
    """Create a table that is not there yet; call it under the lock.

    One that is there gets its second columns here: by their mark a diff knows them (`fit`).
    """
    # nothing of the source's metadata stays
    plain = [
        T.StructField(f.name, f.dataType, nullable=True, metadata=second_of(f, staged))
        for f in staged.fields
    ]
    table = store.create(target.name, _as_fields(target, plain), [target.partition])
    if target.holds_source_rows:
        held = fit_into(table, target, staged, store.pipeline)
        second = [column for column in held.second.values() if column.name in held.new]
        _add(target, second, table, commit(store.uri(target.name)))


def _as_fields(target: PublishedTable, columns: Iterable[T.StructField]) -> Schema:
    """New columns of a table as delta-rs takes them."""
    fields = map(marked, columns) if target.name == QUARANTINE.name else columns
    return Schema.from_json(StructType([*fields]).json())


def _add(
    target: PublishedTable,
    columns: Sequence[T.StructField],
    table: DeltaTable,
    properties: CommitProperties,
) -> None:
    """Add columns to a table, null in all rows that it has; no commit where there are none."""
    if columns:
        fields = _as_fields(target, columns).fields
        table.alter.add_columns(fields, commit_properties=properties)


def hold(store: Store, target: PublishedTable, staged: StructType) -> Fit | None:
    """Hold staged columns against their table; None: it does not exist yet.

    Raises:
        InputError: the table cannot take a column without loss.
    """
    table = store.table(target.name)
    return None if table is None else fit_into(table, target, staged, store.pipeline)


def fit_into(table: DeltaTable, target: PublishedTable, staged: StructType, pipeline: str) -> Fit:
    """How staged columns fit into a table that is open.

    Raises:
        InputError: it cannot take a column without loss.
    """
    return fit(staged, schema_of(table), f"{pipeline}: {target.name}", target)


def publish(
    store: Store,
    target: PublishedTable,
    changes: Part,
    counts: Mapping[str, int],
    attempt: Attempt,
) -> None:
    """Bring a diff into its table in one commit; none if nothing changes. Call it under the lock.

    Rows that only come are appended. Else the partitions that change are written again: rows of the
    keys of the diff go, and what it does not delete comes. Doing it twice is doing it once. Columns
    that are new, or wider than the table has them, are made room for first.

    Args:
        store: the pipeline's tables.
        target: which of them.
        changes: the diff, with `OP`; without it, rows that all come.
        counts: what it inserts, updates and deletes.
        attempt: which no other one is; its run is named in the commit.

    Raises:
        InputError: the table cannot take a column without loss, or has a change data feed that
            cannot be written for its keys.
        RetryableError: somebody wrote the table meanwhile without the lock, or staged rows are
            lost.
    """
    if not any(counts.values()):
        return
    adoption = Adoption(store.uri(target.name), target.partition, attempt)
    table = DeltaTable(adoption.uri)
    fitted = fit_into(table, target, without_op(changes.schema), store.pipeline)
    if fitted.widened or fitted.new:
        _make_room(target, fitted, adoption)
        table = DeltaTable(adoption.uri)
    bringing = _Bringing(adoption, table, target, changes, fitted)
    if counts[UPDATE] == counts[DELETE] == 0:
        bringing.append(counts[INSERT])
    else:
        bringing.merge(counts)


@dataclass(frozen=True)
class _Bringing:
    """A diff on its way into a table that has room for it.

    Attributes:
        adoption: of the table.
        table: as it is open.
        target: which one it is.
        changes: the diff, as it is staged.
        fitted: how its columns become those of the table.
    """

    adoption: Adoption
    table: DeltaTable
    target: PublishedTable
    changes: Part
    fitted: Fit

    def append(self, inserted: int) -> None:
        """Append all rows, unless the run has done so before."""
        application = f"{self.adoption.attempt.run_id}/{self.target.name}"
        if self.table.transaction_version(application) is None:
            linked, others = self._linked()
            rows = (with_all_columns(rows, self._columns) for rows in map(self.fitted.of, others))
            pieces = in_pieces([rows], [self.target.partition], self._keys)
            written = self.adoption.write((rows for (rows,) in pieces), self.table)
            written += linked
            self.adoption.require(written, inserted, inserted)
            self.adoption.append(self.table, written, application)

    def merge(self, counts: Mapping[str, int]) -> None:
        """Write the partitions that change again."""
        partition = self.target.partition
        days = {day for rows in self._rows() for day in pc.unique(rows[partition]).to_pylist()}
        if has_change_feed(self.table):
            merge_with_feed(self.adoption, self.table, self._keys, self._rows(), days)
            return
        columns = self._columns
        there = (rows.cast(columns) for rows in rows_in_days(self.table, partition, days))
        pieces = in_pieces([there, self._rows()], [partition], self._keys)
        brought_in = (with_changes(rows, diff, self._keys) for rows, diff in pieces)
        written = self.adoption.write(brought_in, self.table)
        before = rows_by_log(self.table, partition, days)
        if before is not None:  # of a second attempt rows may have come, or gone, already
            least, most = before - counts[DELETE], before + counts[INSERT]
            self.adoption.require(written, least, most)
        self.adoption.swap(self.table, written, days)

    def _linked(self) -> tuple[Written, Iterator[pa.Table]]:
        """The staged files that are just what shall stand of a date, and the rows of the others."""
        place, changes = path_of(self.changes.place), self.changes
        as_they_are = [f.name for f in self.changes.schema.fields] == [*self.fitted.names.values()]
        if place is None or not as_they_are or OP in changes.schema.names:
            return Written([], 0), changes.rows()
        days = changes.files_of_one(self.target.partition, self.fitted.arrow)
        linked = self.adoption.link(place, days, self.table)
        return linked, replace(changes, left_out=frozenset(days)).rows()

    @property
    def _columns(self) -> pa.Schema:
        return arrow_of(schema_of(self.table))

    @property
    def _keys(self) -> list[str]:
        """The columns that identify a row, by the table's names."""
        names = {name.lower(): name for name in self._columns.names}
        return [names[key.lower()] for key in self.target.keys]

    def _rows(self) -> Iterator[pa.Table]:
        return map(self.fitted.of, self.changes.rows())


def publish_all(
    store: Store, target: PublishedTable, rows: Part, inserted: int, attempt: Attempt
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
        RetryableError: somebody wrote the table meanwhile without the lock, or staged rows are
            lost.
    """
    plain = [T.StructField(f.name, f.dataType, nullable=True) for f in rows.schema.fields]
    fields = StructType([*map(marked, plain)] if target.name == QUARANTINE.name else plain)
    adoption = Adoption(store.uri(target.name), target.partition, attempt)
    _replace(adoption, rows.rows(), inserted, fields)


def without_op(schema: StructType) -> StructType:
    """The columns of a diff without its `OP`."""
    return StructType([field for field in schema.fields if field.name != OP])


def _make_room(target: PublishedTable, held: Fit, adoption: Adoption) -> None:
    """Let a table take staged columns: widen what is too narrow, add what is new.

    Widened by writing all of it, in one commit: delta-rs cannot read Delta's type widening.
    """
    if held.widened:
        table = DeltaTable(adoption.uri)
        fields = [field for field in held.schema.fields if field.name not in held.new]
        there = map(held.of_published, rows_of(dataset_of(table)))
        count = rows_by_log(table, target.partition)
        _replace(adoption, there, count, StructType(fields), part="wider")
    if held.new:
        added = [held.schema[name] for name in held.new]
        table = DeltaTable(adoption.uri)
        _add(target, added, table, commit(adoption.uri, adoption.attempt.run_id))


def _replace(
    adoption: Adoption,
    rows: Iterable[pa.Table],
    count: int | None,
    fields: StructType,
    part: str = "rows",
) -> None:
    """Put rows, and their columns, in place of all that a table holds.

    Args:
        adoption: of the table.
        rows: what it is to hold, some at a time.
        count: how many they are; None: it is not known.
        fields: the columns of the table.
        part: the name of what is written.
    """
    table, columns = DeltaTable(adoption.uri), arrow_of(fields)
    pieces = in_pieces([(some.cast(columns) for some in rows)], [adoption.partition])
    written = adoption.write((piece for (piece,) in pieces), table, part)
    if count is not None:
        adoption.require(written, count, count)
    adoption.replace(table, written, Schema.from_json(fields.json()))
