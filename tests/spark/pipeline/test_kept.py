"""Ranges by rules of one run alone: scheduled runs leave their windows, and say what has come."""

from __future__ import annotations

import pytest
from changes import land_again, landing_of
from joined import COGROUP, PAIRED
from kept_ranges import (
    ONE,
    OWN_GAPS,
    RANGE,
    SESSIONS,
    SIX_HOURS,
    TUMBLING,
    decided,
    decided_of_two,
    hourly,
    late_of,
    numbered,
    slots,
)
from lakes import Line, a_record, a_spec, instant, land, ms
from replayed import assert_books_balance, assert_told_by_replay, of_range
from vacuums import vacuum_all

from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import TimeRange
from strandline.pipeline.views.deep import books_of_all
from strandline.pipeline.views.read_pipeline import ReadPipeline

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("window", "end", "rules"),
    [
        (TUMBLING, "2 08:00", {}),
        (OWN_GAPS, None, {"trigger": {"continuous": "5m"}, "firings": True}),
    ],
    ids=["windows", "early sessions with gaps of their own"],
)
def test_a_scheduled_run_keeps_them_and_quarantines_what_has_come_since(
    begun, spark, tmp_path, window, end, rules
):
    line = begun(decided, spark, tmp_path, window, **rules)
    windows, calendar = of_range(line.rows("windows"), *RANGE), slots(line, late=False)
    assert not late_of(line)  # six hours accept what comes four hours late

    grown = numbered(a_record("2 10:30", "2 10:15"), a_record("2 23:30", "2 22:15"))
    arrived = numbered(a_record("4 05:00", "2 07:15"), a_record("4 06:00", "3 07:15"))
    more = numbered(*hourly(4))
    land(tmp_path, [*grown, *more, *arrived], mode="append")
    outcome = line.advance("5")
    assert outcome.to_recompute == ["2024-03-02"]
    assert any("stay as run" in n and "with allowed_lateness: 6h" in n for n in outcome.notes)
    assert "windows kept from 2024-03-01T00:00:00Z: 3 late records arrived since" in (outcome.notes)
    assert of_range(line.rows("windows"), *RANGE) == windows
    assert slots(line, late=False) == calendar
    assert sum(slot["late"] for slot in slots(line, late=True)) == 3
    by_position = dict(late_of(line))
    # what has landed late by the watermark that closed its window, the other by that of its arrival
    watermark_ms = instant("4 04:11") - 60_000 - 30 * 60_000 - 1
    own_gap_ms = 60_000 * (10 + arrived[0]["position"] % 50)
    end_ms = instant("2 07:15") + own_gap_ms if end is None else instant(end)
    assert by_position == {
        **{row["position"]: 1 for row in grown},
        arrived[0]["position"]: watermark_ms - end_ms + 2 - 6 * 3_600_000,
    }
    assert len(late_of(line, of=("3", "4"))) == 2  # by the file, as always
    (one,) = PipelineState.of(line.ledger).overridden
    assert (one.windows.start_ms, one.windows.end_ms) == (instant("1"), instant("3"))

    assert_books_balance(line)
    if window is TUMBLING:  # the next night
        assert_it_goes_on_or_is_redone(line, [*grown, *more, *arrived], by_position, windows)


def assert_it_goes_on_or_is_redone(line, landed, by_position, windows):
    """What lands later is late too; or all goes by the file, if that says so by then."""
    again = numbered(a_record("1 20:30", "1 20:15"))
    land(line.folder, [*again, *numbered(*hourly(5))], mode="append")
    kept = line.copy(line.folder / "kept")
    assert kept.advance("6").diff["quarantine"]["insert"] == 2  # one of them day 5's own
    assert dict(late_of(kept)) == {**by_position, again[0]["position"]: 1}
    assert of_range(kept.rows("windows"), *RANGE) == windows

    every = [*numbered(*hourly(1, 2, 3)), *landed, *again, *numbered(*hourly(5))]
    redone = line.of(a_spec(**ONE, window=TUMBLING, overridden="redo"))
    (said,) = [note for note in redone.advance("6").notes if "were published by run" in note]
    assert "recomputes them by the pipeline's file (overridden: redo)" in said
    assert_told_by_replay(redone, every, "6")
    assert not PipelineState.of(redone.ledger).overridden
    for one in (line, kept):
        assert_books_balance(one)


