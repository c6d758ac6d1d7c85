"""Rows that landed again with other event times: what they were published into goes with them."""

from __future__ import annotations

from typing import Any

import pytest
from changes import land_again
from lakes import Line, a_spec, land, of_one
from replayed import assert_told_by_replay

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def a_line(spark, folder, **rules: Any) -> Line:
    return Line(spark, folder, a_spec(source__channels=["a"], quality__gaps="allow", **rules))


GO = {"allow_removals": True}
EVENING = of_one("1 22:30", "1 23:20")


def after_an_evening(spark, folder, lateness: str) -> Line:
    """Two sessions of an evening, published by a scheduled run."""
    line = a_line(spark, folder, window={"session": "1h"}, allowed_lateness=lateness)
    land(folder, EVENING)
    line.advance("2")
    return line


def test_a_late_row_of_a_day_that_was_not_whole_when_a_run_by_hand_read_it(spark, tmp_path):
    line = a_line(spark, tmp_path)
    first = of_one("1 10:00", "1 23:00")
    land(tmp_path, first)
    line.advance("2")
    evening = of_one("2 18:00", "2 19:00, 1 10:20", first=2)
    land(tmp_path, evening, mode="append")
    line.backfill("1", "2", as_of="2 20:00")
    assert len(line.rows("quarantine")) == 1
    moved = [evening[0], *of_one("2 19:00, 2 18:50", first=3)]
    land_again(line, 2, moved)
    line.advance("3", **GO)
    assert_told_by_replay(line, [*first, *moved], "3")


def test_a_row_that_had_begun_a_session_earlier(begun, spark, tmp_path):
    line, last = begun(after_an_evening, spark, tmp_path, "0s"), of_one("2 10:00", first=3)
    land(tmp_path, [*of_one("2 00:05, 1 21:40", first=2), *last], mode="append")
    line.advance("3")
    moved = [*of_one("2 00:05, 2 00:04", first=2), *last]
    land_again(line, 2, moved)
    line.advance("3", **GO)
    assert_told_by_replay(line, [*EVENING, *moved], "3")


def test_a_row_published_by_hand_before_any_scheduled_run(spark, tmp_path):
    line = a_line(spark, tmp_path)
    later = of_one("3 08:00", "3 20:00", first=2)
    land(tmp_path, [*of_one("1 10:00", "1 20:00"), *later])
    line.backfill("1", "1 12:00", as_of="4")
    moved = of_one("1 20:10, 1 20:05", "1 20:00")
    land_again(line, 1, moved)
    line.advance("4", **GO)
    assert_told_by_replay(line, [*moved, *later], "4")


def test_a_record_accepted_by_a_longer_lateness_is_in_its_window_or_in_quarantine(spark, tmp_path):
    line = a_line(spark, tmp_path)
    rows = of_one("1 22:30", "1 23:50", "2 01:00, 1 22:20", "2 14:00")
    land(tmp_path, rows)
    line.advance("2")
    line.advance("3")
    strict = a_line(spark, tmp_path, allowed_lateness="0s")
    strict.advance("3", **GO)
    assert_told_by_replay(strict, rows, "3")


def test_recreating_by_hand_a_range_of_all_records_goes_by_no_slot_outside_it(spark, tmp_path):
    line = a_line(spark, tmp_path, window={"tumbling": "1d"})
    rows = of_one("1 10:00", "1 23:00", "2 10:00")
    land(tmp_path, rows)
    line.advance("3")
    hours = a_line(spark, tmp_path)
    hours.backfill("1 06:00", "3", as_of="3", recreate=True, reason="hours", **GO)
    assert_told_by_replay(hours, rows, "3")


OPEN = ["2 00:30, 2 00:10"]


@pytest.mark.parametrize(
    ("lateness", "wrong", "further"),
    [
        ("0s", ["2 00:05, 1 21:40"], OPEN),
        ("0s", ["2 00:05, 1 21:40", "2 00:06, 1 20:45", "2 00:07, 1 19:50"], OPEN),
        ("2h", ["2 00:05, 1 19:55"], []),
    ],
    ids=[
        "of a session that is open",
        "of one that has grown record by record",
        "that fired at once, and is not closed",
    ],
)
def test_a_row_of_a_slot_that_the_watermark_had_closed_before(
    begun, spark, tmp_path, lateness, wrong, further
):
    line, others = begun(after_an_evening, spark, tmp_path, lateness), of_one(*further, first=9)
    land(tmp_path, [*of_one(*wrong, first=2), *others], mode="append")
    line.advance("3")
    right = (one.replace(one.split(", ")[1], "2 00:04") for one in wrong)
    moved = [*of_one(*right, first=2), *others]
    land_again(line, 2, moved)
    line.advance("3", **GO)
    assert_told_by_replay(line, [*EVENING, *moved], "3")


@pytest.mark.parametrize(
    ("overridden", "lateness"),
    [("redo", "0s"), ("keep", "20h")],
    ids=["that are redone", "of which it was open"],
)
def test_a_row_of_a_range_by_other_rules(spark, tmp_path, overridden, lateness):
    line = a_line(spark, tmp_path, overridden=overridden)
    rows = of_one("1 10:10, 1 10:05", "1 12:00")
    land(tmp_path, rows)
    rules = {"allowed_lateness": lateness}
    by_hand = a_line(spark, tmp_path, overridden=overridden, **rules)
    by_hand.backfill("1", "1 11:00", as_of="2", overrides=rules, reason="drawn")
    moved = of_one("1 10:10, 1 11:30", "1 12:00")
    land_again(line, 1, moved)
    line.advance("2", **GO)
    assert_told_by_replay(line, moved, "2")
