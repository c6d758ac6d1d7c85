"""A diff of any size, which is computed and staged in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import types as T

from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE, diff, names_rows_twice
from strandline.lake.publish.batches import ROWS, in_pieces, sums_by
from strandline.lake.publish.staging import Part, Staging
from strandline.lake.store.schema import Fit, with_all_columns
from strandline.tables import PublishedTable


@dataclass(frozen=True)
class Compared:
    """The inputs of a diff: staged rows, and the published rows of the same scope.

    Attributes:
        target: the table.
        staged: batches of the staged rows; the first batch may be empty.
        published: batches of the published rows; the first batch may be empty.
        fitted: the fit of staged columns with the table.
        keep: whether a published column that is not staged any more keeps its values; else it
            becomes null.
        may_go: a condition for published rows that are deleted if they are not staged; None: all.
    """

    target: PublishedTable
    staged: Iterable[pa.Table]
    published: Iterable[pa.Table]
    fitted: Fit
    keep: bool = False
    may_go: ds.Expression | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that identify a row, by the names of the table."""
        return [self.fitted.names.get(key, key) for key in self.target.keys]


@dataclass(frozen=True)
class Change:
    """The staged changes of one table.

    Attributes:
        target: the table.
        rows: the rows to insert, update and delete, with `OP`; or all rows to insert, without it.
        counts: the numbers of inserts, updates and deletes.
        whole: whether `rows` is a whole staged part, as nothing was published in its scope.
        replaces_all: whether the rows replace everything in the table, whatever its columns.
        names_rows_twice: whether it changes two published rows with the same key.
    """

    target: PublishedTable
    rows: Part
    counts: dict[str, int]
    whole: bool = False
    replaces_all: bool = False
    names_rows_twice: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it inserts, updates and deletes no row."""
        return not any(self.counts.values())


def whole_part(target: PublishedTable, staged: Part) -> Change:
    """The change that inserts a staged part as it is."""
    return Change(target, staged, {INSERT: staged.count(), UPDATE: 0, DELETE: 0}, whole=True)


def to_publish(key: Iterable[str], changes: Sequence[Change]) -> ToPublish:
    """The changes of a run as its ledger steps have them; `key`: its pipeline's key columns."""
    return ToPublish(
        key=tuple(key),
        pairs_of_windows=any(change.target.has_pairs_of_windows for change in changes),
        parts=tuple(change.target.name for change in changes),
        whole=tuple(change.target.name for change in changes if change.whole),
        replaced=tuple(change.target.name for change in changes if change.replaces_all),
    )


def stage_diff(staging: Staging, name: str, compared: Compared) -> Change:
    """Compute a diff and stage it as a part of a run; see `diff`."""
    fields = [T.StructField(OP, T.StringType()), *compared.fitted.schema.fields]
    schema = T.StructType(fields)
    twice = list[bool]()

    def found() -> Iterator[pa.Table]:
        for changes in _diffs(compared):
            twice.append(names_rows_twice(changes, compared.keys))
            yield changes

    part = replace(staging.put(name, found()), schema=schema)
    return Change(compared.target, part, counts_of(part), names_rows_twice=any(twice))


def counts_of(part: Part) -> dict[str, int]:
    """The numbers of inserts, updates and deletes of a staged diff."""
    counted = {row[OP]: row[ROWS] for row in counted_by(part, [OP])}
    return {op: counted.get(op, 0) for op in (INSERT, UPDATE, DELETE)}


def counted_by(part: Part, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The number of rows of a diff by the values of some columns and of `OP`, as column `ROWS`.

    A part without `OP` is a diff that inserts all its rows.
    """
    existing = [name for name in columns if name != OP or OP in part.schema.names]
    counted = sums_by(part.rows(columns=existing), existing).to_pylist()
    return [{OP: INSERT} | row for row in counted]


def rows_with(part: Part, op: str) -> Iterator[pa.Table]:
    """The rows of a diff with an operation, in batches."""
    if OP not in part.schema.names:
        return part.rows()
    return (rows.drop(OP) for rows in part.rows(ds.field(OP) == op))


def _diffs(compared: Compared) -> Iterator[pa.Table]:
    fitted, columns = compared.fitted, compared.fitted.arrow
    kept = fitted.not_staged if compared.keep else ()
    sides = (
        (with_all_columns(fitted.of(rows), columns) for rows in compared.staged),
        (with_all_columns(fitted.of_published(rows), columns) for rows in compared.published),
    )
    for staged, published in in_pieces(sides, compared.keys):
        changes = diff(staged, published, compared.keys, kept)
        if compared.may_go is not None:
            changes = changes.filter((ds.field(OP) != DELETE) | compared.may_go)
        yield changes
