"""The ledger: an append-only table with a row for each step of each run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from threading import RLock

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from strandline.errors import NoRunsError, RetryableError
from strandline.lake.ledger.entry import SCHEMA, Entry, entries_of, row_of
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.durable import flush
from strandline.lake.store.format import mark, require_known
from strandline.lake.store.lock import commit
from strandline.lake.store.reads import columns_of, dataset_of_files, paths_below
from strandline.lake.store.store import Store, storage_errors

FINAL = (
    "published",
    "repeated",
    "already_processed",
    "rejected",
    "dropped",
    "failed",
    "maintained",
    "erased",
    "acknowledged",
)
UNDERWAY = (
    "started",
    "owed",
    "observed",
    "staged",
    "audited",
    "prepared",
    "publishing",
    "dropping",
    "erasing",
)
"""All other steps. A later version may write further ones, as it may write further kinds."""
OF_RUNS = ("advance", "backfill", "revert")
"""Kinds of steps that belong to a run. A later version may write kinds that are not here and not in
`UPKEEP`; where an earlier one must not ignore them, the tables have a newer format."""
_STORED_BEFORE = ("observed", "publishing", "published", "erased")
"""Steps that name rows of other tables or staged files, which must be durable before the step."""
_STORED_AFTER = ("publishing", "published", "erased")
"""Steps before a write to tables or a removal of files, which must be durable at once."""
_MOST_FILES = 32
"""The largest number of the steps' files; when there are more, they are compacted."""

_TRIES = 100


class Ledger:
    """Reads and appends the steps of a pipeline's runs.

    Steps are never changed, so the ledger is read incrementally: the table is opened once, and then
    only new files are read and folded, and none of the steps that it has appended itself. Each step
    is one file; when there are many, the next append compacts them.
    """

    def __init__(self, store: Store) -> None:
        """The ledger of a pipeline."""
        self.store = store
        self._table: DeltaTable | None = None
        self._version: int | None = None
        self._read: frozenset[str] = frozenset()
        self._state = PipelineState()
        self._one_thread = RLock()  # no two may use the open table at once

    def state(self) -> PipelineState:
        """The state after all steps that are written by now.

        Raises:
            InputError: the lake has a format of a newer program.
        """
        with self._one_thread:
            table = self._newest()
            if table is not None and table.version() != self._version:
                self._read_on(table, _files_of(table))
                self._version = table.version()
            return self._state

    def state_after_runs(self) -> PipelineState:
        """The state of a pipeline that has run.

        Raises:
            InputError: the lake has a format of a newer program.
            NoRunsError: nothing has run yet.
        """
        state = self.state()
        if not state.steps:
            raise NoRunsError(self.store.pipeline, self.store.lake.root)
        return state

    def entries(self) -> list[Entry]:
        """Every step, oldest first."""
        return [*self.state().steps]

    def append(self, entry: Entry, written_at: datetime) -> int:
        """Append a step in one commit; returns its position."""
        return self.append_named(lambda state: entry, written_at).position

    def append_named(self, name: Callable[[PipelineState], Entry], written_at: datetime) -> Entry:
        """Append the first step of a run, whose id depends on the existing runs.

        Two drivers that append at once for the same run get different ids.

        Args:
            name: makes the step from the state before it.
            written_at: the time of the step.
        """
        with self._one_thread, storage_errors(self.store.root), self.store.ledger_lock():
            written = self._append(name, written_at)
            self._flush(_STORED_AFTER, written)
            if (table := self._newest()) is not None:
                with suppress(CommitFailedError):  # whoever was quicker has marked it
                    mark(table)
            if len(self._read) > _MOST_FILES:
                self._compact()
        return written

    def _append(self, name: Callable[[PipelineState], Entry], written_at: datetime) -> Entry:
        """Append a step, and retry if another step was appended at the same time."""
        for _ in range(_TRIES):
            state = self.state()
            entry = replace(name(state), position=state.position + 1)
            self._flush(_STORED_BEFORE, entry)
            rows = row_of(entry, entry.position, written_at)
            try:
                self.store.append("runs", rows, to=self._table)
            except CommitFailedError:
                # the answer to a commit may have been lost, and the request repeated
                if self._is_appended(entry):
                    return entry
            else:
                self._fold_appended(rows)
                return entry
        raise RetryableError(self.store.uri("runs"), "other processes keep writing it", "try again")

    def _fold_appended(self, rows: pa.Table) -> None:
        """Fold a step that was just appended without reading its file.

        If there are other new commits, `state` reads all of them.
        """
        table = self._table
        if table is not None and self._version is not None and table.version() == self._version + 1:
            self._state = self._state.after(entries_of(rows))
            self._read, self._version = _files_of(table), table.version()

    def _is_appended(self, entry: Entry) -> bool:
        return any(
            (step.position, step.run_id, step.step, step.driver)
            == (entry.position, entry.run_id, entry.step, entry.driver)
            for step in self.state().steps
        )

    def _flush(self, steps: Collection[str], entry: Entry) -> None:
        folder = self.store.lake.folder
        if folder is not None and entry.step in steps:
            flush(folder)

    def forget(self, positions: Collection[int]) -> None:
        """Remove some steps in one commit."""
        with self._one_thread, storage_errors(self.store.root), self.store.ledger_lock():
            table = self._newest()
            if table is not None and positions:
                rows = dataset_of_files(table, sorted(_files_of(table)), columns_of(table))
                removed = ds.field("position").isin(pa.array(positions, pa.int64()))
                write_deltalake(
                    table,
                    rows.to_table(filter=~removed),
                    mode="overwrite",
                    commit_properties=commit(self.store.uri("runs")),
                )

    def _newest(self) -> DeltaTable | None:
        if self._table is None:
            self._table = self.store.table("runs")
        else:
            self._table.update_incremental()
        if self._table is not None:
            require_known(self._table)
        return self._table

    def _read_on(self, table: DeltaTable, paths: frozenset[str]) -> None:
        """Read new files; all files if the known ones have been compacted."""
        if not self._read <= paths:
            self._read, self._state = frozenset(), PipelineState()
        if paths > self._read:
            rows = dataset_of_files(table, sorted(paths - self._read), SCHEMA).to_table()
            more = sorted(entries_of(rows), key=lambda step: step.position)
            if more and more[0].position <= self._state.position:  # of a race without a lock
                more = sorted([*self._state.steps, *more], key=lambda step: step.position)
                self._state = PipelineState()
            self._state = self._state.after(more)
            self._read = paths

    def _compact(self) -> None:
        """Compact the steps' files, and write a checkpoint of the log.

        The commit adds or removes no rows, and the old files stay for readers of older versions. If
        it fails, or conflicts with another step, the next step tries again.
        """
        self.state()
        table = self._table
        with suppress(DeltaError, OSError):
            if table is not None:
                table.optimize.compact(commit_properties=commit(self.store.uri("runs")))
                self._read = _files_of(table)  # of just the version that was read
                table.create_checkpoint()


def _files_of(table: DeltaTable) -> frozenset[str]:
    """The paths of the ledger's files, without their statistics, which take a millisecond."""
    return frozenset(paths_below(table, table.file_uris()))
