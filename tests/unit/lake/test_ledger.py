"""The ledger alone: what it keeps, and what the pipeline's state is by it. No JVM."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from subprocess import Popen
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.errors import InputError
from strandline.lake.ledger.entry import SCHEMA, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.publications import UnfinishedPublish
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.model.books import Book
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange
from strandline.pipeline.request.begin import begin_run

NOW = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)
CHANGED = {"windows": {"insert": 1, "update": 0, "delete": 0}}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(Lake.at(str(tmp_path)).pipeline("meter"))


def published(run_id="r-1", start=0, end=10, horizon=10, **more) -> Entry:
    """A published step; days since 1970 for instants."""
    within = TimeRange(start * DAY_MS, end * DAY_MS)
    defaults = {"attempt": 1, "step": "published", "kind": "backfill"}
    return Entry(run_id, **(defaults | more), range=within, horizon_ms=horizon * DAY_MS)


def state(*entries: Entry) -> PipelineState:
    return PipelineState.of(entries)


def test_a_step_is_read_back_as_it_was_written(ledger):
    entry = Entry(
        run_id="r-1",
        attempt=2,
        step="published",
        kind="advance",
        range=TimeRange(-1_500, 86_400_001),
        horizon_ms=86_400_123,
        closed=True,
        reopened=True,
        frontier_ms=DAY_MS,
        spec_fingerprint="s",
        timeline_fingerprint="t",
        clock_start_ms=-DAY_MS,
        landing_version=3,
        base=7,
        books=[Book("range", 2, {"accepted": 2})],
        diff=CHANGED,
        audit=[{"expectation": "e", "success": True}],
        versions={"windows": 4},
        publish=ToPublish(key=("device",), parts=("windows",)),
        gaps=5,
        reason="a bug, its fix",
        requested_by="ann",
        message="ünïcode, 'quotes'",
    )
    ledger.append(entry, NOW)
    assert ledger.entries() == [replace(entry, position=1, written_at=NOW)]
    with patch("strandline.lake.ledger.ledger.dataset_of_files", side_effect=AssertionError):
        ledger.append(entry, NOW)  # whoever has written a step does not read it from its file
        own = ledger.entries()
    assert own == Ledger(ledger.store).entries()
    assert own[1] == replace(own[0], position=2)


def test_steps_are_numbered_and_only_ever_added(ledger, tmp_path):
    assert ledger.entries() == []
    for number in range(1, 5):
        assert ledger.append(Entry(f"r-{number}", 1, "started", "backfill"), NOW) == number
    entries = ledger.entries()
    assert [(e.position, e.run_id) for e in entries] == [(n, f"r-{n}") for n in range(1, 5)]
    table = DeltaTable(str(tmp_path / "meter" / "runs"))
    adding = {"CREATE TABLE", "WRITE", "SET TBLPROPERTIES"}  # the last names the lake's format
    assert {one["operation"] for one in table.history()} <= adding
    assert table.metadata().partition_columns == []


APPENDING = """
import sys
from datetime import UTC, datetime
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake

ledger = Ledger(Lake.at(sys.argv[1]).pipeline("meter"))
for _ in range(5):
    ledger.append(Entry(sys.argv[2], 1, "started", "backfill"), datetime(2024, 3, 1, tzinfo=UTC))
