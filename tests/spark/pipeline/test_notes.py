"""The notes of a run: what it would otherwise do, or leave, in silence."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, land

pytestmark = pytest.mark.spark


def test_slots_of_other_windows_that_stay_are_told_until_a_backfill_replaces_them(
    spark, tmp_path, monkeypatch
):
    line = Line(spark, tmp_path, a_spec())
    land(tmp_path, a_week(days=3))
    assert line.advance("4").notes == []
    hourly = len(line.rows("completeness"))
    # a ledger of before it was kept by which windows was published does not refuse others
    monkeypatch.setattr("strandline.pipeline.layout._published_by", lambda entries: None)
    halves = line.of(a_spec(window={"sliding": "1h", "every": "30m"}))
    (some,) = halves.backfill("1", "3", dry_run=True).notes
    (told,) = halves.backfill("20", "21").notes
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