def test_a_late_record_that_arrived_after_the_run_stays_late_by_the_rules_of_its_range(
    spark, tmp_path
):
    """The next runs evaluate late records since their base again, also those after their end."""
    late = a_record("6 10:00", "1 10:10")
    rows = numbered(*hourly(*range(1, 8)), late)
    land(tmp_path, rows)
    line = Line(spark, tmp_path, a_spec(**ONE))
    line.advance("5")
    line.of(a_spec(**ONE | SIX_HOURS)).backfill(*RANGE, overrides=SIX_HOURS, reason="slow days")
    decided_late, calendar = late_of(line), slots(line, late=True)
    assert [position for position, _ in decided_late] == [rows[-1]["position"]]
    for day in ("6", "7"):
        line.advance(day)
        assert (late_of(line), slots(line, late=True)) == (decided_late, calendar)
        assert_books_balance(line)


def test_what_was_still_open_goes_by_the_file_and_a_stricter_rule_stays_strict(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(**ONE, window=TUMBLING, allowed_lateness="12h"))
    rows = numbered(*hourly(1, 2))
    land(tmp_path, rows)
    line.of(a_spec(**ONE, window=TUMBLING, allowed_lateness="0s")).backfill(
        "1", "3", overrides={"allowed_lateness": "0s"}, reason="strict"
    )
    windows = of_range(line.rows("windows"), "1", "2 22:00")
    after = numbered(a_record("3 01:00", "2 20:15"), a_record("3 02:00", "2 23:15"))
    land(tmp_path, [*after, *numbered(*hourly(3))], mode="append")
    outcome = line.advance("4")
    assert any("2024-03-03T00:00:00Z were published by run" in note for note in outcome.notes)
    assert any("they were still open at its data cut-off" in note for note in outcome.notes)
    assert of_range(line.rows("windows"), "1", "2 22:00") == windows
    assert after[0]["position"] in dict(late_of(line))  # twelve hours would have accepted it
    (last,) = of_range(line.rows("windows"), "2 23:00", "3")
    assert last["records"] == 2
    assert [
        (ms(row["slot_start"]), row["late"])
        for row in of_range(line.rows("completeness"), "2 19:00", "3")
    ][1] == (instant("2 20:00"), 1)
    assert_books_balance(line)


def test_an_empty_window_that_was_final_in_the_course_of_a_day_is_kept(spark, tmp_path):
    """By the file the watermark is known at the ends of windows alone: it was once open."""
    file = ONE | {"window": TUMBLING, "allowed_lateness": "0s", "quality__gaps": "allow"}
    line = Line(spark, tmp_path, a_spec(**file, watermark__bound="2h"))
    land(tmp_path, numbered(a_record("1 08:20", "1 08:20"), a_record("1 10:40", "1 10:40")))
    line.of(a_spec(**file, watermark__bound="10m")).backfill(
        "1 08:00", "1 11:00", as_of="1 12:00", overrides={"bound": "10m"}, reason="quick"
    )
    after = numbered(a_record("1 13:00", "1 09:30"))
    land(tmp_path, after, mode="append")
    line.advance("2")
    assert [position for position, _ in late_of(line)] == [after[0]["position"]]
    (one,) = PipelineState.of(line.ledger).overridden
    assert one.windows == TimeRange(instant("1 08:00"), instant("1 10:00"))
    assert_books_balance(line)


