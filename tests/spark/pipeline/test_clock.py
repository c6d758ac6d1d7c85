"""No run knows what has not come yet by the clock."""

from __future__ import annotations

import pytest
from changes import of_days, some_days
from lakes import Line, a_record, a_spec, at, instant, land
from replayed import assert_told_by_replay

pytestmark = pytest.mark.spark

SPEC = a_spec()
DAYS = some_days(6)
NOON = instant("4 12:00")
BY_NOON = [row for row in of_days(DAYS, 4) if row["arrived_at"] < at("4 12:00")]
AHEAD = a_record("9 10:00", "4 11:00", position=900)
"""One arrival of a day that has not begun."""


@pytest.fixture(scope="module")
def until_noon(spark, tmp_path_factory):
    """Three days and half of the fourth have landed, and one row of the ninth."""
    line = Line(spark, tmp_path_factory.mktemp("noon"), SPEC)
    land(line.folder, [*of_days(DAYS, 1, 2, 3), *BY_NOON, AHEAD])
    return line


def test_without_a_horizon_a_run_stands_at_the_present_and_names_what_lies_ahead(
    until_noon, tmp_path
):
    line = until_noon.copy(tmp_path)
    outcome = line.backfill("1", "5", now_ms=NOON)
    assert outcome.horizon_ms <= NOON
    assert outcome.frontier_ms == instant("4")
    assert any("2024-03-09, which has not begun" in note for note in outcome.notes)
    observed = {row["arrival_date"].day for row in line.rows("timeline")}
    assert observed == {1, 2, 3}
    known = [*of_days(DAYS, 1, 2, 3), *BY_NOON]
    assert_told_by_replay(line, known, "4 12:00")

    # the rest of the day lands: nothing has been taken for whole
    land(line.folder, [row for row in of_days(DAYS, 4) if row not in BY_NOON], mode="append")
    line.advance("5", now_ms=instant("5 01:00"))
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")


@pytest.mark.parametrize(
    "idleness",
    [{}, {"watermark__idleness": "3h", "watermark__emit": {"every": "5m"}}],  # of fewer ticks
    ids=["", "idle"],
)
def test_a_day_that_is_not_ready_is_known_and_not_taken_for_whole(spark, tmp_path, idleness):
    line = Line(spark, tmp_path, a_spec(source__ready_after="2h", **idleness))
    third = of_days(DAYS, 3)
    there = [*of_days(DAYS, 1, 2), *third[:-3]]
    land(tmp_path, there)
    by_hand = line.backfill("1", "6", as_of="4 00:30", now_ms=instant("4 01:00"))
    assert_told_by_replay(line, there, "4 00:30")
    assert {row["arrival_date"].day for row in line.rows("timeline")} == {1, 2}
    assert by_hand.frontier_ms == instant("3")

    land(tmp_path, third[-3:], mode="append")
    if not idleness:  # which has no say in that
        early = line.advance("4", now_ms=instant("4 01:59"))
        assert early.frontier_ms == instant("3")
        assert any("2024-03-04T00:00:00Z is not ready" in note for note in early.notes)
    ready = line.advance("4", now_ms=instant("4 02:00"))
    assert (ready.frontier_ms, ready.notes) == (instant("4"), [])
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3), "4 00:30")
