"""Files that an engine has written become part of a table, in one commit of this process.

An engine may outlive the process that asked it to write, and write on. So it only ever writes
Parquet files into a folder that is of this attempt alone; they are rows of the table once a commit
names them, and what no commit names is removed by the table's upkeep.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, TableFeatures, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from strandline.errors import RetryableError
from strandline.lake.file_statistics import statistics_of
from strandline.lake.reads import files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NULL = "__HIVE_DEFAULT_PARTITION__"
_FOOTERS_AT_ONCE = 8


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


@dataclass(frozen=True)
class Adoption:
    """Takes the files that an engine writes into one table.

    Attributes:
        uri: of the table, as the engine reads it.
        partition: the date that it is partitioned by.
        attempt: whose files these are.
    """

    uri: str
    partition: str
    attempt: Attempt

    def folder(self, part: str) -> str:
        """Where below the table's root the engine writes a part of an attempt."""
        # upkeep removes what nobody needs, but not from a folder that begins with _ or .
        run = re.sub(r"[^A-Za-z0-9]+", "-", self.attempt.run_id)
        return f"{part}-{run}-{self.attempt.token}"

    def write(self, rows: DataFrame, table: DeltaTable, part: str = "rows") -> Written:
        """Let the engine write rows, by the names and in the types of the table, beside its files.

        Args:
            rows: what is written.
            table: as it was opened.
            part: the name of what is written; one attempt writes each into a table once.
        """
        # a run that only repeats one imports this module, and need not load PySpark
        from pyspark.sql import functions as F  # noqa: PLC0415

        from strandline.lake.sessions.protocol import session_of  # noqa: PLC0415

        folder = self.folder(part)
        # as a text: of a date that is null Sail names the folder by the first of 1970
        named = F.coalesce(F.col(self.partition).cast("string"), F.lit(_NULL))
        partitioned = rows.withColumn(self.partition, named).repartition(self.partition)
        place = session_of(rows.sparkSession).to_write(f"{self.uri}/{folder}")
        partitioned.write.partitionBy(self.partition).parquet(place)
        return self._written(files_of(table), folder)

    def require(self, written: Written, least: int, most: int) -> None:
        """Refuse what an engine has written if it is not as many rows as it must be.

        Raises:
            RetryableError: it has lost some, or written some twice.
        """
        if not least <= written.rows <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            problem = f"{written.rows} rows were written of {wanted}; nothing is published"
            raise RetryableError(self.uri, problem, "try again")

    def append(self, table: DeltaTable, written: Written, application: str) -> None:
        """Make files part of a table; the commit says which application has appended."""
        properties = CommitProperties(
            {"userMetadata": self.attempt.run_id}, app_transactions=[Transaction(application, 1)]
        )
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
        properties = CommitProperties({"userMetadata": self.attempt.run_id})
        self._commit(table, [*written.files, *gone], properties)

    def replace(self, table: DeltaTable, written: Written, schema: Schema) -> None:
        """Make files, and their columns, all that a table holds."""
        properties = CommitProperties({"userMetadata": self.attempt.run_id})
        features = table.protocol().writer_features or []
        if "timestamp_ntz" in schema.to_json() and "timestampNtz" not in features:
            table.alter.add_feature(
                TableFeatures.TimestampWithoutTimezone,
                allow_protocol_versions_increase=True,
                commit_properties=properties,
            )
        with no_other_writer(self.uri):
            table.create_write_transaction(
                [*written.files],
                "overwrite",
                schema,
                [self.partition],
                commit_properties=properties,
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

    def _written(self, files: fs.FileSystem, folder: str) -> Written:
        sizes = parquet_files(files, folder)
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            footers = pool.map(partial(pq.read_metadata, filesystem=files), sizes)
            held = {path: foot for path, foot in zip(sizes, footers, strict=True) if foot.num_rows}
        actions = [
            AddAction(
                path=path,
                size=sizes[path],
                partition_values={self.partition: _value(path, self.partition)},
                modification_time=self.attempt.at_ms,
                data_change=True,
                stats=statistics_of(footer),
            )
            for path, footer in held.items()
        ]
        return Written(actions, sum(footer.num_rows for footer in held.values()))


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


def parquet_files(files: fs.FileSystem, folder: str) -> dict[str, int]:
    """The bytes of the files below a folder; what an engine notes beside them is left out."""
    below = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    sizes = {
        one.path.lstrip("/"): one.size
        for one in files.get_file_info(below)
        if one.type == fs.FileType.File
    }
    return {
        path: sizes[path]
        for path in sorted(sizes)
        if not any(part.startswith(("_", ".")) for part in PurePosixPath(path).parts)
    }


@contextmanager
def no_other_writer(place: str) -> Iterator[None]:
    """Say of a commit that another one has come before that it can be tried again."""
    try:
        yield
    except CommitFailedError:
        problem = "somebody wrote it without the pipeline's lock"
        raise RetryableError(place, problem, "try again") from None


def _value(path: str, partition: str) -> str | None:
    """The partition of a file, by the folder that it lies in."""
    (value,) = (
        part.removeprefix(f"{partition}=")
        for part in PurePosixPath(path).parts
        if part.startswith(f"{partition}=")
    )
    return None if value == _NULL else unquote(value)
