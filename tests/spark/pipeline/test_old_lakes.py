"""A lake that the first release candidate has left; and what a run reads and says beforehand.

`tests/releases/candidate.tar.xz` is that lake, as the program of then has written it on Apache
Spark: two scheduled runs, a run by rules of its own that was reverted, rows that landed late, and a
run by hand that has noted their day.
"""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from changes import of_days, owed, some_days, three_days
from lakes import Line, a_record, a_spec, a_week, instant, land
from replayed import assert_books_balance, assert_told_by_replay

from strandline.errors import InputError
from strandline.lake.ledger.state import PipelineState
from strandline.lake.timeline.commit import refresh_facts
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import read_facts
from strandline.pipeline.manage.revert import revert_run

pytestmark = pytest.mark.spark

SPEC = a_spec()
DAYS = some_days(5)
GROWN = [
    a_record("2 03:00", "2 02:50", amount=71, position=901),
    a_record("2 21:00", "1 21:10", "b", amount=73, position=903),
]


SIX_HOURS_LATER = "arrived_at + INTERVAL 6 HOURS"

# ------------------------------------------------------------------ of the first release candidate

OF_THEN = Path(__file__).parents[2] / "releases" / "candidate.tar.xz"
LANDED = [
    row
    for row in a_week(days=4)
    if row["arrived_on"].day <= 3 and (row["amount"] % 8 == 0 or row["arrived_at"] is None)
]


@pytest.fixture
def line(spark, tmp_path) -> Line:
    """A pipeline over the lake of then."""
    with tarfile.open(OF_THEN) as lake:
        lake.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        lake.extractall(tmp_path)
    return Line(spark, tmp_path, SPEC)


def test_what_its_ledger_says_is_known(line):
    state = PipelineState.of(line.ledger)
    assert not any(step.reverts or step.landing_id for step in state.steps)
    assert state.frontier_ms == instant("4")
    assert [day.day for day in state.days_to_recompute] == [2]
    assert [run.kind for run in state.in_force] == ["advance", "advance", "backfill"]
    ((reverted, by),) = state.taken_back
    assert (reverted.overrides, by.kind) == ({"allowed_lateness": "6h"}, "revert")
    assert (state.overridden, state.unfinished) == ([], None)


def test_the_next_run_recomputes_what_it_has_left_and_observes_no_other_day_again(line):
    outcome = line.advance("4")
    assert (outcome.to_recompute, outcome.observed_days) == (["2024-03-02"], [])
    assert outcome.changed
    assert owed(line) == []
    assert_told_by_replay(line, [*LANDED, *GROWN], "4")
    assert_books_balance(line)


def test_a_run_of_then_is_reverted_and_its_schedule_goes_on(spark, line):
    state = PipelineState.of(line.ledger)
    revert_run(line.spec, line.lake, state.in_force[-1].run_id, spark, reason="a mistake")
    land(line.folder, of_days(DAYS, 4), mode="append")
    line.advance("5")
    assert_told_by_replay(line, [*LANDED, *GROWN, *of_days(DAYS, 4)], "5")


# --------------------------------------------------------------------- whose days go by no column


def test_rows_removed_after_an_upgrade_are_missing_and_rows_of_other_days_by_an_edit_are_not(
    spark, tmp_path
):
    """They counted as rows of other days, and their windows were deleted without a word."""
    line = Line(spark, tmp_path, a_spec(source__arrival_date=None))
    land(tmp_path, of_days(DAYS, 1, 2, 3), partition_by=[])
    line.advance("4")
    store = line.lake.pipeline("meter")
    of_then = {  # digests of an earlier version
        day: replace(facts, digest=facts.digest.rpartition(":")[2])
        for day, facts in read_facts(TimelineTable.open(store)).items()
    }
    refresh_facts(store, of_then)
    kept = line.copy(tmp_path / "kept")

    line.table("../landing/meter").delete("arrived_on = '2024-03-02' AND source = 'a'")
    land(line.folder, of_days(DAYS, 4, 5), mode="append", partition_by=[])
    outcome = line.advance("6")
    assert (outcome.missing, outcome.to_recompute) == (["2024-03-02"], [])
    assert not outcome.diff["windows"]["delete"]

    land(kept.folder, of_days(DAYS, 4), mode="append", partition_by=[])
    assert kept.advance("5").to_recompute == []
    kept = kept.of(a_spec(source__arrival_date=None, source__arrival_time=SIX_HOURS_LATER))
    outcome = kept.advance("6")
    assert (outcome.missing, outcome.to_recompute) == (
        [],
        [f"2024-03-{day:02d}" for day in range(1, 5)],
    )


# ------------------------------------------------------------------------------- said beforehand


@pytest.fixture(scope="module")
def owing(begun, spark, tmp_path_factory):
    """Three days are published, and the second has grown since."""
    line = begun(three_days, spark, tmp_path_factory.mktemp("owing"))
    land(line.folder, [*GROWN, *of_days(DAYS, 4)], mode="append")
    return line


def test_a_dry_run_says_what_is_owed_and_from_where_it_is_judged_again(owing, tmp_path):
    line = owing.copy(tmp_path)
    before = line.files()
    preview = line.advance("5", dry_run=True)
    assert line.files() == before
    assert preview.to_recompute == ["2024-03-02"]
    assert preview.evaluated_since_ms == instant("2")
    assert preview.to_json()["judged_from"] == "2024-03-02T00:00:00Z"
    assert preview.read["bytes"] > 0
    assert any("from 2024-03-02T00:00:00Z on is evaluated again" in note for note in preview.notes)


@pytest.mark.parametrize("of_the_pipeline", [False, True])
def test_a_run_that_would_read_more_than_it_may_says_how_much_and_why(
    owing, tmp_path, of_the_pipeline
):
    line = owing.copy(tmp_path)
    allowed = {} if of_the_pipeline else {"max_bytes": 10}
    if of_the_pipeline:
        line = line.of(a_spec(max_bytes="10"))
    before = line.versions()
    limit = "meter: max_bytes" if of_the_pipeline else "--max-bytes"
    with pytest.raises(
        InputError, match=rf"^{limit}: .* reads [\d,]{{4,}} bytes .* and 10 are allowed"
    ) as caught:
        line.advance("5", **allowed)
    assert caught.value.exit_code == 2
    assert line.versions() == before
    assert line.ledger[-1].step == "failed"
    if of_the_pipeline:  # what is asked for goes before what it says
        line.advance("5", max_bytes=10**9)
        assert_told_by_replay(line, [*of_days(DAYS, 1, 2, 3, 4), *GROWN], "5")
