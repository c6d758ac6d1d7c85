"""A publish that cannot be finished stops nobody for ever: how to drop it is said, and it goes."""

from __future__ import annotations

import shutil

import pytest
from lakes import Line, a_spec, a_week, instant, land
from replayed import assert_told_by_replay

from strandline.errors import InputError
from strandline.lake import publish as out
from strandline.lake.ledger import unfinished_publish
from strandline.pipeline import dropping
from strandline.pipeline.dropping import drop_run

pytestmark = pytest.mark.spark

ROWS = a_week(days=4)


class Killed(BaseException):
    """What a kill is to the code: nothing catches it."""


@pytest.fixture(scope="module")
def died(spark, tmp_path_factory):
    """Two days are published; a rebuild by other rules has died between two of its tables."""
    line = Line(spark, tmp_path_factory.mktemp("died"), a_spec())
    land(line.folder, ROWS)
    line.advance("3")
    mended = line.of(a_spec(allowed_lateness="0s", aggregates__total="sum(amount) + 1"))
    real = out.publish

    def dying(store, target, changes, counts, run_id):
        if target.name == "windows":
            raise Killed
        real(store, target, changes, counts, run_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(out, "publish", dying)
        with pytest.raises(Killed):
            mended.backfill("1", "3", as_of="3")
    assert line.ledger[-1].step == "publishing"
    return line


def drop(line: Line, run_id: str) -> None:
    drop_run(line.spec, line.lake, run_id, reason="its staging is gone")


@pytest.mark.parametrize("gone", ["windows_diff", "windows_diff/part-*"])
def test_a_publish_whose_staging_is_gone_is_dropped_as_the_message_says(died, tmp_path, gone):
    line = died.copy(tmp_path)
    dead = line.ledger[-1]
    for place in (line.root / "_staging" / dead.run_id).glob(gone):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    before = line.versions()
    for _ in range(2):
        way_out = f"strandline runs drop meter {dead.run_id} --reason TEXT"
        with pytest.raises(InputError, match=way_out) as caught:
            line.advance("4")
        assert caught.value.exit_code == 2
        assert line.ledger[-1].step == "failed"
    assert line.versions() == before

    drop(line, dead.run_id)
    assert unfinished_publish(line.ledger) is None
    line.advance("4")
    assert_told_by_replay(line, ROWS, "4")
    assert line.ledger[-1].frontier_ms == instant("4")


def test_after_a_drop_the_same_request_is_a_new_attempt(died, tmp_path):
    line = died.copy(tmp_path)
    drop(line, line.ledger[-1].run_id)
    first = line.advance("4", run_key="a task")
    again = line.advance("4", run_key="a task")
    assert first.run_id.removesuffix("-1") == again.run_id.removesuffix("-2")
    assert not again.changed


def test_a_drop_that_died_is_ended_by_the_next_run_though_the_publish_could_be(
    died, tmp_path, monkeypatch
):
    line = died.copy(tmp_path)
    dead = line.ledger[-1].run_id

    def dying(self, name, version, run_id):
        raise Killed

    monkeypatch.setattr(dropping.Store, "restore", dying)
    with pytest.raises(Killed):
        drop(line, dead)
    monkeypatch.undo()
    line.advance("4")
    assert [entry.step for entry in line.ledger if entry.run_id == dead][-2:] == [
        "dropping",
        "dropped",
    ]
    assert_told_by_replay(line, ROWS, "4")


def test_a_run_that_is_dropped_while_it_runs_publishes_nothing(died, tmp_path):
    line = died.copy(tmp_path)
    drop(line, line.ledger[-1].run_id)
    before = line.versions()

    def drop_it(step: str) -> None:
        if step == "publish":
            drop(line, line.ledger[-1].run_id)

    from strandline.model.intervals import TimeRange
    from strandline.pipeline.request import Request

    request = Request("backfill", TimeRange(instant("1"), instant("2")), as_of_ms=instant("2"))
    with pytest.raises(InputError, match="was dropped while it ran"):
        line.run(request, drop_it)
    assert line.versions() == before
