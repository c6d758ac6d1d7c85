"""Runs of windows that go by the order of their records: as a replay has them, day by day."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, land, ms
from replayed import (
    assert_books_balance,
    assert_nothing_written,
    assert_told_by_replay,
    by_days,
    told_by_replay,
)

from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING, datetime_of

pytestmark = pytest.mark.spark

COUNTED = {
    "window": {"sliding": "2h", "every": "1h"},
    "trigger": {"count": 3},
    "firings": True,
    "source__sequence": "position",
}
OF_ALL_TIME = COUNTED | {"window": {"count": 10, "every": 4}, "trigger": None}


@pytest.mark.story
def test_days_count_as_a_replay_does_and_the_calendar_tells_what_was_never_fired(spark, tmp_path):
    rows, spec = a_week(days=3), a_spec(**COUNTED)
    days = Line(spark, tmp_path, spec)
    land(days.folder, rows)
    told = days.advance("3")
    assert_told_by_replay(days, rows, "3")
    days.advance("4")
    assert_told_by_replay(days, rows, "4")
    assert_books_balance(days)

    slots = days.rows("completeness")
    closed = [slot for slot in slots if slot["state"] == "closed"]
    assert sum(slot["unfired"] for slot in closed) > 0
    assert {slot["unfired"] for slot in slots if slot["state"] != "closed"} <= {0}
    assert sum(slot["missed_pairs"] for slot in slots) > 0
    in_windows = sum(row["records"] for row in days.rows("windows") if row["state"] == "closed")
    assert sum(s["on_time"] + s["late_accepted"] - s["unfired"] for s in closed) == in_windows
    assert any(note.startswith("unfired: ") for note in told.notes)


def test_windows_of_all_time_are_made_of_the_whole_history_whatever_is_asked_for(spark, tmp_path):
    rows, spec = a_week(days=3), a_spec(**OF_ALL_TIME)
    line = by_days(Line(spark, tmp_path, spec), rows, "3", "4")
    assert_told_by_replay(line, rows, "4")
    for row in line.rows("windows"):
        assert row["window_start"] == datetime_of(EVERYTHING.start_ms)
        assert row["records"] == 10
    assert_nothing_written(line, lambda: line.backfill("2", "3", as_of="4"))


def test_a_record_without_a_value_to_compare_ends_the_run(spark, tmp_path):
    spec = a_spec(**COUNTED | {"trigger": {"delta": 5, "of": "nullif(amount, amount)"}})
    line = Line(spark, tmp_path, spec)
    land(line.folder, a_week(days=1))
    with pytest.raises(InputError, match=r"meter: trigger\.of: nullif.* is null for a record"):
        line.advance("2")


def test_windows_of_keys_that_are_structs_are_replayed_as_those_of_plain_ones(spark, tmp_path):
    rows, key = a_week(days=1), {"of": "named_struct('a b', device, 'n', 1)"}
    line = Line(spark, tmp_path, a_spec(**COUNTED, source__key=key))
    land(line.folder, rows)
    line.advance("2")
    told = [
        (start_ms, device, records, firings, late_accepted)
        for (start_ms, _, device), (records, *_), (late_accepted, firings, *_) in told_by_replay(
            a_spec(**COUNTED), rows, "2"
        )["windows"]
    ]
    names = ("records", "firings", "late_accepted")
    found = [
        (ms(row["window_start"]), row["of"]["a b"], *(row[name] for name in names))
        for row in line.rows("windows")
    ]
    assert sorted(found) == sorted(told) != []
