"""runs revert: what stood before a run stands again, and what the pipeline remembered then."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from killed import Killed
from lakes import Line, a_spec, a_week, at, instant, land
from replayed import assert_told_by_replay

from strandline.errors import InputError
from strandline.model.intervals import text_of
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.publish import publish
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

ROWS = a_week(days=3)


@pytest.fixture(scope="module")
def nights(spark, tmp_path_factory):
    """Three nights; beside the line stands what the first two have left."""
    line = Line(spark, tmp_path_factory.mktemp("nights"), a_spec())
    land(line.folder, ROWS)
    line.advance("2")
    line.advance("3")
    before = contents(line)
    line.advance("4")
    assert contents(line) != before
    return line, before


def contents(line: Line) -> dict[str, list[dict[str, Any]]]:
    """What runs publish, with the runs that have; of the malformed only the observation tells."""
    found = {name: line.rows(name, run_id=True) for name in line.results}
    found["quarantine"] = [row for row in found["quarantine"] if row["slot_start"]]
    return found


def revert(line: Line, run_id: str, **more: Any) -> Outcome:
    return revert_run(line.spec, line.lake, run_id, line.spark, reason="a mistake", **more)


def test_a_revert_after_a_run_that_died_as_it_published_says_that_it_has_published_since(
    nights, tmp_path, monkeypatch
):
    line = nights[0].copy(tmp_path)
    night = line.ledger[-1]
    late = [
        {**row, "arrived_on": date(2024, 3, 4), "arrived_at": at("4 09:00")} for row in ROWS[-9:]
    ]
    land(tmp_path, late, mode="append")

    def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(publish, "_write", dies)
        line.advance("5")
    (dead,) = {entry.run_id for entry in line.ledger if entry.position > night.position}
    since = f"not the last to have published into its range; since then: {dead}"
    with pytest.raises(InputError, match=since):
        revert(line, night.run_id)
    assert line.ledger[-1].step == "failed"
    revert(line, dead)
    revert(line, night.run_id)


def test_a_night_is_taken_back_with_what_was_remembered_then_and_can_be_run_again(nights, tmp_path):
    line, before = nights[0].copy(tmp_path), nights[1]
    night, previous = [entry for entry in reversed(line.ledger) if entry.step == "published"][:2]

    versions, steps = line.versions(), len(line.ledger)
    shown = revert(line, night.run_id, dry_run=True)
    assert (line.versions(), len(line.ledger)) == (versions, steps)
    assert (shown.status, shown.changed) == ("previewed", True)

    done = revert(line, night.run_id, requested_by="ann")
    assert (done.status, done.kind, done.diff) == ("published", "revert", shown.diff)
    assert contents(line) == before
    last = line.ledger[-1]
    assert (last.reason, last.requested_by) == ("a mistake", "ann")
    assert last.frontier_ms == previous.frontier_ms == instant("3")
    assert last.first_open_ms == previous.first_open_ms
    # what was observed stays, so that the watermark is that of a day more than is processed
    watermark = status_of(line.spec, line.lake)["watermark"]
    assert watermark["arrived_before"] == "2024-03-04T00:00:00Z"
    assert watermark["summary"].endswith("; by arrivals before 2024-03-04T00:00:00Z")
    with pytest.raises(InputError, match=rf"was reverted by run {last.run_id};"):
        revert(line, night.run_id)

    again = line.advance("3")  # a cleared task of the night before
    assert (contents(line), again.frontier_ms) == (before, instant("3"))
    stays = f"{night.run_id} had published was reverted by run {last.run_id}, and stays so"
    assert any(stays in note for note in again.notes)

    night = line.advance("4")
    assert status_of(line.spec, line.lake)["watermark"]["arrived_before"] is None
    assert any("(a mistake): this run computes its windows again" in note for note in night.notes)
    assert_told_by_replay(line, ROWS, "4")


def test_one_night_after_the_other_is_taken_back(nights, tmp_path):
    """The last night, then the one before it; then both are run again."""
    line = nights[0].copy(tmp_path)
    first, second, third = [entry for entry in line.ledger if entry.step == "published"]
    revert(line, third.run_id)
    back = revert(line, second.run_id)
    assert back.frontier_ms == line.ledger[-1].frontier_ms == first.frontier_ms == instant("2")
    assert {row["run_id"] for row in line.rows("windows", run_id=True)} == {first.run_id}

    line.advance("4")
    assert_told_by_replay(line, ROWS, "4")


def test_other_rules_are_taken_back_and_that_is_taken_back_too(nights, tmp_path):
    line, _ = nights[0].copy(tmp_path), nights[1]
    before = contents(line)
    mended = line.of(a_spec(allowed_lateness="0s"))
    run = mended.backfill("1", "3", as_of="4")
    after = contents(line)
    assert after != before
    first = revert(mended, run.run_id)
    assert contents(line) == before
    revert(mended, first.run_id)
    assert contents(line) == after


def test_a_version_that_was_vacuumed_is_said_and_nothing_is_written(nights, tmp_path):
    line = nights[0].copy(tmp_path)
    begun = next(entry for entry in reversed(line.ledger) if entry.step == "publishing")
    table = line.table("completeness")
    kept = set(table.file_uris())
    table.load_as_version(begun.versions["completeness"])
    for file in set(table.file_uris()) - kept:
        Path(file).unlink()
    versions = line.versions()
    with pytest.raises(InputError, match=r"completeness: version \d+, .* not there") as caught:
        revert(line, begun.run_id)
    start, end = (text_of(edge) for edge in (begun.range.start_ms, begun.range.end_ms))
    assert f"strandline backfill meter --start {start} --end {end}" in str(caught.value)
    assert line.versions() == versions
    assert line.ledger[-1].step == "failed"
