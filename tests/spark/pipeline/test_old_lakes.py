"""Lakes that a version without memory has left, and what a run reads and says beforehand."""

from __future__ import annotations

import pytest
from changes import NEW_IN_LEDGER, NEW_IN_TIMELINE, forget, of_days, owed, some_days
from lakes import Line, a_record, a_spec, instant, land
from replayed import assert_books_balance, assert_told_by_replay

from strandline.errors import InputError

pytestmark = pytest.mark.spark

SPEC = a_spec()
DAYS = some_days(5)
GROWN = [
    a_record("2 03:00", "2 02:50", amount=71, position=901),
    a_record("2 21:00", "1 21:10", "b", amount=73, position=903),
]


@pytest.fixture(scope="module")
def old(spark, tmp_path_factory):
    """Three days are published, and nothing is remembered of them."""
    line = Line(spark, tmp_path_factory.mktemp("old"), SPEC)
    land(line.folder, of_days(DAYS, 1, 2, 3))
    for day in ("2", "3", "4"):
        line.advance(day)
    forget(line)
    for name, columns in (("runs", NEW_IN_LEDGER), ("timeline", NEW_IN_TIMELINE)):
        assert not {field.name for field in line.table(name).schema().fields} & {*columns}
    return line


# ----------------------------------------------------------------------------- without any memory


def test_the_first_run_over_an_old_lake_observes_its_days_again_and_changes_nothing(old, tmp_path):
    line = old.copy(tmp_path)
    before = line.published()
    outcome = line.advance("4")
    assert outcome.observed_days == ["2024-03-01", "2024-03-02", "2024-03-03"]
    assert any("3 arrival days were observed by a version" in note for note in outcome.notes)
    assert outcome.owed == []
    assert not outcome.changed
    assert line.published() == before

    again = line.advance("4")
    assert again.observed_days == []
    assert not any("by a version" in note for note in again.notes)
    land(line.folder, of_days(DAYS, 4), mode="append")
    line.advance("5")
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")


@pytest.mark.parametrize("how", ["advance", "backfill"])
def test_a_day_of_an_old_lake_that_has_grown_is_owed(old, tmp_path, how):
    line = old.copy(tmp_path)
    land(line.folder, GROWN, mode="append")
    rows = [*of_days(DAYS, 1, 2, 3), *GROWN]
    if how == "backfill":
        line.backfill("3", "4")
        assert owed(line) == [2]
    outcome = line.advance("4")
    assert outcome.owed == ["2024-03-02"]
    assert_told_by_replay(line, rows, "4")
    assert_books_balance(line)
    assert owed(line) == []


def test_a_slot_that_an_old_lake_has_left_open_is_built(spark, tmp_path):
    rows = [{**row, "source": "a"} for row in of_days(DAYS, 1, 2, 3)]
    line = Line(spark, tmp_path, SPEC)
    land(tmp_path, rows)
    line.advance("3")
    line.advance("4")
    forget(line)
    line = line.of(a_spec(source__channels=["a"]))
    line.advance("4")
    assert line.rows("windows")
    assert_told_by_replay(line, rows, "4")


# ------------------------------------------------------------------------------- said beforehand


@pytest.fixture(scope="module")
def owing(spark, tmp_path_factory):
    """Three days are published, and the second has grown since."""
    line = Line(spark, tmp_path_factory.mktemp("owing"), SPEC)
    land(line.folder, of_days(DAYS, 1, 2, 3))
    line.advance("4")
    land(line.folder, [*GROWN, *of_days(DAYS, 4)], mode="append")
    return line


def test_a_dry_run_says_what_is_owed_and_from_where_it_is_judged_again(owing, tmp_path):
    line = owing.copy(tmp_path)
    before = line.files()
    preview = line.advance("5", dry_run=True)
    assert line.files() == before
    assert preview.owed == ["2024-03-02"]
    assert preview.judged_from_ms == instant("2")
    assert preview.to_json()["judged_from"] == "2024-03-02T00:00:00Z"
    assert preview.read["bytes"] > 0
    assert any("from 2024-03-02T00:00:00Z on is judged again" in note for note in preview.notes)
    assert line.advance("5").diff == preview.diff


@pytest.mark.parametrize("of_the_pipeline", [False, True])
def test_a_run_that_would_read_more_than_it_may_says_how_much_and_why(
    owing, tmp_path, of_the_pipeline
):
    line = owing.copy(tmp_path)
    allowed = {} if of_the_pipeline else {"max_bytes": 10}
    if of_the_pipeline:
        line = line.of(a_spec(max_bytes="10"))
    before = line.versions()
    with pytest.raises(
        InputError, match=r"--max-bytes: .* reads [\d,]{4,} bytes .* and 10 are allowed"
    ) as caught:
        line.advance("5", **allowed)
    assert caught.value.exit_code == 2
    assert line.versions() == before
    assert line.ledger[-1].step == "failed"
    # what is asked for goes before what the pipeline says
    line.advance("5", max_bytes=10**9)
    assert_told_by_replay(line, [*of_days(DAYS, 1, 2, 3, 4), *GROWN], "5")
