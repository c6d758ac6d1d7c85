"""Files that a run has written become part of a table, in one commit.

They lie in a folder that is of this attempt alone. They are rows of the table once a commit names
them; what no commit names is removed by the table's upkeep.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, TableFeatures, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from strandline.errors import RetryableError
from strandline.lake.file_statistics import columns_with_bounds, statistics_of
from strandline.lake.lock import commit
from strandline.lake.reads import files_of

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run to publish, by one process.

    Attributes:
        run_id: named by its commits.
        token: no other attempt has it, not even of the same run.
        at_ms: when it began.
    """

    run_id: str
    token: str
    at_ms: int


@dataclass(frozen=True)
class Written:
    """The files of an attempt that hold rows, not yet part of the table."""

    files: list[AddAction]
    rows: int

    def __add__(self, other: Written) -> Written:
        """The files of both."""
        return Written([*self.files, *other.files], self.rows + other.rows)


@dataclass(frozen=True)
class Adoption:
    """Takes the files that a run writes into one table.

    Attributes:
        uri: of the table.
        partition: the date that it is partitioned by.
        attempt: whose files these are.
    """

    uri: str
    partition: str
    attempt: Attempt

    def folder(self, part: str) -> str:
        """Where below the table's root a part of an attempt is written."""
        # upkeep removes what nobody needs, but not from a folder that begins with _ or .
        run = re.sub(r"[^A-Za-z0-9]+", "-", self.attempt.run_id)
        return f"{part}-{run}-{self.attempt.token}"

    def write(self, pieces: Iterable[pa.Table], table: DeltaTable, part: str = "rows") -> Written:
        """Write rows, by the names and in the types of the table, beside its files.

        Args:
            pieces: the rows; of each date that a piece has there is a file.
            table: as it was opened.
            part: the name of what is written; one attempt writes each into a table once.

        Raises:
            FileExistsError: it has been written already.
        """
        files, folder = files_of(table), self.folder(part)
        if files.get_file_info(folder).type != fs.FileType.NotFound:
            raise FileExistsError(f"{self.uri}/{folder} already exists")
        added, count = list[AddAction](), 0
        for number, rows in enumerate(pieces):
            for day, of_day in _by_day(rows, self.partition):
                path = self._path(part, day, f"part-{number:05}.parquet")
                files.create_dir(str(PurePosixPath(path).parent))
                footer = _put(of_day.drop(self.partition), files, path)
                added.append(self._added(path, files, footer, day))
                count += len(of_day)
        return Written(added, count)

    def link(self, place: Path, days: Mapping[str, date | None], table: DeltaTable) -> Written:
        """Make files of a folder of this machine files beside those of the table, without a copy.

        Args:
            place: the folder; its files stay as they are.
            days: the names of the files, each with the date of all its rows.
            table: as it was opened.
        """
        root, files = Path(self.uri), files_of(table)
        added, count = list[AddAction](), 0
        for name, day in days.items():
            path = self._path("staged", day, name)
            _link(place / name, root / path)
            footer = pq.read_metadata(files.open_input_file(path))
            added.append(self._added(path, files, footer, day))
            count += footer.num_rows
        return Written(added, count)

    def require(self, written: Written, least: int, most: int) -> None:
        """Refuse what is written if it is not as many rows as it must be.

        Raises:
            RetryableError: some were lost, or written twice.
        """
        if not least <= written.rows <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            problem = f"{written.rows} rows were written of {wanted}; nothing is published"
            raise RetryableError(self.uri, problem, "try again")

    def append(self, table: DeltaTable, written: Written, application: str) -> None:
        """Make files part of a table; the commit says which application has appended."""
        properties = commit(self.uri, self.attempt.run_id, [Transaction(application, 1)])
        self._commit(table, written.files, properties)

    def swap(self, table: DeltaTable, written: Written, days: Collection[date | None]) -> None:
        """Make files part of a table, in place of all files of some of its partitions.

        Args:
            table: at the version whose rows the files take up.
            written: the files.
            days: the partitions whose files go.
        """
        gone = [
            RemoveAction(
                path=file["path"],
                data_change=True,
                deletion_timestamp=self.attempt.at_ms,
                size=file["size_bytes"],
                partition_values={self.partition: file["day"] and file["day"].isoformat()},
            )
            for file in _files_of(table, self.partition, days)
        ]
        properties = commit(self.uri, self.attempt.run_id)
        self._commit(table, [*written.files, *gone], properties)

    def replace(self, table: DeltaTable, written: Written, schema: Schema) -> None:
        """Make files, and their columns, all that a table holds."""
        features = table.protocol().writer_features or []
        if "timestamp_ntz" in schema.to_json() and "timestampNtz" not in features:
            table.alter.add_feature(
                TableFeatures.TimestampWithoutTimezone,
                allow_protocol_versions_increase=True,
                commit_properties=commit(self.uri, self.attempt.run_id),
            )
        with no_other_writer(self.uri):
            table.create_write_transaction(
                [*written.files],
                "overwrite",
                schema,
                [self.partition],
                commit_properties=commit(self.uri, self.attempt.run_id),
            )

    def _commit(
        self,
        table: DeltaTable,
        actions: Sequence[AddAction | RemoveAction],
        properties: CommitProperties,
    ) -> None:
        with no_other_writer(self.uri):
            table.create_write_transaction(
                [*actions],
                "append",
                table.schema(),
                [self.partition],
                commit_properties=properties,
            )

    def _path(self, part: str, day: date | None, name: str) -> str:
        """Where below the table's root a file of a part is written."""
        of_day = _NULL if day is None else day.isoformat()
        return f"{self.folder(part)}/{self.partition}={of_day}/{name}"

    def _added(
        self, path: str, files: fs.FileSystem, footer: pq.FileMetaData, day: date | None
    ) -> AddAction:
        return AddAction(
            path=path,
            size=files.get_file_info(path).size,
            partition_values={self.partition: None if day is None else day.isoformat()},
            modification_time=self.attempt.at_ms,
            data_change=True,
            stats=statistics_of(footer),
        )


