"""legacy_ascending on a lake: what breaks the order is counted, kept, told, or fails the run."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, land
from replayed import published, replay_of, told_by_replay

from strandline.errors import InputError
from strandline.pipeline.views.runs import run_of
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

WEEK = a_week(days=3)


def legacy(on_violation: str = "warn"):
    return a_spec(watermark={"strategy": "legacy_ascending", "on_violation": on_violation})


def test_every_run_counts_and_keeps_the_violations_known_at_its_horizon(spark, tmp_path):
    line = Line(spark, tmp_path, legacy())
    second, others = (
        [row for row in WEEK if (row["arrived_on"].day == 2) == is_second]
        for is_second in (True, False)
    )
    land(tmp_path, others)
    outcome = line.advance("4")
    assert outcome.violations == replay_of(line.spec, others, "4").violations
    # a day that lands late has its say about those after it
    land(tmp_path, second, mode="append")
    outcome = line.backfill("1", "4", as_of="4")
    known = replay_of(line.spec, WEEK, "4").violations
    assert 0 < outcome.violations == known
    assert any(f"{known:,} records came behind an earlier one" in note for note in outcome.notes)
    assert line.ledger[-1].violations == known
    assert published(line)["windows"] == told_by_replay(line.spec, WEEK, "4")["windows"]
    assert run_of(line.spec, line.lake, outcome.run_id)["violations"] == known
    assert status_of(line.spec, line.lake)["last_run"]["violations"] == known
    # a day in the middle is counted as far as it is known, and what is kept is not counted again
    again = line.backfill("1", "3", as_of="3 10:00", dry_run=True)
    assert again.violations == replay_of(line.spec, WEEK, "3 10:00").violations


def test_a_violation_that_shall_fail_stops_the_run_before_anything_is_published(spark, tmp_path):
    line = Line(spark, tmp_path, legacy("fail"))
    land(tmp_path, WEEK)
    with pytest.raises(InputError, match="came behind an earlier one of their channel") as failed:
        line.advance("2")
    assert failed.value.exit_code == 2
    assert "watermark.on_violation" in failed.value.place
    assert "by up to 2h 3m 17s; the first of channel '" in failed.value.problem
    assert "bounded_out_of_orderness" in failed.value.way_out
    assert line.ledger[-1].step == "failed"
    assert set(line.versions()) == set()
