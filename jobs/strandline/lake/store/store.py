"""The tables of a pipeline in the lake, with reads and writes that need no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from errno import EACCES, EROFS
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import (
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from pyarrow import fs

from strandline.errors import RetryableError, not_writable, storage_error
from strandline.lake.store.lock import commit, exclusive, term_of
from strandline.lake.store.places import table_at
from strandline.lake.store.reads import LOG, files_at, files_below, newest_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from strandline.lake.store.lake import Lake

PUBLISHED = ("windows", "firings", "pairs", "quarantine", "completeness")
"""The published tables of results; an interval join has `pairs`, other pipelines the first two."""
RESULTS = ("timeline", *PUBLISHED, "runs")
"""All tables of pipelines; the tables of a pipeline are created by its first run."""
_PROPERTIES = {
    # as in Spark: delta-rs' default of 100 slows each opening
    "delta.checkpointInterval": "10",
    # of all columns: by default delta-rs has those of the first 32, and `spec_fingerprint` is last
    "delta.dataSkippingNumIndexedCols": "-1",
}
"""The properties of tables: commits between checkpoints, and columns with statistics."""

_FENCE = "strandline.lock"
"""The application id of fencing commits, whose version is the number of the term."""
_TRIES = 20


@dataclass(frozen=True)
class Store:
    """The tables of one pipeline.

    Attributes:
        lake: the lake.
        pipeline: the pipeline's name.
        pinned: the versions at which tables are read; a published table that is not in it did not
            exist then. None: the newest versions. Writes always use the newest version.
    """

    lake: Lake
    pipeline: str
    pinned: Mapping[str, int] | None = field(default=None, compare=False)

    @property
    def root(self) -> str:
        """The folder of the pipeline."""
        return self.lake.root_of(self.pipeline)

    def uri(self, table: str) -> str:
        """The place of a table of `RESULTS`."""
        return f"{self.root}/{table}"

    def staging(self, run_id: str) -> str:
        """The place of a run's staging."""
        return f"{self.root}/_staging/{run_id}"

    def at(self, versions: Mapping[str, int]) -> Store:
        """The store with tables pinned to these versions; the ledger is not pinned."""
        return replace(self, pinned={n: v for n, v in versions.items() if n != "runs"})

    def table(self, name: str, version: int | None = None) -> DeltaTable | None:
        """A table at its pinned or newest version; None if it does not exist."""
        if version is None and self._is_pinned(name):
            version = (self.pinned or {}).get(name)
            if version is None:
                return None
        try:
            return DeltaTable(self.uri(name), version=version)
        except TableNotFoundError:
            return None

    def newest(self, name: str) -> DeltaTable | None:
        """A table at its newest version, for a write; None if it does not exist."""
        return replace(self, pinned=None).table(name)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """An existing table as a DataFrame."""
        reader, version = spark.read.format("delta"), None
        if self._is_pinned(name):
            version = (self.pinned or {})[name]
            reader = reader.option("versionAsOf", version)
        return reader.load(table_at(spark, self.uri(name), version))

    def _is_pinned(self, name: str) -> bool:
        return self.pinned is not None and (name in self.pinned or name in PUBLISHED)

    def rows(self, name: str) -> int:
        """The number of rows of a table, from its log; 0 if it does not exist."""
        table = self.table(name)
        files = [] if table is None else pa.table(table.get_add_actions())["num_records"]
        return sum(rows.as_py() or 0 for rows in files)

    def version(self, name: str) -> int | None:
        """The newest version of a table; None if it does not exist."""
        if self.lake.folder is not None and not self._is_pinned(name):
            return newest_version(Path(self.uri(name)))
        table = self.table(name)
        return None if table is None else table.version()

    def versions(self, names: Iterable[str] = RESULTS) -> dict[str, int]:
        """The newest versions of the existing ones of some tables."""
        found = {name: self.version(name) for name in names}
        return {name: version for name, version in found.items() if version is not None}

    def create(
        self, name: str, schema: pa.Schema | Schema, partition_by: Sequence[str] = ()
    ) -> DeltaTable:
        """Open a table, after creating it empty if it does not exist; call it under the lock.

        A table created by an earlier version gets the properties of new tables.
        """
        table = self.table(name)
        if table is None:
            return DeltaTable.create(
                self.uri(name),
                schema=schema,
                partition_by=list(partition_by),
                mode="ignore",
                configuration=_PROPERTIES,
                commit_properties=commit(self.uri(name)),
            )
        if not _PROPERTIES.keys() <= table.metadata().configuration.keys():
            properties = commit(self.uri(name))
            table.alter.set_table_properties(_PROPERTIES, commit_properties=properties)
        return table

    def append(self, name: str, rows: pa.Table, *, to: DeltaTable | None = None) -> None:
        """Append rows in one commit; columns that the table lacks are added.

        Args:
            name: the table's name.
            rows: the rows.
            to: the open table; None: it did not exist, and is created.

        Raises:
            CommitFailedError: another process has written or created the table since.
        """
        try:
            write_deltalake(
                self.uri(name) if to is None else to,
                rows,
                mode="error" if to is None else "append",
                schema_mode=None if to is None else "merge",
                # it looks through the whole log: whoever compacts the table does so
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                commit_properties=commit(self.uri(name)),
            )
        except DeltaError:
            if to is None and self.table(name) is not None:
                raise CommitFailedError(f"{name} has been created by another writer") from None
            raise

    def restore(self, name: str, version: int, run_id: str) -> None:
        """Restore a table to a version in one commit, or in none if it has the same files.

        Call it under the lock.

        Raises:
            DeltaError: the version, or one of its files, has been removed.
        """
        table, then = DeltaTable(self.uri(name)), DeltaTable(self.uri(name), version=version)
        same_files = set(table.file_uris()) == set(then.file_uris())
        if not same_files or table.schema() != then.schema():
            table.restore(version, commit_properties=commit(self.uri(name), run_id))

    def empty(self, name: str, run_id: str) -> None:
        """Delete all rows of a table in one commit; call it under the lock."""
        table = DeltaTable(self.uri(name))
        table.delete(commit_properties=commit(self.uri(name), run_id))

    def lock(self) -> AbstractContextManager[None]:
        """Hold the pipeline's lock."""
        folder = self.lake.folder
        if folder is None:
            return term_of(self.root, self._fence)
        return exclusive(folder / self.pipeline / "_lock")

    def ledger_lock(self) -> AbstractContextManager[None]:
        """Hold the lock for an append to the ledger.

        On an object store there is none: an append that conflicts with another one is retried.
        """
        folder = self.lake.folder
        return (
            nullcontext() if folder is None else exclusive(folder / self.pipeline / "_ledger_lock")
        )

    def files(self) -> fs.FileSystem:
        """All files of the pipeline, tables and others."""
        return files_at(self.root)

    def require_writable(self) -> None:
        """Check that the folders of existing tables on this machine may be written.

        Folders of their partitions are not looked at.

        Raises:
            InputError: one may not; a run would end in the middle of its publishing.
        """
        if self.lake.folder is None:
            return
        tables = [Path(self.uri(name), below) for name in RESULTS for below in ("", LOG)]
        for folder in [Path(self.root, "_staging"), *tables]:
            if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
                is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
                code = EROFS if is_read_only else EACCES
                raise not_writable(str(folder), OSError(code, os.strerror(code)))

    def keeps_staging(self, run_id: str) -> bool:
        """Whether a run's staging exists."""
        return bool(files_below(self.files(), f"_staging/{run_id}"))

    def drop_staging(self, run_id: str) -> None:
        """Remove a run's staging."""
        with suppress(OSError):
            self.files().delete_dir(f"_staging/{run_id}")

    def _fence(self, term: int) -> None:
        """Commit to each table, so that writers which opened it before have a conflict.

        Writers that open it later find that they have lost the lock (see `commit`).
        """
        for name in RESULTS:
            for _ in range(_TRIES):
                with suppress(CommitFailedError):
                    self._fence_off(name, term)
                    break
            else:
                raise RetryableError(self.uri(name), "other processes keep writing it", "try again")

    def _fence_off(self, name: str, term: int) -> None:
        table = self.newest(name)
        if table is None:
            return
        table.create_write_transaction(
            [],
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=commit(self.uri(name), "lock", [Transaction(_FENCE, term)]),
        )


@contextmanager
def storage_errors(place: str) -> Iterator[None]:
    """Turn errors of writes to a store into errors with a way out."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise (storage_error(place, error, of_a_store=True) or error) from None
