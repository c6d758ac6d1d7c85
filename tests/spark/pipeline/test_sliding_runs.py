"""The laws of a run hold for sliding windows: by days, in one go, a range, an input that ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lakes import Line, a_record, a_spec, a_week, at, few_at_once, instant, land, ms
from replayed import (
    assert_books_balance,
    assert_nothing_written,
    assert_range_alone,
    assert_same_tables,
    assert_told_by_replay,
    by_days,
)

from strandline.errors import InputError

pytestmark = pytest.mark.spark

WEEK = a_week(days=5)
SPEC = a_spec(window={"sliding": "3h", "every": "50m", "offset": "15m"}, quality__gaps="allow")
WITH_GAPS = a_spec(
    pipeline="with_gaps",
    window={"sliding": "40m", "every": "1h"},
    quality__gaps="allow",
    # where only an expression tells it, Spark is asked which published rows arrived since
    source__arrival_time="timestamp_millis(unix_millis(arrived_at))",
)


@pytest.fixture(scope="module")
def day_by_day(spark, tmp_path_factory):
    """The week in two runs, each over days that were skipped."""
    return by_days(Line(spark, tmp_path_factory.mktemp("days"), SPEC), WEEK, "3", "6")


@pytest.mark.story
def test_sliding_windows_day_by_day_are_what_flink_would_have_said(day_by_day):
    assert_told_by_replay(day_by_day, WEEK, "6")
    assert sum(row["missed_pairs"] for row in day_by_day.rows("completeness"))
    assert_books_balance(day_by_day)


def test_in_one_go_they_are_those_day_by_day_and_a_rerun_of_a_range_writes_nothing(
    day_by_day, tmp_path
):
    line = Line(day_by_day.spark, tmp_path, SPEC)
    land(tmp_path, WEEK)
    with few_at_once(250):
        line.backfill("1", "8", as_of="6")
    assert_same_tables(line, day_by_day)
    assert_nothing_written(line, lambda: line.backfill("2 05:00", "3 20:00"))


def test_a_range_alone_is_that_range_of_the_whole(day_by_day, tmp_path):
    line = Line(day_by_day.spark, tmp_path, SPEC)
    land(tmp_path, WEEK)
    line.backfill("3 07:20", "4 12:00", as_of="6")
    assert_range_alone(line, day_by_day, "3 07:20", "4 12:00")


def test_records_in_a_gap_between_windows_are_told_apart_day_by_day(spark, tmp_path):
    line = Line(spark, tmp_path, WITH_GAPS)
    land(tmp_path, WEEK)
    line.advance("4")
    line.advance("6")
    assert_told_by_replay(line, WEEK, "6")
    assert {"late", "no_window"} <= {row["reason"] for row in line.rows("quarantine")}


def test_only_all_windows_that_share_records_can_be_closed(day_by_day, tmp_path):
    line = replace(day_by_day.copy(tmp_path), audited=True)
    with pytest.raises(InputError, match="they share records"):
        line.backfill("5 20:00", "6", as_of="6", close=True)
    line.backfill("5 15:00", "6", as_of="6", close=True)
    assert {row["state"] for row in line.rows("windows")} == {"closed"}
    assert_books_balance(line)


def test_windows_that_would_be_open_longer_now_close_with_those_that_were_closed(spark, tmp_path):
    """Rows of a channel have gone: to older windows, which share records, the watermark is late."""
    line = Line(spark, tmp_path, a_spec(window={"sliding": "12h", "every": "4h"}))
    hours = ("1 12:00", "2 06:00", "2 22:00", "3 12:00")
    rows = [a_record(hour, hour, channel) for hour in hours for channel in "ab"]
    land(tmp_path, rows)
    line.advance("3")
    line.backfill("2 12:00", "3", as_of="3", close=True)
    gone = [row for row in rows if (row["source"], row["happened_at"].hour) != ("b", 22)]
    land(tmp_path, [*gone, a_record("3 00:10", "2 18:00", "a", position=1)])
    done = line.advance("4", accept_loss="the device was never there", allow_removals=True)
    assert done.status == "published"
    (late,) = line.rows("quarantine")
    assert (late["reason"], late["happened_at"].hour) == ("late", 18)
    closed_at = {ms(slot["slot_start"]): slot["closed_at"] for slot in line.rows("completeness")}
    assert closed_at[instant("2 08:00")] == closed_at[instant("2 12:00")]


def test_zeros_of_either_sign_are_one_key_and_all_their_firings_are_told(spark, tmp_path):
    spec = a_spec(
        source__channels=["a"],
        source__key={"zero": "CAST(amount AS DOUBLE) * (position - 1)"},
        window={"sliding": "1h", "every": "30m", "offset": "0s"},
        firings=True,
    )
    line = Line(spark, tmp_path, spec)
    times = [("10:00", "10:00", 2), ("10:01", "10:01", 0), ("11:55", "11:55", 2)]
    times += [("12:00", "10:03", 0), ("12:01", "10:04", 2), ("23:00", "23:00", 2)]
    rows = [
        a_record(f"1 {arrived}", f"1 {happened}", amount=0, position=position)
        for arrived, happened, position in times
    ]
    land(tmp_path, rows)
    line.advance("2")
    of_ten = [row for row in line.rows("firings") if row["window_start"] == at("1 10:00")]
    assert [(row["firing"], row["records"]) for row in of_ten] == [(1, 2), (2, 3), (3, 4)]
    assert {str(row["zero"]) for row in line.rows("windows")} == {"0.0"}
    assert not line.backfill("1", "2", as_of="2").changed
