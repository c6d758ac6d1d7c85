"""The ledger's files are put together, and no step is lost by it, whoever races or dies. No JVM."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from subprocess import Popen, run

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.table import TableOptimizer

from strandline.lake.ledger import ledger as ledgers
from strandline.lake.ledger.entry import SCHEMA, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.books import Book
from strandline.model.intervals import DAY_MS, TimeRange

NOW = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)
MOST = 4


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(ledgers, "_MOST_FILES", MOST)
    return Lake.at(str(tmp_path)).pipeline("meter")


@pytest.fixture
def files_read(monkeypatch):
    """The names of the ledger's files, in the order in which they are read."""
    read = []

    def counted(table, paths, schema, dataset=ledgers.dataset_of_files):
        read.extend(paths)
        return dataset(table, paths, schema)

    monkeypatch.setattr(ledgers, "dataset_of_files", counted)
    return read


def a_step(number) -> Entry:
    return Entry(
        f"r-{number}",
        1,
        "published",
        "advance",
        range=TimeRange(number * DAY_MS, (number + 1) * DAY_MS),
        books=[Book("range", number, {})],
        message=None if number % 3 else f"ünïcode {number}",
    )


def append(ledger, count) -> list[Entry]:
    """What the ledger holds after each of some appended steps."""
    last = len(ledger.entries())
    held = []
    for number in range(last + 1, last + 1 + count):
        ledger.append(a_step(number), NOW)
        held.append(ledger.entries())
    return held


def operations(store) -> list[str]:
    return [one["operation"] for one in store.table("runs").history()]


def test_steps_are_the_same_before_and_after_they_are_put_together(store):
    held = append(Ledger(store), 3 * MOST)
    assert operations(store).count("OPTIMIZE") >= 2
    for number, entries in enumerate(held, start=1):
        assert entries == held[-1][:number]
    assert Ledger(store).entries() == held[-1]


def test_however_many_steps_there_are_few_files_are_read(store, files_read):
    ledger = Ledger(store)
    for _ in range(6 * MOST):
        append(ledger, 1)
        files_read.clear()
        Ledger(store).entries()
        assert len(files_read) <= MOST + 1


def test_a_file_is_read_once_by_whoever_has_the_ledger_open_and_none_of_its_own(store, files_read):
    ledger, other = Ledger(store), Ledger(store)
    for _ in range(6 * MOST):
        append(other, 1)
        ledger.entries()
    assert len(files_read) == 1 + 6 * MOST  # the first creates the table, which is opened after it
    files_read.clear()
    other.entries()
    ledger.entries()
    assert files_read == []


def test_who_reads_meanwhile_still_finds_the_files_that_were_put_together(store):
    ledger = Ledger(store)
    append(ledger, MOST)
    before = store.table("runs")
    append(ledger, MOST)
    assert "OPTIMIZE" in operations(store)
    assert len(before.to_pyarrow_table()) == MOST


def test_steps_from_before_a_column_came_are_put_together_with_the_others(store):
    old = pa.schema([field for field in SCHEMA if field.name not in {"reopened", "lost"}])
    row = {"position": 1, "run_id": "r-1", "attempt": 1, "step": "owed", "kind": "advance"}
    row |= {"spec_fingerprint": "", "timeline_fingerprint": "", "base": 0}
    row |= {"books": '[{"name": "range", "total": 1}]', "owed": '["2024-03-01", "2024-03-02"]'}
    write_deltalake(store.uri("runs"), pa.Table.from_pylist([row], old))
    ledger = Ledger(store)
    (first,) = ledger.entries()
    append(ledger, 2 * MOST)
    assert "OPTIMIZE" in operations(store)
    assert Ledger(store).entries()[0] == first
    assert (first.reopened, first.lost, first.books) == (False, None, [Book("range", 1, {})])
    assert [day.day for day in first.owed] == [1, 2]


def test_where_there_is_no_lock_files_are_put_together_too(store, tmp_path):
    # not a folder, but a URI, as of an object store: a commit that is overtaken fails
    ledger = Ledger(Lake(f"file://{tmp_path}").pipeline("meter"))
    held = append(ledger, 2 * MOST)
    assert "OPTIMIZE" in operations(store)
    assert Ledger(store).entries() == held[-1]


def test_a_store_that_fails_while_steps_are_put_together_has_kept_the_step(store, monkeypatch):
    def failing(table, **arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TableOptimizer, "compact", failing)
    ledger = Ledger(store)
    append(ledger, 2 * MOST)
    assert [entry.position for entry in Ledger(store).entries()] == list(range(1, 2 * MOST + 1))


BEGIN = """
import os, sys
from datetime import UTC, datetime
from deltalake import DeltaTable
from deltalake.table import TableOptimizer
from strandline.lake.ledger import ledger as ledgers
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake

ledgers._MOST_FILES = 4
ledger = Ledger(Lake.at(sys.argv[1]).pipeline("meter"))
"""
APPENDING = (
    BEGIN
    + """
for _ in range(15):
    ledger.append(Entry(sys.argv[2], 1, "started", "backfill"), datetime(2024, 3, 1, tzinfo=UTC))
"""
)
READING = (
    BEGIN
    + """
read = 0
while read < 31:
    positions = [entry.position for entry in ledger.entries()]
    assert positions == list(range(1, len(positions) + 1)) and len(positions) >= read
    read = len(positions)
"""
)


def test_two_processes_append_and_put_together_while_a_third_reads(store, tmp_path):
    Ledger(store).append(a_step(0), NOW)
    scripts = [(READING, "c"), (APPENDING, "a"), (APPENDING, "b")]
    processes = [
        Popen([sys.executable, "-c", script, str(tmp_path), name]) for script, name in scripts
    ]
    try:
        assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.kill()
    entries = Ledger(store).entries()
    assert [entry.position for entry in entries] == list(range(1, 32))
    assert sorted(entry.run_id for entry in entries) == ["a"] * 15 + ["b"] * 15 + ["r-0"]
    assert "OPTIMIZE" in operations(store)


@pytest.mark.parametrize(
    "dies",
    [
        "TableOptimizer.compact = lambda self, **more: os._exit(9)",
        "DeltaTable.create_checkpoint = lambda self: os._exit(9)",
    ],
    ids=["before its commit", "before the checkpoint"],
)
def test_who_dies_while_putting_steps_together_takes_none_along(store, tmp_path, dies):
    append(Ledger(store), MOST)
    script = BEGIN + dies + APPENDING.removeprefix(BEGIN)
    assert run([sys.executable, "-c", script, str(tmp_path), "a"], check=False).returncode == 9
    ledger = Ledger(store)
    assert [entry.run_id for entry in ledger.entries()] == [f"r-{n}" for n in range(1, 5)] + ["a"]
    append(ledger, MOST)
    assert [entry.position for entry in Ledger(store).entries()] == list(range(1, 10))
    assert DeltaTable(store.uri("runs")).file_uris()