"""


def test_steps_of_two_processes_get_positions_of_their_own(ledger, tmp_path):
    both = [Popen([sys.executable, "-c", APPENDING, str(tmp_path), name]) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    entries = ledger.entries()
    assert [entry.position for entry in entries] == list(range(1, 11))
    assert Counter(entry.run_id for entry in entries) == {"a": 5, "b": 5}


def test_a_ledger_of_an_earlier_version_is_read_and_goes_on(ledger, tmp_path):
    left_out = [name for name in SCHEMA.names if name != "reopened"]
    old = pa.schema([SCHEMA.field(name) for name in left_out])
    row = {"position": 1, "run_id": "r-1", "attempt": 1, "step": "started", "kind": "backfill"}
    row |= {"spec_fingerprint": "", "timeline_fingerprint": "", "base": 0}
    write_deltalake(str(tmp_path / "meter" / "runs"), pa.Table.from_pylist([row], old))
    assert not ledger.entries()[0].reopened
    ledger.append(Entry("r-2", 1, "started", "backfill", reopened=True), NOW)
    assert [entry.reopened for entry in ledger.entries()] == [False, True]


def test_the_largest_range_is_kept_as_far_as_tables_can_say_it(ledger):
    ledger.append(Entry("r-1", 1, "published", "backfill", range=EVERYTHING), NOW)
    (entry,) = ledger.entries()
    assert entry.range == TimeRange(EVERYTHING.start_ms, EVERYTHING.end_ms - 1)


def test_a_lake_that_cannot_be_written_is_the_users_to_mend(tmp_path):
    (tmp_path / "meter").write_text("a file")
    with pytest.raises(InputError, match="cannot be written"):
        Ledger(Lake.at(str(tmp_path)).pipeline("meter")).append(published(), NOW)


def test_ranges_that_only_touch_have_not_been_published_into():
    entries = [published("a", 0, 3), published("b", 3, 5, step="rejected"), published("c", 4, 9)]
    within = TimeRange(3 * DAY_MS, 5 * DAY_MS)
    assert [entry.run_id for entry in state(*entries).published_into(within)] == ["c"]
    assert state(*entries).published_into(TimeRange(9 * DAY_MS, 99 * DAY_MS)) == []


def test_the_largest_horizon_of_a_range_may_be_1970_itself():
    assert state().largest_horizon() is None
    assert state(published(horizon=0)).largest_horizon() == 0
    entries = [published(horizon=9), published(start=20, end=30, horizon=40), published(horizon=7)]
    assert state(*entries).largest_horizon(TimeRange(0, DAY_MS)) == 9 * DAY_MS


def test_a_scheduled_run_may_be_requested_for_1970_itself():
    assert published(horizon=3, kind="advance", completes_ms=0).requested_until_ms == 0
    assert published(horizon=3, kind="advance").requested_until_ms == 3 * DAY_MS


def test_the_clock_starts_where_the_first_run_has_fixed_it():
    assert state(published(), published()).clock_start_ms is None
    fixed = state(published(), published(clock_start_ms=0), published(clock_start_ms=5))
    assert fixed.clock_start_ms == 0


def test_the_frontier_moves_forward_with_what_runs_complete():
    assert state().frontier_ms is None
    assert state().frontier_after(published(), None) is None
    assert state().frontier_after(published(kind="advance"), 3 * DAY_MS) == 3 * DAY_MS
    now = state(published(kind="advance", frontier_ms=5 * DAY_MS))
    assert now.frontier_ms == 5 * DAY_MS
    older = published(kind="advance", horizon=5, diff=CHANGED)
    assert now.frontier_after(older, 2 * DAY_MS) == 5 * DAY_MS
    assert now.frontier_after(published(horizon=9, diff=CHANGED), None) == 5 * DAY_MS
    assert now.frontier_after(published(horizon=9, diff=CHANGED), 9 * DAY_MS) == 9 * DAY_MS


def test_the_frontier_falls_where_a_run_by_hand_has_taken_knowledge_back():
    now = state(published(kind="advance", frontier_ms=5 * DAY_MS))
    assert now.frontier_after(published(horizon=3, diff=CHANGED), None) == 3 * DAY_MS
    assert now.frontier_after(published(horizon=3, diff=CHANGED), 3 * DAY_MS) == 3 * DAY_MS
    unchanged = {"windows": {"insert": 0, "update": 0, "delete": 0}}
    assert now.frontier_after(published(horizon=3, diff=unchanged), None) == 5 * DAY_MS


def test_a_publish_is_unfinished_until_it_is_published_whatever_failed_on_the_way():
    begun = published("a", step="publishing")
    unfinished = UnfinishedPublish(begun)
    assert state(published("b")).unfinished is None
    assert state(begun, published("b", step="observed")).unfinished == unfinished
    assert state(begun, published("a")).unfinished is None
    assert state(begun, published("a", step="failed")).unfinished == unfinished
    assert state(begun, published("a", step="failed"), published("a")).unfinished is None
    assert state(begun, published("b")).unfinished == unfinished


def test_a_publish_that_is_being_dropped_is_unfinished_until_it_is():
    begun, dropping = published("a", step="publishing"), published("a", step="dropping")
    of_another = published("b", step="dropping")
    assert state(begun, of_another).unfinished == UnfinishedPublish(begun)
    assert state(begun, dropping).unfinished == UnfinishedPublish(begun, dropping)
    assert state(begun, dropping, published("a", step="dropped")).unfinished is None


def test_drivers_of_the_same_run_that_start_at_once_get_an_attempt_each(tmp_path):
    def begin(_: int) -> Entry:
        alone = Ledger(Lake.at(str(tmp_path)).pipeline("meter"))
        return begin_run(alone, Entry("", 0, "started", "advance"), "a task")

    with ThreadPoolExecutor(4) as pool:
        begun = list(pool.map(begin, range(8)))
    assert sorted(entry.attempt for entry in begun) == list(range(1, 9))
    assert len({entry.run_id for entry in begun}) == 8
