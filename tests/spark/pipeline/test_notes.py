"""The notes of a run: what it would otherwise do, or leave, in silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from lakes import Line, a_record, a_spec, a_week, instant, land

from strandline.model.intervals import TimeRange
from strandline.pipeline.request.request import Request

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def until4(spark, tmp_path_factory) -> Line:
    """Three days are published, of which nothing is to be said."""
    line = Line(spark, tmp_path_factory.mktemp("until4"), a_spec())
    land(line.folder, a_week(days=3))
    assert line.advance("4").notes == []
    return line


def test_slots_of_other_windows_that_stay_are_told_until_a_backfill_replaces_them(
    until4, tmp_path, monkeypatch
):
    line = until4.copy(tmp_path)
    hourly = len(line.rows("completeness"))
    # a ledger of before it was kept by which windows was published does not refuse others
    monkeypatch.setattr("strandline.pipeline.request.layout._published_by", lambda entries: None)
    halves = line.of(a_spec(window={"sliding": "1h", "every": "30m"}))
    edited, some = halves.backfill("1", "3", dry_run=True).notes
    assert edited.startswith("the pipeline's rules have changed since run ")
    assert edited.endswith(": window")
    by_hand = halves.backfill("20", "21").notes
    assert by_hand[0] == edited
    empty, told = sorted(by_hand[1:], key=lambda note: "replaces" in note)
    assert "record" in empty  # nor is there any on that day
    assert 0 < int(some.split()[0]) < int(told.split()[0]) == hourly
    first, last = (told.split(f" --{name} ")[1].split()[0] for name in ("start", "end"))
    assert f"strandline backfill meter --start {first} --end {last} replaces them" in told
    assert halves.backfill(first, last).notes == []
    lengths = {row["slot_end"] - row["slot_start"] for row in halves.rows("completeness")}
    starts = {row["slot_start"].minute for row in halves.rows("completeness")}
    assert (len(lengths), starts) == (1, {0, 30})


def test_a_preview_tells_the_aggregates_that_panes_cannot_put_together(spark, tmp_path):
    spec = a_spec(
        window={"sliding": "2h", "every": "30m"},
        aggregates={"devices": "count(DISTINCT device)", "total": "sum(amount)"},
    )
    line = Line(spark, tmp_path, spec)
    land(tmp_path, a_week(days=1))
    notes = line.backfill("1", "2", dry_run=True).notes
    (told,) = (note for note in notes if note.startswith("aggregates.devices: "))
    assert "'count(DISTINCT device)' needs the single values" in told
    assert "once for each of its windows (up to 4)" in told


def test_a_backfill_of_an_earlier_day_leaves_processed_up_to_where_it_is(until4, tmp_path):
    """It went back by a day, as nothing arrives in the last seconds before a midnight."""
    line = until4.copy(tmp_path)
    land(tmp_path, [a_record("1 12:30", "1 12:10", amount=999)], mode="append")
    done = line.backfill("1", "2")
    assert done.changed
    assert (done.horizon_ms, done.frontier_ms) == (instant("4"), instant("4"))
    assert not any(note.startswith("processed up to") for note in done.notes)


def test_a_load_that_was_landed_twice_is_noted_as_its_day_is_observed(until4, tmp_path):
    line = until4.copy(tmp_path)
    again = [row for row in a_week(days=3) if row["arrived_on"] == date(2024, 3, 3)]
    land(tmp_path, again, mode="append")
    notes = line.advance("4", dry_run=True).notes
    named = f"{len(again)} rows of 2024-03-03 in files of landing/meter that have the size"
    assert any(note.startswith(named) for note in notes)


def test_a_run_that_moves_processed_up_to_back_says_so_before_and_after(until4, tmp_path):
    line = until4.copy(tmp_path)
    known_by_then = Request(
        "backfill", TimeRange(instant("1"), instant("3")), as_of_ms=instant("2")
    )
    for request in (replace(known_by_then, dry_run=True), known_by_then):
        done = line.run(request)
        (note,) = (one for one in done.notes if one.startswith("processed up to"))
        assert "goes back from 2024-03-04T00:00:00Z to 2024-03-02T00:00:00Z" in note
    assert done.frontier_ms == instant("2")