def test_a_session_that_was_dropped_in_the_course_of_a_day_is_kept(spark, tmp_path):
    """By the file the watermark was not known to have reached the end of its longer lateness."""
    file = ONE | {"window": SESSIONS, "watermark__bound": "10m", "quality__gaps": "allow"}
    line = Line(spark, tmp_path, a_spec(**file, allowed_lateness="0s"))
    happened = ("1 08:20", "1 09:59:45", "1 11:04", "1 14:00")
    land(tmp_path, numbered(*(a_record(at, at) for at in happened)))
    longer = {"allowed_lateness": "33m"}  # until 10:52:45; by 12:00 the watermark is at 10:54
    line.of(a_spec(**file, **longer)).backfill(
        "1 08:00", "1 12:00", as_of="1 12:00", overrides=longer, reason="a slow day"
    )
    line.advance("2")
    (one,) = PipelineState.of(line.ledger).overridden
    assert one.windows == TimeRange(instant("1 08:00"), instant("1 10:00"))
    assert_books_balance(line)


def test_rows_that_were_landed_again_with_others_are_late_beside_the_windows_of_before(
    begun, spark, tmp_path
):
    line = begun(decided, spark, tmp_path)
    windows = of_range(line.rows("windows"), *RANGE)
    other = numbered(*hourly(1))
    other[5] = {**other[5], "amount": 77}
    land_again(line, 1, other)
    line.advance("4")
    assert of_range(line.rows("windows"), *RANGE) == windows
    assert [position for position, _ in late_of(line)] == [other[5]["position"]]


def test_where_what_landed_since_cannot_be_told_the_range_is_recomputed_and_named(
    begun, spark, tmp_path
):
    line = begun(decided, spark, tmp_path)
    rows = numbered(*hourly(1, 2, 3), a_record("2 10:30", "2 10:15"))
    land_again(line, 2, [row for row in rows if row["arrived_on"].day == 2])
    vacuum_all(landing_of(line))
    (said,) = [note for note in line.advance("4").notes if "were published by run" in note]
    assert "(which of their records have landed since is not known any more)" in said
    assert_told_by_replay(line, rows, "4")


# ----------------------------------------------------------------------------------- two sources


@pytest.mark.parametrize(
    ("content", "end"),
    [(PAIRED, "2 08:00"), (COGROUP | {"window": SESSIONS}, "2 07:35")],
    ids=["window join", "sessions of a cogroup"],
)
def test_windows_over_two_sources_are_kept_and_what_has_come_for_them_is_late(
    spark, tmp_path, content, end
):
    line = decided_of_two(spark, tmp_path, content)
    tables = ("windows", "pairs") if content is PAIRED else ("windows",)
    published = {name: line.rows(name) for name in tables}
    calendar = slots(line, late=False)
    assert not late_of(line)  # six hours accept what comes four hours late

    grown, arrived = a_record("2 10:30", "2 10:15"), a_record("4 05:00", "2 07:15")
    land(tmp_path, numbered(grown, *hourly(4)), mode="append", table="landing/left")
    land(tmp_path, numbered(arrived, *hourly(4)), mode="append", table="landing/right")
    outcome = line.advance("5")
    assert any("stay as run" in note and "overridden: keep" in note for note in outcome.notes)
    assert "windows kept from 2024-03-01T00:00:00Z: 2 late records arrived since" in outcome.notes
    for name, rows in published.items():
        assert of_range(line.rows(name), *RANGE) == of_range(rows, *RANGE)
    assert slots(line, late=False) == calendar
    assert sum(slot["late"] for slot in slots(line, late=True)) == 2
    late = {row["input"]: row["late_by_ms"] for row in of_range(line.rows("quarantine"), *RANGE)}
    watermark_ms = instant("4 04:10") - 30 * 60_000 - 1
    late_by_ms = watermark_ms - instant(end) + 2 - 6 * 3_600_000
    assert late == {"left": 1, "right": late_by_ms}
    assert len(PipelineState.of(line.ledger).overridden) == 1
    store = line.lake.pipeline(line.spec.pipeline)
    books = books_of_all(ReadPipeline(line.spec, store, PipelineState.of(line.ledger)))
    assert [book.statement for book in books if not book.balanced] == []
