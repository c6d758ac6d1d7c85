"""`strandline changes`: a cursor over what was published. No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from many_days import a_lake_of, day
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli.main import main
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of
from strandline.pipeline.plan.open_slots import complete_until

WARNING = {
    "expectation": "expect_volume_to_be_usual",
    "severity": "warning",
    "success": False,
    "figures": "half as many",
}


@pytest.fixture
def lake(tmp_path):
    return a_lake_of(4, SPEC, tmp_path / "lake")


@pytest.fixture
def changes(lake, tmp_path, capsys):
    """`strandline changes meter …`: its exit code, and what it has printed."""
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")

    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(
                ["--pipelines", str(tmp_path), "--lake", lake.root, "changes", "meter", *arguments]
            )
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out + printed.err

    return call


def note(lake, run_id, step="published", kind="advance", **more):
    store = lake.pipeline("meter")
    versions = {n: v for n, v in store.versions().items() if n != "runs"}
    entry = Entry(run_id, 1, step, kind, TimeRange(0, DAY_MS), versions=versions)
    return Ledger(store).append(replace(entry, **more), datetime.now(UTC))


def test_a_cursor_gives_each_published_run_once_a_revert_too(lake, changes):
    first = json.loads(changes("--json")[1])
    assert first["runs"]
    assert first["runs"][0]["dates"]["windows"]  # of a lake that kept none: by the tables' logs
    note(lake, "r-2", "started")
    days = {"windows": [["2024-03-01", "2024-03-02"]]}
    counts = {"windows": {"insert": 1, "update": 2, "delete": 0}}
    note(lake, "r-2", dates=days, diff=counts, audit=[WARNING])
    last = note(lake, "r-3", kind="revert", dates=days, reverts="r-2")
    code, text = changes("--since", str(first["next"]), "--json")
    found = json.loads(text)
    assert (code, found["next"]) == (0, last)
    assert [(one["run_id"], one["kind"]) for one in found["runs"]] == [
        ("r-2", "advance"),
        ("r-3", "revert"),
    ]
    assert (found["runs"][0]["dates"], found["runs"][0]["counts"]) == (days, counts)
    assert found["runs"][0]["verdict"] == "WARNING: half as many"
    assert found["runs"][1]["verdict"] == "OK"
    code, text = changes("--since", str(last))
    assert (code, "nothing was published" in text) == (0, True)
    text = changes("--since", str(first["next"]))[1]
    assert "2024-03-01 to 2024-03-02" in text
    assert f"next: --since {last}" in text


def test_days_are_complete_once_and_again_only_in_tables_made_anew(lake, changes):
    since = json.loads(changes("--json")[1])["next"]
    slots = {"completeness": [["1970-01-03", "1970-01-09"]]}
    for run, until in (("r-2", 4), ("r-3", 6), ("r-4", 5), ("r-5", 8)):
        note(lake, run, complete_ms=until * DAY_MS, dates=slots)
    note(lake, "r-6", complete_ms=4 * DAY_MS, dates=slots, recreated=True)
    found = json.loads(changes("--since", str(since), "--json")[1])["runs"]
    completed = {one["run_id"]: one["completed"] for one in found}
    assert completed == {
        "r-2": [],  # of the runs before nothing is known
        "r-3": [["1970-01-05", "1970-01-06"]],
        "r-4": [],  # it has taken some back
        "r-5": [["1970-01-07", "1970-01-08"]],
        "r-6": [["1970-01-03", "1970-01-04"]],
    }


def complete_after(lake, frontier: int | None, **run) -> int | None:
    """The day before which all are complete after a run; the lake's slots are of its days 0 to 3.

    The last of them is open.
    """
    none = PipelineState.of([])
    reached_ms = None if frontier is None else midnight_of(day(frontier))
    step = Entry("r-2", 1, "publishing", "backfill", frontier_ms=reached_ms, **run)
    open_ms = midnight_of(day(3)) + DAY_MS // 2
    found = complete_until(lake.pipeline("meter"), none, step, open_ms)
    return None if found is None else (found - midnight_of(day(0))) // DAY_MS


def test_no_day_is_complete_before_everything_up_to_it_is_published(lake):
    """A first run by hand left the days before its range out of what is announced, for ever."""
    assert complete_after(lake, None) is None
    assert complete_after(lake, 2) == 2
    assert complete_after(lake, 4) == 3
    closed = {"closed": True, "range": TimeRange(midnight_of(day(2)), midnight_of(day(4)))}
    assert complete_after(lake, None, **closed) is None
    assert complete_after(lake, 1, **closed) == 1
    assert complete_after(lake, 2, **closed) == 3  # no more records come into its range


@pytest.mark.parametrize("since", ["-1", "1.5", "x", "", "9" * 40, "\u0663", "--json"])
def test_a_position_that_is_none_is_refused(changes, since):
    code, text = changes(f"--since={since}")
    assert code == 2
    assert "Traceback" not in text


def test_a_position_behind_the_last_one_is_of_another_lake_and_refused(changes):
    code, text = changes("--since", "1000")
    assert (code, "not a position of the ledger, which ends at" in text) == (2, True)
