"""Commits that add the files of a run to a table.

The files are in a folder of this attempt alone. They become rows of the table when a commit names
them; files that no commit names are removed by the table's upkeep.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, TableFeatures, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from strandline.errors import RetryableError
from strandline.lake.publish.file_statistics import (
    columns_with_bounds,
    nulls_of_floating_columns,
    statistics_of,
)
from strandline.lake.store.lock import commit
from strandline.lake.store.reads import files_of

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run to publish, by one process.

    Attributes:
        run_id: the run's id, which its commits name.
        token: an id of the attempt; other attempts of the same run have others.
        at_ms: its start.
    """

    run_id: str
    token: str
    at_ms: int


@dataclass(frozen=True)
class Written:
    """The written files of an attempt, which are not yet part of the table."""

    files: list[AddAction]
    rows: int

    def __add__(self, other: Written) -> Written:
        """The files of both values."""
        return Written([*self.files, *other.files], self.rows + other.rows)


@dataclass(frozen=True)
class Adoption:
    """Writes files for one table, and commits them.

    Attributes:
        uri: the table's URI.
        partition: the table's partition column, a date.
        attempt: the attempt that writes.
    """

    uri: str
    partition: str
    attempt: Attempt

    def folder(self, part: str) -> str:
        """The folder of a part, below the table's root."""
        # upkeep removes what nobody needs, but not from a folder that begins with _ or .
        run = re.sub(r"[^A-Za-z0-9]+", "-", self.attempt.run_id)
        return f"{part}-{run}-{self.attempt.token}"

    def write(self, pieces: Iterable[pa.Table], table: DeltaTable, part: str = "rows") -> Written:
        """Write rows with the names and types of the table.

        Args:
            pieces: the rows; each piece has a file for each of its dates.
            table: the open table.
            part: the name of the part; an attempt writes each part once.

        Raises:
            FileExistsError: the part has been written before.
        """
        files, folder = files_of(table), self.folder(part)
        if files.get_file_info(folder).type != fs.FileType.NotFound:
            raise FileExistsError(f"{self.uri}/{folder} already exists")
        added, count = list[AddAction](), 0
        for number, rows in enumerate(pieces):
            for day, of_day in _by_day(rows, self.partition):
                path = self._path(part, day, f"part-{number:05}.parquet")
                files.create_dir(str(PurePosixPath(path).parent))
                stats = _put(of_day.drop(self.partition), files, path)
                added.append(self._added(path, files, stats, day))
                count += len(of_day)
        return Written(added, count)

    def link(self, place: Path, days: Mapping[str, date | None], table: DeltaTable) -> Written:
        """Link files of a local folder into the table's folder, without a copy.

        Args:
            place: the folder; its files do not change.
            days: the names of the files, with the date of all rows of each.
            table: the open table.
        """
        root, files = Path(self.uri), files_of(table)
        added, count = list[AddAction](), 0
        for name, day in days.items():
            path = self._path("staged", day, name)
            _link(place / name, root / path)
            footer = pq.read_metadata(files.open_input_file(path))
            added.append(self._added(path, files, statistics_of(footer), day))
            count += footer.num_rows
        return Written(added, count)

    def require(self, written: Written, least: int, most: int) -> None:
        """Check the number of written rows.

        Raises:
            RetryableError: rows are missing, or written twice.
        """
        if not least <= written.rows <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            problem = f"{written.rows} rows were written instead of {wanted}; nothing is published"
            raise RetryableError(self.uri, problem, "try again")

    def append(self, table: DeltaTable, written: Written, application: str) -> None:
        """Add files to a table by a commit that names the application's transaction."""
        self._commit(table, written.files, transactions=[Transaction(application, 1)])

    def swap(self, table: DeltaTable, written: Written, days: Collection[date | None]) -> None:
        """Replace all files of some partitions of a table.

        Args:
            table: the table at the version from which the files were computed.
            written: the new files.
            days: the partitions whose files are removed.
        """
        removed = [
            RemoveAction(
                path=file["path"],
                data_change=True,
                deletion_timestamp=self.attempt.at_ms,
                size=file["size_bytes"],
                partition_values={self.partition: file["day"] and file["day"].isoformat()},
            )
            for file in _files_of(table, self.partition, days)
        ]
        self._commit(table, [*written.files, *removed])

    def replace(self, table: DeltaTable, written: Written, schema: Schema) -> None:
        """Replace all files and the schema of a table."""
        features = table.protocol().writer_features or []
        if "timestamp_ntz" in schema.to_json() and "timestampNtz" not in features:
            table.alter.add_feature(
                TableFeatures.TimestampWithoutTimezone,
                allow_protocol_versions_increase=True,
                commit_properties=commit(self.uri, self.attempt.run_id),
            )
        self._commit(table, written.files, mode="overwrite", schema=schema)

    def _commit(
        self,
        table: DeltaTable,
        actions: Sequence[AddAction | RemoveAction],
        *,
        mode: Literal["append", "overwrite"] = "append",
        schema: Schema | None = None,
        transactions: Sequence[Transaction] = (),
    ) -> None:
        with no_other_writer(self.uri):
            table.create_write_transaction(
                [*actions],
                mode,
                table.schema() if schema is None else schema,
                [self.partition],
                commit_properties=commit(self.uri, self.attempt.run_id, transactions),
            )

    def _path(self, part: str, day: date | None, name: str) -> str:
        """The path of a file of a part, below the table's root."""
        of_day = _NULL if day is None else day.isoformat()
        return f"{self.folder(part)}/{self.partition}={of_day}/{name}"

    def _added(self, path: str, files: fs.FileSystem, stats: str, day: date | None) -> AddAction:
        return AddAction(
            path=path,
            size=files.get_file_info(path).size,
            partition_values={self.partition: None if day is None else day.isoformat()},
            modification_time=self.attempt.at_ms,
            data_change=True,
            stats=stats,
        )


