"""The ledger: an append-only table with a row for each step of each run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from threading import RLock

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from strandline.lake.entry import SCHEMA, Entry, entries_of, row_of
from strandline.lake.format import mark, require_known
from strandline.lake.reads import columns_of, dataset_of_files, paths_of
from strandline.lake.store import Store, storage_errors
from strandline.model.intervals import TimeRange, midnight_before

__all__ = [
    "FINAL",
    "SCHEMA",
    "UPKEEP",
    "Entry",
    "Ledger",
    "begun_drop",
    "clock_start",
    "frontier",
    "frontier_after",
    "largest_horizon",
    "of_these_tables",
    "owed_days",
    "published_into",
    "published_since",
    "taken_back",
    "together",
    "told_of_unfinished",
    "unfinished_publish",
]

UPKEEP = ("maintain", "erase")
"""Kinds of steps that no run has made."""
FINAL = ("published", "repeated", "rejected", "dropped", "failed", "maintained", "erased")
_TOGETHER = ("published", "maintained", "erased")
"""Steps that are written, under the lock, when every table is whole."""
_ENDS = ("published", "dropped")
"""What ends a publish that has begun."""
_MOST_FILES = 32
"""Steps in files of their own: the most that a reader finds, but for those of a race."""


class Ledger:
    """Reads and appends the steps of a pipeline's runs.

    A step is never changed, so that what was read once is remembered: the table is opened once,
    then only the files are read that have come since. Each step comes as a file of its own; once
    there are many, whoever appends the next puts them together into one.
    """

    def __init__(self, store: Store) -> None:
        """The ledger of a pipeline; reading needs no JVM."""
        self._store = store
        self._table: DeltaTable | None = None
        self._read: frozenset[str] = frozenset()
        self._entries: list[Entry] = []
        self._one_thread = RLock()  # no two may use the open table at once

    def entries(self) -> list[Entry]:
        """Every step, oldest first.

        Raises:
            InputError: the lake is in a format of a newer program.
        """
        with self._one_thread:
            table = self._newest()
            if table is not None:
                self._read_on(table, frozenset(paths_of(table)))
            return list(self._entries)

    def append(self, entry: Entry, written_at: datetime) -> int:
        """Append a step in one commit; returns its position."""
        return self.append_named(lambda entries: entry, written_at).position

    def append_named(self, name: Callable[[list[Entry]], Entry], written_at: datetime) -> Entry:
        """Append the first step of a run, whose id follows from those that are there.

        Two drivers at once, which somebody has started for the same run, get an id each.

        Args:
            name: gives the step, from the ledger before it.
            written_at: when.
        """
        with self._one_thread, storage_errors(self._store.root), self._store.ledger_lock():
            entries = self.entries()
            position = entries[-1].position + 1 if entries else 1
            entry = name(entries)
            self._store.append("runs", row_of(entry, position, written_at), to=self._table)
            if (table := self._newest()) is not None:
                mark(table)
            if len(self._read) >= _MOST_FILES and self._store.lake.folder is not None:
                self._compact()
        return replace(entry, position=position)

    def forget(self, positions: Collection[int]) -> None:
        """Remove some steps, in one commit."""
        with self._one_thread, storage_errors(self._store.root), self._store.ledger_lock():
            table = self._newest()
            if table is not None and positions:
                rows = dataset_of_files(table, paths_of(table), columns_of(table))
                gone = ds.field("position").isin(pa.array(positions, pa.int64()))
                write_deltalake(table, rows.to_table(filter=~gone), mode="overwrite")

    def _newest(self) -> DeltaTable | None:
        if self._table is None:
            self._table = self._store.table("runs")
        else:
            self._table.update_incremental()
        if self._table is not None:
            require_known(self._table)
        return self._table

    def _read_on(self, table: DeltaTable, paths: frozenset[str]) -> None:
        """Read the files that have come; all of them once those that were read are compacted."""
        if not self._read <= paths:
            self._read, self._entries = frozenset(), []
        if paths > self._read:
            new = dataset_of_files(table, sorted(paths - self._read), SCHEMA).to_table()
            entries = [*self._entries, *entries_of(new)]
            self._entries = sorted(entries, key=lambda entry: entry.position)
            self._read = paths

    def _compact(self) -> None:
        """Put the steps' files together, and the log into a checkpoint; the step is safe already.

        No row comes or goes with that commit, and the files stay for who has the table open as it
        was. If the store fails, the next step tries again. It needs the lock of a folder: of two
        that meet without one, delta-rs would commit both, and each row would stand there twice.
        """
        self.entries()
        table = self._table
        with suppress(DeltaError, OSError):
            if table is not None:
                table.optimize.compact()
                self._read = frozenset(paths_of(table))  # under the lock they hold what was read
                table.create_checkpoint()


def published_into(entries: list[Entry], within: TimeRange) -> list[Entry]:
    """The published steps whose range shares an instant with one."""
    return [
        entry
        for entry in entries
        if entry.step == "published" and entry.range is not None and entry.range.overlaps(within)
    ]


def taken_back(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """The published steps that a revert has taken back, each with the published one of that.

    The last run that has published into its range is the one that a revert takes back.
    """
    standing: list[Entry] = []
    pairs = []
    for entry in entries:
        if entry.step != "published" or entry.range is None:
            continue
        if entry.kind != "revert":
            standing.append(entry)
            continue
        of_range = (n for n in reversed(range(len(standing))) if standing[n].range == entry.range)
        if (number := next(of_range, None)) is not None:
            pairs.append((standing.pop(number), entry))
    return pairs


def of_these_tables(entries: list[Entry], *, anew: bool = False) -> list[Entry]:
    """The steps of a ledger but for what was published into tables that were created anew since.

    Args:
        entries: the ledger.
        anew: whether they are about to be: then nothing is published.
    """
    again = [entry.position for entry in entries if entry.step == "published" and entry.recreated]
    since = max(again, default=0)
    return [e for e in entries if e.step != "published" or (e.position >= since and not anew)]


def published_since(entries: list[Entry], run: Entry) -> list[Entry]:
    """The published steps since a run's base that touch slots which the run touches too.

    A run that creates the tables anew touches all. And every erasure counts: what the run has read
    may hold the rows that had to leave.
    """
    return [
        entry
        for entry in entries
        if entry.position > run.base
        and entry.run_id != run.run_id
        and (entry.step == "erased" or _meets(entry, run))
    ]


def _meets(published: Entry, run: Entry) -> bool:
    """Whether a step is a published one, and touches slots that a run touches too."""
    if published.step != "published":
        return False
    if run.recreated or published.recreated:
        return True
    one, other = published.touched, run.touched
    return one is not None and other is not None and one.overlaps(other)


def together(entries: list[Entry], run_id: str | None = None) -> Entry | None:
    """The last step that says which versions of all tables belong together; `run_id`: of a run."""
    return next(
        (
            entry
            for entry in reversed(entries)
            if entry.step in _TOGETHER
            and (entry.step == "published" or entry.versions is not None)
            and run_id in {None, entry.run_id}
        ),
        None,
    )


def owed_days(entries: list[Entry]) -> list[date]:
    """The arrival days that are still to be judged again.

    A run settles the days that it knew of: those noted before the ledger's position that it is
    based on, and those that it has noted itself.
    """
    noted: dict[date, Entry] = {}
    for entry in entries:
        if entry.step == "owed":
            noted |= dict.fromkeys(entry.owed or (), entry)
        if entry.step == "published":
            for day in entry.settled or ():
                note = noted.get(day)
                if note and (note.position <= entry.base or note.run_id == entry.run_id):
                    del noted[day]
    return sorted(noted)


def largest_horizon(entries: list[Entry], within: TimeRange) -> int | None:
    """The largest horizon published into any part of a range."""
    horizons = [entry.horizon_ms for entry in published_into(entries, within)]
    return max((ms for ms in horizons if ms is not None), default=None)


def frontier(entries: list[Entry]) -> int | None:
    """The midnight up to which everything that Flink would have said is published."""
    return next((e.frontier_ms for e in reversed(entries) if e.step == "published"), None)


def frontier_after(entries: list[Entry], run: Entry, completes_ms: int | None) -> int | None:
    """The frontier once a run is published.

    Args:
        entries: the ledger before it is.
        run: the run; one by hand that has changed something as of an earlier horizon takes
            knowledge back, and the frontier with it, so that the next scheduled run heals that;
            one that reverts another names the frontier from before that one.
        completes_ms: the midnight up to which the run itself publishes everything.
    """
    reached = frontier(entries)
    if run.kind == "revert":
        stood_ms = run.frontier_ms
        return None if reached is None or stood_ms is None else min(reached, stood_ms)
    if reached is None or completes_ms is None:
        after = completes_ms if reached is None else reached
    else:
        after = max(reached, completes_ms)
    changed = any(any(counts.values()) for counts in (run.diff or {}).values())
    if after is None or run.horizon_ms is None or run.kind == "advance" or not changed:
        return after
    return min(after, midnight_before(run.horizon_ms))


def clock_start(entries: list[Entry]) -> int | None:
    """When the job's clock started, as the first observation has fixed it."""
    return next((e.clock_start_ms for e in entries if e.clock_start_ms is not None), None)


def unfinished_publish(entries: list[Entry]) -> Entry | None:
    """A publish that began, and neither ended nor was dropped: who takes the lock next finishes it.

    A failure on the way is no end: some tables may be written, and others not.
    """
    last: Entry | None = None
    for entry in entries:
        if entry.step == "publishing":
            last = entry
        elif last is not None and entry.run_id == last.run_id and entry.step in _ENDS:
            last = None
    return last


def told_of_unfinished(publish: Entry) -> str:
    """What people are told where a publish is unfinished."""
    return (
        f"run {publish.run_id} has begun to publish and has not ended: everything is shown as it "
        "was before; the next run finishes what has died"
    )


def begun_drop(entries: list[Entry], begun: Entry) -> Entry | None:
    """The step that began to drop a publish: from then on it is taken back, and not finished."""
    return next(
        (e for e in reversed(entries) if e.run_id == begun.run_id and e.step == "dropping"), None
    )
