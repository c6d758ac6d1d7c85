"""The laws of a run hold for sessions: day by day, in one go, a range, an input that ended."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from deltalake import write_deltalake
from found import ONE
from lakes import Line, a_record, a_spec, a_week, few_at_once, land, ms, of_one
from replayed import (
    assert_books_balance,
    assert_nothing_written,
    assert_range_alone,
    assert_same_tables,
    assert_told_by_replay,
    by_days,
)

from strandline.lake.timeline import staged_cells
from strandline.pipeline.rebuild import rebuild
from strandline.pipeline.views.incomplete import incomplete_in
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

WEEK = a_week(days=5)
SPEC = a_spec(
    window={"session": "50m"},
    quality={"gaps": "allow", "slot": "2h"},
    firings=True,
)
OWN_GAPS = a_spec(
    pipeline="own_gaps",
    window={"session": "60000 * (10 + position % 50)"},
    # where only an expression tells it, Spark is asked which published rows arrived since
    source__arrival_time="timestamp_millis(unix_millis(arrived_at))",
    quality={"gaps": "warn"},
)

WALKED = {
    "window": {"session": "50m"},
    "quality": {"gaps": "allow", "slot": "2h"},
    "firings": True,
    "source__sequence": "position",
}
COUNTING = a_spec(pipeline="counting", trigger={"count": 3}, **WALKED)
EARLY = a_spec(pipeline="early", trigger={"continuous": "25m", "purging": True}, **WALKED)


@pytest.fixture(scope="module")
def day_by_day(spark, tmp_path_factory):
    """The week in two runs, each over days that were skipped."""
    return by_days(Line(spark, tmp_path_factory.mktemp("days"), SPEC), WEEK, "3", "6")


@pytest.mark.story
def test_sessions_day_by_day_are_what_flink_would_have_said(day_by_day):
    assert_told_by_replay(day_by_day, WEEK, "6")
    assert_books_balance(day_by_day)


@pytest.mark.story
def test_sessions_in_one_go_are_those_day_by_day_and_a_rerun_writes_nothing(day_by_day, tmp_path):
    line = Line(day_by_day.spark, tmp_path, SPEC, audited=True)
    land(tmp_path, WEEK)
    line.backfill("1", "8", as_of="6")
    assert_same_tables(line, day_by_day)
    assert_nothing_written(line, lambda: line.backfill("2 05:00", "3 20:00"))


def test_a_range_of_sessions_is_widened_to_whole_slots(day_by_day, tmp_path):
    line = Line(day_by_day.spark, tmp_path, SPEC)
    land(tmp_path, WEEK)
    outcome = line.backfill("3 07:20", "4 12:00", as_of="6")
    assert outcome.read["arrival_days"] < 5
    assert_range_alone(line, day_by_day, "3 06:00", "4 12:00")


@pytest.fixture(scope="module")
def until4(spark, tmp_path_factory):
    """Three days of sessions with gaps of their own."""
    line = Line(spark, tmp_path_factory.mktemp("until4"), OWN_GAPS)
    land(line.folder, WEEK)
    line.advance("4")
    return line


def test_gaps_of_their_own_day_by_day_also_where_a_driver_holds_few_sessions_at_once(
    until4, tmp_path
):
    line = until4.copy(tmp_path)
    # a later run reads no day from which nothing reaches what is not final
    for file in (tmp_path / "landing" / "meter").glob("arrived_on=2024-03-01/*"):
        file.unlink()
    commits = line.table("timeline").version()
    with (
        few_at_once(30),
        patch.object(rebuild, "stage_piece", wraps=rebuild.stage_piece) as pieces,
        patch.object(staged_cells, "cell_facts", wraps=staged_cells.cell_facts) as facts,
    ):
        outcome = line.advance("6")
    assert facts.day_map.called, "the cells are not staged"
    assert line.table("timeline").version() - commits >= len(outcome.observed_days) == 2
    assert pieces.call_count > 1
    assert_told_by_replay(line, WEEK, "6")


def test_a_timeline_from_before_cells_told_their_ends_still_counts(until4, tmp_path):
    line = until4.copy(tmp_path)
    uri, timeline = str(line.root / "timeline"), line.table("timeline").to_pyarrow_table()
    older = timeline.drop_columns(["largest_end_ms"])
    by = ["arrival_date"]
    write_deltalake(uri, older, mode="overwrite", schema_mode="overwrite", partition_by=by)
    outcome = line.advance("6")
    assert outcome.observed_days == ["2024-03-04", "2024-03-05"]
    assert_told_by_replay(line, WEEK, "6")


def test_sessions_that_count_are_day_by_day_those_of_a_replay(spark, tmp_path):
    rows = a_week(days=3)
    line = by_days(Line(spark, tmp_path, COUNTING), rows, "3", "4")
    assert_told_by_replay(line, rows, "4")
    assert_books_balance(line)
    assert sum(slot["unfired"] for slot in line.rows("completeness")) > 0


def test_sessions_that_fire_early_are_those_of_a_replay(spark, tmp_path):
    line = Line(spark, tmp_path, EARLY)
    rows = a_week(days=3)
    land(line.folder, rows)
    line.advance("4")
    assert_told_by_replay(line, rows, "4")
    timings = {row["timing"] for row in line.rows("firings")}
    assert timings == {"EARLY", "ON_TIME", "LATE"}


def test_sessions_whose_input_had_ended_stay_as_they_were(spark, tmp_path):
    spec = a_spec(window={"session": "1h"}, quality={"gaps": "allow"}, watermark__bound="5h")
    rows = [
        *(a_record("1 06:00", "1 06:00"), a_record("1 07:00", "1 06:50")),
        *(a_record("1 08:00", "1 09:30", "b"), a_record("1 20:00", "1 12:30", "b")),
    ]
    line = Line(spark, tmp_path, spec)
    land(tmp_path, rows)
    line.backfill("1", "2", as_of="1 10:00", close=True)
    ended = in_order(line.rows("windows"))
    assert [(row["records"], row["state"]) for row in ended] == [(2, "closed"), (1, "closed")]
    later = [
        *(a_record("2 01:00", "1 07:30"), a_record("2 01:10", "1 22:00")),
        *(a_record("2 02:00", "2 00:30", "b"), a_record("2 09:00", "2 09:00", "b")),
        *(a_record("2 09:00", "2 09:00"),),
    ]
    land(tmp_path, rows + later)
    line.advance("3")
    known = [row for row in line.rows("windows") if ms(row["window_start"]) in starts(ended)]
    assert in_order(known) == ended
    late = {ms(row["happened_at"]): row["watermark_ms"] for row in line.rows("quarantine")}
    assert len(late) == 3
    assert set(late.values()) == {2**63 - 1}


def in_order(rows):
    return sorted(rows, key=lambda row: row["window_start"])


def starts(rows):
    return {ms(row["window_start"]) for row in rows}


def test_a_day_is_complete_once_no_session_that_began_on_it_can_change(spark, tmp_path):
    """The calendar's slots were closed while a session of them went on, and the day announced."""
    rules = {"window": {"session": "3h"}, "watermark__bound": "0s", "allowed_lateness": "0s"}
    line = Line(spark, tmp_path, a_spec(**ONE | rules))
    rows = of_one("1 04:10", *(f"{1 + h // 24} {h % 24:02}:43" for h in range(19, 54, 2)))
    land(tmp_path, [*rows, a_record("4 20:43", "4 20:43", position=99)])
    began = "2024-03-01T19:00:00Z"
    assert line.advance("3").completed == []
    assert status_of(line.spec, line.lake)["closed_up_to"] == began
    listed = incomplete_in(Shown.of(line.spec, line.lake), limit=99)["listed"]
    assert listed[-1]["slot_start"] == began
    assert [cause["name"] for cause in listed[-1]["why"]] == ["open_session"]
    assert line.backfill("2", "3").completed == []  # what is rebuilt by hand closes nothing else
    assert status_of(line.spec, line.lake)["closed_up_to"] == began
    assert line.advance("5").completed == [["2024-03-01", "2024-03-02"]]