def _link(file: Path, to: Path) -> None:
    """Link a file, or copy it if the file system has no hard links."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        to.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, to)


def _by_day(rows: pa.Table, partition: str) -> Iterator[tuple[date | None, pa.Table]]:
    column = pc.field(partition)
    for day in pc.unique(rows[partition]).to_pylist():
        yield day, rows.filter(column.is_null() if day is None else column == day)


def _put(rows: pa.Table, files: fs.FileSystem, path: str) -> str:
    """Write rows into a file; its statistics for the log."""
    footers: list[pq.FileMetaData] = []
    with files.open_output_stream(path) as out:
        bounded = columns_with_bounds(rows.schema)
        pq.write_table(
            rows, out, store_schema=False, metadata_collector=footers, write_statistics=bounded
        )
    return statistics_of(footers[0], nulls_of_floating_columns(rows))


def rows_by_log(
    table: DeltaTable, partition: str, days: Collection[date | None] | None = None
) -> int | None:
    """The number of rows of a table or some partitions; None if the log lacks it for a file."""
    rows = [file["num_records"] for file in _files_of(table, partition, days)]
    return None if None in rows else sum(rows)


def _files_of(
    table: DeltaTable, partition: str, days: Collection[date | None] | None
) -> list[dict[str, Any]]:
    """The log's entries of the files of a table, or of some of its partitions."""
    facts = pa.table(table.get_add_actions(flatten=True))
    of = f"partition.{partition}"
    known = facts.select(["path", "size_bytes", "num_records", of]).rename_columns(
        ["path", "size_bytes", "num_records", "day"]
    )
    return [file for file in known.to_pylist() if days is None or file["day"] in days]


@contextmanager
def no_other_writer(place: str) -> Iterator[None]:
    """Turn a conflict with another commit into a RetryableError."""
    try:
        yield
    except CommitFailedError:
        problem = "another process wrote it without the pipeline's lock"
        raise RetryableError(place, problem, "try again") from None