def _link(file: Path, to: Path) -> None:
    """Give a file another name; where a file system cannot, a copy."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        to.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, to)


def _by_day(rows: pa.Table, partition: str) -> Iterator[tuple[date | None, pa.Table]]:
    column = pc.field(partition)
    for day in pc.unique(rows[partition]).to_pylist():
        yield day, rows.filter(column.is_null() if day is None else column == day)


def _put(rows: pa.Table, files: fs.FileSystem, path: str) -> pq.FileMetaData:
    """Write rows into a file; its footer."""
    footers: list[pq.FileMetaData] = []
    with files.open_output_stream(path) as out:
        bounded = columns_with_bounds(rows.schema)
        pq.write_table(
            rows, out, store_schema=False, metadata_collector=footers, write_statistics=bounded
        )
    return footers[0]


def rows_by_log(
    table: DeltaTable, partition: str, days: Collection[date | None] | None = None
) -> int | None:
    """How many rows a table has, or some partitions of it; None: the log of a file does not say."""
    rows = [file["num_records"] for file in _files_of(table, partition, days)]
    return None if None in rows else sum(rows)


def _files_of(
    table: DeltaTable, partition: str, days: Collection[date | None] | None
) -> list[dict[str, Any]]:
    """What the log says of the files of a table, or of some partitions of it."""
    facts = pa.table(table.get_add_actions(flatten=True))
    of = f"partition.{partition}"
    known = facts.select(["path", "size_bytes", "num_records", of]).rename_columns(
        ["path", "size_bytes", "num_records", "day"]
    )
    return [file for file in known.to_pylist() if days is None or file["day"] in days]


@contextmanager
def no_other_writer(place: str) -> Iterator[None]:
    """Say of a commit that another one has come before that it can be tried again."""
    try:
        yield
    except CommitFailedError:
        problem = "somebody wrote it without the pipeline's lock"
        raise RetryableError(place, problem, "try again") from None
