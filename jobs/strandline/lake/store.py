"""Where a pipeline's tables lie, and the small reads and writes that need no JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
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

from strandline.errors import RetryableError, storage_error
from strandline.lake.lock import commit, exclusive, term_of
from strandline.lake.object_store import require_reachable
from strandline.lake.places import is_uri, place_of, require_possible, table_at
from strandline.lake.reads import files_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUBLISHED = ("windows", "firings", "pairs", "quarantine", "completeness")
"""The tables that runs publish; an interval join has `pairs`, other pipelines the first two."""
RESULTS = ("timeline", *PUBLISHED, "runs")
"""The tables of pipelines; those that a pipeline has exist after its first run."""
_CHECKPOINTS = {"delta.checkpointInterval": "10"}
"""As often as Spark writes them: by default delta-rs leaves up to 100 commits to each opening."""


_FENCE = "strandline.lock"
"""The application whose version of a table is the newest term that fenced it."""
_TRIES = 20


@dataclass(frozen=True)
class Lake:
    """A lake root: a folder, or a URI that Spark and delta-rs both read."""

    root: str

    @classmethod
    def at(cls, root: str) -> Lake:
        """The lake at a folder (made absolute, also where it is written as a URI) or a URI.

        Raises:
            InputError: see `place_of`.
        """
        return cls(place_of(root, "lake"))

    @property
    def folder(self) -> Path | None:
        """The lake as a local folder; None on an object store."""
        return None if is_uri(self.root) else Path(self.root)

    def require_reachable(self) -> None:
        """Ask an object store once, so that what is wrong with it has one clear message.

        Raises:
            InputError: it has no such bucket, or refuses the credentials.
            RetryableError: it does not answer.
        """
        if self.folder is None:
            require_reachable(self.root)

    @staticmethod
    def is_catalog_name(table: str) -> bool:
        """Whether a source table is named as `catalog.schema.table`."""
        return re.fullmatch(r"\w+\.\w+\.\w+", table) is not None

    def resolve(self, table: str) -> str:
        """The place of a source table: below the root, or where it says if it is absolute.

        Raises:
            InputError: see `place_of`.
        """
        if is_uri(table) or table.startswith("/"):
            return place_of(table, "source.table")
        place = f"{self.root}/{table}"
        return place if self.folder is None else require_possible(place, "source.table")

    def pipeline(self, name: str) -> Store:
        """The tables of a pipeline."""
        return Store(self, name)


@dataclass(frozen=True)
class Store:
    """The tables of one pipeline.

    Attributes:
        lake: where they lie.
        pipeline: its name.
        pinned: the versions at which tables are read; a published one that is not named did not
            exist then. None: the newest. Whoever writes goes on from the newest all the same.
    """

    lake: Lake
    pipeline: str
    pinned: Mapping[str, int] | None = field(default=None, compare=False)

    @property
    def root(self) -> str:
        """The place below which everything of the pipeline lies."""
        return f"{self.lake.root}/{self.pipeline}"

    def uri(self, table: str) -> str:
        """The place of one of `RESULTS`."""
        return f"{self.root}/{table}"

    def staging(self, run_id: str) -> str:
        """The place of a run's staging."""
        return f"{self.root}/_staging/{run_id}"

    def at(self, versions: Mapping[str, int]) -> Store:
        """The same, where tables are read at these versions; the ledger as it is."""
        return replace(self, pinned={n: v for n, v in versions.items() if n != "runs"})

    def table(self, name: str, version: int | None = None) -> DeltaTable | None:
        """One of the tables, None if it does not exist yet."""
        if version is None and self._is_pinned(name):
            version = (self.pinned or {}).get(name)
            if version is None:
                return None
        try:
            return DeltaTable(self.uri(name), version=version)
        except TableNotFoundError:
            return None

    def newest(self, name: str) -> DeltaTable | None:
        """One of the tables as whoever writes it goes on from it; None: it does not exist yet."""
        return replace(self, pinned=None).table(name)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """One of the tables that exist, for Spark."""
        reader = spark.read.format("delta")
        if self._is_pinned(name):
            reader = reader.option("versionAsOf", (self.pinned or {})[name])
        return reader.load(table_at(spark, self.uri(name)))

    def _is_pinned(self, name: str) -> bool:
        return self.pinned is not None and (name in self.pinned or name in PUBLISHED)

    def rows(self, name: str) -> int:
        """How many rows a table has, by its log; 0 if it does not exist yet."""
        table = self.table(name)
        files = [] if table is None else pa.table(table.get_add_actions())["num_records"]
        return sum(rows.as_py() or 0 for rows in files)

    def version(self, name: str) -> int | None:
        """The newest version of a table, None if it does not exist yet."""
        table = self.table(name)
        return None if table is None else table.version()

    def versions(self, names: Iterable[str] = RESULTS) -> dict[str, int]:
        """The newest version of each of some tables that exists."""
        found = {name: self.version(name) for name in names}
        return {name: version for name, version in found.items() if version is not None}

    def create(
        self, name: str, schema: pa.Schema | Schema, partition_by: Sequence[str] = ()
    ) -> DeltaTable:
        """Create an empty table unless it exists, and open it; call it under the lock.

        One that an earlier program has created gets the properties of those created now.
        """
        table = self.table(name)
        if table is None:
            return DeltaTable.create(
                self.uri(name),
                schema=schema,
                partition_by=list(partition_by),
                mode="ignore",
                configuration=_CHECKPOINTS,
                commit_properties=commit(self.uri(name)),
            )
        if not _CHECKPOINTS.keys() <= table.metadata().configuration.keys():
            properties = commit(self.uri(name))
            table.alter.set_table_properties(_CHECKPOINTS, commit_properties=properties)
        return table

    def append(self, name: str, rows: pa.Table, *, to: DeltaTable | None = None) -> None:
        """Append rows in one commit, with a column that the table lacks if need be.

        Args:
            name: of the table.
            rows: to append.
            to: the table as it was read; None: there was none, and it is created.

        Raises:
            CommitFailedError: somebody has written the table, or created it, since.
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
        """Bring a table back to a version in one commit; none if it holds just that already.

        Call it under the lock.

        Raises:
            DeltaError: the version, or a file of it, is not there any more.
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
        """Hold the lock under which the ledger's next position is found and written.

        On an object store there is none: who finds that the ledger has gone on tries again.
        """
        folder = self.lake.folder
        return (
            nullcontext() if folder is None else exclusive(folder / self.pipeline / "_ledger_lock")
        )

    def files(self) -> fs.FileSystem:
        """All that lies below the pipeline's place, tables or not."""
        return files_at(self.root)

    def keeps_staging(self, run_id: str) -> bool:
        """Whether a run's staging lies there."""
        below = fs.FileSelector(f"_staging/{run_id}", allow_not_found=True, recursive=True)
        return any(one.type == fs.FileType.File for one in self.files().get_file_info(below))

    def drop_staging(self, run_id: str) -> None:
        """Remove a run's staging."""
        with suppress(OSError):
            self.files().delete_dir(f"_staging/{run_id}")

    def _fence(self, term: int) -> None:
        """Give each table a commit on which no writer can follow that opened it before.

        Whoever opens it later finds that the lock has been taken (see `commit`).
        """
        for name in RESULTS:
            for _ in range(_TRIES):
                with suppress(CommitFailedError):
                    self._fence_off(name, term)
                    break
            else:
                raise RetryableError(self.uri(name), "others write it without end", "try again")

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
    """Turn what a store says when it cannot be written into an error that a user can act on."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise (storage_error(place, error, of_a_store=True) or error) from None
