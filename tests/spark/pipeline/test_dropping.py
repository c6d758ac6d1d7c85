"""A publish that cannot be finished stops nobody for ever: how to drop it is said, and it goes."""

from __future__ import annotations

import shutil

import pytest
from killed import Killed
from lakes import Line, a_spec, a_week, instant, land
from replayed import assert_told_by_replay

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish import apply_diff
from strandline.lake.store.store import Store
from strandline.model.intervals import TimeRange
from strandline.pipeline.publish.abandon import drop_run
from strandline.pipeline.request.request import Request

pytestmark = pytest.mark.spark

ROWS = a_week(days=3)
MENDED = a_spec(allowed_lateness="0s")


@pytest.fixture(scope="module")
def died(spark, tmp_path_factory):
    """Two days are published; a rebuild by other rules has died between two of its tables."""
    line = Line(spark, tmp_path_factory.mktemp("died"), a_spec())
    land(line.folder, ROWS)
    line.advance("3")
    mended = line.of(MENDED)
    real = apply_diff.apply

    def dying(store, change, attempt):
        if change.target.name == "windows":
            raise Killed
        real(store, change, attempt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply_diff, "apply", dying)
        with pytest.raises(Killed):
            mended.backfill("1", "3", as_of="3", run_key="a task")
    assert line.ledger[-1].step == "publishing"
    return mended


def drop(line: Line, run_id: str) -> None:
    drop_run(line.spec, line.lake, run_id, reason="its staging is gone")


def assert_refused_until_dropped(line: Line, dead: Entry) -> None:
    """The next run ends with 2, and says which run to drop and how; nothing is written."""
    before = line.versions()
    way_out = f"strandline runs drop meter {dead.run_id} --reason TEXT"
    with pytest.raises(InputError, match=way_out) as caught:
        line.advance("4")
    assert caught.value.exit_code == 2
    assert line.ledger[-1].step == "failed"
    assert line.versions() == before


def test_a_publish_whose_staging_is_gone_is_dropped_and_the_same_request_is_a_new_attempt(
    died, tmp_path
):
    line = died.copy(tmp_path)
    dead = line.ledger[-1]
    shutil.rmtree(line.root / "_staging" / dead.run_id / "windows_diff")
    for _ in range(2):
        assert_refused_until_dropped(line, dead)

    drop(line, dead.run_id)
    assert PipelineState.of(line.ledger).unfinished is None
    again = line.backfill("1", "3", as_of="3", run_key="a task")
    assert again.run_id == dead.run_id.removesuffix("-1") + "-2"
    assert again.diff == dead.diff
    assert_told_by_replay(line, ROWS, "3")


def test_a_staging_that_has_lost_rows_is_not_published(died, tmp_path):
    line = died.copy(tmp_path)
    dead = line.ledger[-1]
    for part in (line.root / "_staging" / dead.run_id / "windows_diff").glob("part-*"):
        part.unlink()
    assert_refused_until_dropped(line, dead)


def test_a_drop_that_died_is_ended_by_the_next_run_though_the_publish_could_be(
    died, tmp_path, monkeypatch
):
    line = died.copy(tmp_path)
    dead = line.ledger[-1]

    def dying(self, name, version, run_id):
        raise Killed

    monkeypatch.setattr(Store, "restore", dying)
    with pytest.raises(Killed):
        drop(line, dead.run_id)
    monkeypatch.undo()
    assert line.backfill("1", "3", as_of="3").diff == dead.diff
    steps = [entry.step for entry in line.ledger if entry.run_id == dead.run_id]
    assert steps[-3:] == ["publishing", "dropping", "dropped"]
    assert_told_by_replay(line, ROWS, "3")


def test_a_run_that_is_dropped_while_it_runs_publishes_nothing(died, tmp_path):
    line = died.copy(tmp_path)
    drop(line, line.ledger[-1].run_id)
    before = line.versions()

    def drop_it(step: str) -> None:
        if step == "publish":
            drop(line, line.ledger[-1].run_id)

    request = Request("backfill", TimeRange(instant("1"), instant("2")), as_of_ms=instant("3"))
    with pytest.raises(InputError, match="was dropped while it ran"):
        line.run(request, drop_it)
    assert line.versions() == before
