"""--recreate: what a pipeline has published is replaced, also under another window and key."""

from __future__ import annotations

import pytest
from changes import of_days, some_days
from killed import Killed
from lakes import Line, a_record, a_spec, land
from replayed import assert_books_balance, assert_told_by_replay

from strandline.errors import InputError
from strandline.lake.publish import apply_diff
from strandline.pipeline.publish.abandon import drop_run

pytestmark = pytest.mark.spark

MALFORMED = a_record("2 12:00", "2 12:00", happened_at=None)
DAYS = [*some_days(4), MALFORMED]
HOURS = a_spec(firings=True)
OTHER = a_spec(
    window={"sliding": "4h", "every": "2h"}, source__key={"who": "upper(device)"}, firings=True
)
WHY = {"recreate": True, "reason": "by whom from now on", "requested_by": "ann"}


@pytest.fixture(scope="module")
def hours(spark, tmp_path_factory):
    """Three days are published by the hour and the device; copy it to change it."""
    line = Line(spark, tmp_path_factory.mktemp("hours"), HOURS)
    land(line.folder, of_days(DAYS, 1, 2, 3))
    line.advance("4")
    return line


def test_another_window_and_key_are_refused_and_built_once_somebody_says_so(hours, tmp_path):
    line = hours.copy(tmp_path).of(OTHER)
    before, ledger = line.files(), line.ledger
    with pytest.raises(InputError, match="--recreate"):
        line.advance("4")
    with pytest.raises(InputError, match="the range leaves out windows"):
        line.backfill("2", "3", dry_run=True, **WHY)
    assert line.files() == before
    with pytest.raises(InputError, match="all is processed up to 2024-03-04") as caught:
        line.advance("3", **WHY)
    assert (caught.value.exit_code, "--to 2024-03-04" in str(caught.value)) == (2, True)
    assert line.files() == before
    preview = line.advance("4", dry_run=True, **WHY)
    assert line.files() == before

    windows = len(hours.rows("windows"))
    done = line.advance("4", **WHY)
    assert done.diff == preview.diff
    assert not [note for note in done.notes if "other windows" in note]
    assert done.diff["windows"]["delete"] == windows
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3), "4")
    assert_books_balance(line)
    assert "device" not in line.rows("windows")[0]
    assert [row["reason"] for row in line.rows("quarantine")].count("null_event_time") == 1
    last = line.ledger[-1]
    assert (last.step, last.recreated, last.reason, last.requested_by) == (
        "published",
        True,
        WHY["reason"],
        "ann",
    )
    assert line.ledger[: len(ledger)] == ledger
    # whoever reads at the versions of the publish before reads what stood
    then = hours.ledger[-1].versions["windows"]
    table = line.table("windows")
    table.load_as_version(then)
    assert table.to_pyarrow_table().num_rows == windows

    land(tmp_path, of_days(DAYS, 4), mode="append")
    line.advance("5")
    assert_told_by_replay(line, DAYS, "5")


@pytest.mark.parametrize("table", [pytest.param("completeness", marks=pytest.mark.deep), "windows"])
def test_one_that_dies_is_finished_by_the_next_run_or_taken_back(
    hours, tmp_path, monkeypatch, table
):
    line = hours.copy(tmp_path).of(OTHER)
    before = {name: hours.rows(name) for name in hours.results}
    real = apply_diff.apply

    def dying(store, change, *others):
        real(store, change, *others)
        if change.target.name == table:
            raise Killed

    monkeypatch.setattr(apply_diff, "apply", dying)
    with pytest.raises(Killed):
        line.advance("4", **WHY)
    monkeypatch.undo()

    back = line.copy(tmp_path / "back")
    drop_run(back.spec, back.lake, back.ledger[-1].run_id, reason="no")
    # the malformed row has been observed by the other rules, which no drop takes back
    assert {name: len(back.rows(name)) for name in back.results} == {
        name: len(rows) for name, rows in before.items()
    }
    assert back.rows("windows") == before["windows"]
    back.of(HOURS).advance("4")
    assert {name: back.rows(name) for name in back.results} == before

    line.advance("4")
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3), "4")
