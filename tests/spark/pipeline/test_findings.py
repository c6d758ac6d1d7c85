"""Green means good: what is not as it must be is said by run, status and exit code."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from found import ONE, every, named, shown
from joined import COGROUP, JOIN, Join
from lakes import INSTANT, Line, a_record, a_spec, a_week, at, land

from strandline.errors import AuditFailedError
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.views.deep import books_of_all, findings_of_books
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.runs import run_of
from strandline.pipeline.views.status import status_of
from strandline.spec import parse_any

pytestmark = pytest.mark.spark

DAYS_OF_METER = {
    "pipeline": "days",
    "source": {"pipeline": "meter", "key": ["device"]},
    "window": {"tumbling": "1d"},
    "aggregates": {"total": "sum(total)"},
    "quality": {"gaps": "allow"},
}
UNCHECKED = {"quality__max_malformed_share": None}


def a_line(spark, tmp_path, rows, **changes) -> Line:
    land(tmp_path, rows)
    return Line(spark, tmp_path, a_spec(**ONE | changes), audited=True)


def off(line: Line) -> list[str]:
    """The books over the published tables that do not balance."""
    books = books_of_all(
        ReadPipeline(
            line.spec, line.lake.pipeline(line.spec.pipeline), PipelineState.of(line.ledger)
        )
    )
    return [book.statement for book in books if not book.balanced]


TEXTS = pa.schema([("synced", pa.string()), ("happened_at", INSTANT), ("amount", pa.int64())])
AS_TEXT = {
    "source__arrival_date": ...,
    "source__arrival_time": "synced",
    "source__key": [],
    **ONE,
}


def texts(minutes: int):
    """Arrivals as a text that no cast understands."""
    begun = at("1 09:00")
    moments = [begun + timedelta(minutes=number) for number in range(minutes)]
    rows = [
        {"synced": f"{moment:%d.%m.%Y %H:%M}", "happened_at": moment, "amount": 1}
        for moment in moments
    ]
    return pa.Table.from_pylist(rows, TEXTS)


def test_a_table_of_unreadable_arrivals_is_rejected_again_and_again_and_then_stands_once(
    spark, tmp_path
):
    """Accepted, then read right: its rows leave quarantine for their windows."""
    land(tmp_path, texts(150), partition_by=[])
    line = Line(spark, tmp_path, a_spec(**AS_TEXT), audited=True)
    for _ in range(2):
        with pytest.raises(AuditFailedError) as caught:
            line.advance("3")
        assert caught.value.exit_code == 3
        assert "100 % of rows malformed (150 of 150: null_arrival 150)" in str(caught.value)
    assert "max_malformed_share" in shown(line)
    assert off(line) == []
    assert len(line.rows("quarantine")) == 150
    assert line.ledger[-1].frontier_ms is None
    right = "try_to_timestamp(synced, 'dd.MM.yyyy HH:mm')"
    read = line.of(a_spec(**AS_TEXT | {"source__arrival_time": right}))
    in_both = patch("strandline.pipeline.diff.diff.no_longer_malformed", return_value=[])
    with in_both, pytest.raises(AuditFailedError) as caught:
        read.advance("3")
    assert "expect_tables_to_share_no_record" in str(caught.value)
    assert "quarantine, arrival day unknown: 0 ≠ quarantined 150 (150 too many)" in str(
        caught.value
    )
    assert read.advance("3").status == "published"
    assert read.rows("quarantine") == []
    assert off(read) == []
    assert sum(row["records"] for row in read.rows("windows")) == 75  # the others are open


def test_half_of_the_rows_malformed_is_a_warning_or_what_the_file_says(spark, tmp_path):
    rows = every(30, "1 00:30", "2")
    rows += [row | {"happened_at": None} for row in rows]
    line = a_line(spark, tmp_path, rows)
    run = line.advance("2", dry_run=True)
    assert named(run)["max_malformed_share"].startswith("50.0 % of rows malformed (47 of 94")
    strict = line.of(a_spec(**ONE, quality__max_malformed_share={"null_event_time": 0}))
    with pytest.raises(AuditFailedError):
        strict.advance("2")
    assert line.advance("2").status == "published"
    assert "max_malformed_share" in shown(line)


def test_an_arrival_date_that_is_the_events_day_is_noted(spark, tmp_path):
    rows = [
        row | {"arrived_on": row["happened_at"].date()} for row in every(30, "1 00:30", "3 00:30")
    ]
    rows += [
        row | {"happened_at": row["happened_at"] - timedelta(hours=1), "arrived_on": at("1").date()}
        for row in every(60, "2 00:30", "2 00:31")
    ]
    (note,) = a_line(spark, tmp_path, rows).advance("3", dry_run=True).notes[-1:]
    assert "the column looks like the event's day" in note


def test_what_no_longer_arrives_is_said_where_gaps_are_allowed(spark, tmp_path):
    # a row without an arrival, of a later day, is none
    rows = [*every(30, "1 00:01", "3"), a_record("4", "4") | {"arrived_at": None}]
    line = a_line(spark, tmp_path, rows, **UNCHECKED)
    assert named(line.advance("3")) == {}
    run = line.advance("5")
    said = "no arrival since 2024-03-02T23:31:00Z"
    assert named(run)["fresh_within"].startswith(said)
    assert shown(line)["fresh_within"].startswith(said)
    ended = line.backfill("1", "4", as_of="6", close=True)
    assert "fresh_within" not in named(ended)


def test_a_channel_that_never_spoke_and_one_that_fell_silent_are_named(spark, tmp_path):
    rows = every(30, "1 00:01", "4", source="a") + every(30, "1 00:01", "3 12:00", source="b")
    changes = {"source__channel": "source", "source__channels": ["a", "b", "c"]}
    line = a_line(spark, tmp_path, rows, **changes)
    assert named(line.advance("2"))["silent_after"].startswith(
        "1 of 3 channels silent: channel c since the start, 2024-03-01T00:00:00Z"
    )
    assert (
        "channel c since the start, 2024-03-01T00:00:00Z; channel b since 2024-03-03T11:31:00Z"
        in (named(line.advance("4"))["silent_after"])
    )
    assert "silent_after" in shown(line)


def test_a_watermark_ahead_names_its_record_and_is_shown_of_one_channel_too(spark, tmp_path):
    rows = every(30, "1 00:01", "2")
    rows[20]["happened_at"] += timedelta(days=14)
    # of the same window, arrival day and threshold: only the records tell which one it was
    rows.append(a_record("1 09:00", "15 09:55", position=1))
    line = a_line(spark, tmp_path, rows, firings=True)
    run = line.advance("2")
    late = sum(row["reason"] == "late" for row in line.rows("quarantine"))
    said = named(run)["watermark_ahead"]
    assert late > 20
    assert "that arrived at 2024-03-01T10:01:00Z with the event time 2024-03-15T10:00:00Z" in said
    refused = "quarantined 2 of 49 records of that arrival day"
    spared = f"spared up to {late} records late behind it"
    assert f"source.max_ahead: 1h would have {refused}, and {spared}" in said
    standing = status_of(line.spec, line.lake)
    assert standing["watermark"]["combined"] == "2024-03-15T09:29:59.999Z"
    # windows over these results are behind the same watermark
    days = parse_any(DAYS_OF_METER, origin="days.yaml").over(line.spec)
    assert named(line.of(days).advance("2"))["watermark_ahead"] == (
        "at 2024-03-15T09:29:59.999Z, 13d 9h ahead of the data cut-off 2024-03-02T00:00:00Z; it is "
        "the watermark of meter: see strandline status meter"
    )
    spared = line.of(a_spec(**ONE, source__max_ahead="1h"))
    again = spared.advance("2", recreate=True, reason="a clock", allow_removals=True)
    assert "watermark_ahead" not in named(again)
    assert [row["reason"] for row in spared.rows("quarantine")] == ["ahead_of_arrival"] * 2


def test_a_single_channel_ahead_is_a_warning_though_the_other_holds_the_windows_back(
    spark, tmp_path
):
    of_a, of_b = (every(30, "1 00:01", "2", source=channel) for channel in "ab")
    of_b[20]["happened_at"] += timedelta(days=14)
    channels = {"source__channel": "source", "source__channels": ["a", "b"]}
    line = a_line(spark, tmp_path, [*of_a, *of_b], **channels)
    said = named(line.advance("2"))["watermark_ahead"]
    assert said.startswith(
        "the watermark of one channel is ahead of the data cut-off 2024-03-02T00:00"
    )
    assert "the record of channel b that arrived at 2024-03-01T10:01:00Z with the event" in said
    refused = "quarantined 1 of 96 records of that arrival day"
    assert said.endswith(f"source.max_ahead: 1h would have {refused}")
    assert "watermark_ahead" in shown(line)
    retired = line.of(a_spec(**ONE | channels, source__retired={"b": "2024-03-02"}))
    again = retired.advance("2", recreate=True, reason="b has ended", allow_removals=True)
    assert "watermark_ahead" not in named(again)


def test_seconds_that_are_read_as_milliseconds_are_a_warning_until_they_are_read_right(
    spark, tmp_path
):
    """No window was ever published, no record was late, and the run was green."""
    rows = every(60, "1 00:01", "2")
    epoch = at("1").replace(year=1970, month=1)
    wrong = [
        row | {"source": "b", "happened_at": epoch + (row["happened_at"] - epoch) / 1_000}
        for row in rows
    ]
    channels = {"source__channel": "source", "source__channels": ["a", "b"]}
    line = a_line(spark, tmp_path, [*(row | {"source": "a"} for row in rows), *wrong], **channels)
    assert named(line.advance("2", dry_run=True))["events_of_1970"].startswith(
        "the latest event of channel b on its last arrival day, 2024-03-01, is of 1970-01-20T18:"
    )
    assert line.advance("2").status == "published"
    assert "would be 2024-03-01T23:00:00Z" in shown(line)["events_of_1970"]
    read = "case source when 'b' then timestamp_seconds(unix_millis(happened_at)) "
    right = line.of(a_spec(**ONE | channels, source__event_time=read + "else happened_at end"))
    assert "events_of_1970" not in named(right.advance("2"))
    assert "events_of_1970" not in shown(right)


@pytest.mark.parametrize("content", [JOIN, COGROUP], ids=["pairs", "one valve"])
def test_a_watermark_ahead_of_two_sources_names_a_record_of_each(spark, tmp_path, content):
    sides = {"left": every(30, "1 00:01", "2"), "right": every(30, "1 00:01", "2")}
    for rows, place in zip(sides.values(), (20, 25), strict=True):
        rows[place]["happened_at"] += timedelta(days=place)
    join = Join(spark, tmp_path, content, sides=sides)
    said = named(replace(join.line, audited=True).advance("2"))["watermark_ahead"]
    for side, hour, event in (("left", 10, "21T10:00"), ("right", 12, "26T12:30")):
        assert f"record of channel a of {side} that arrived at 2024-03-01T{hour}:" in said
        assert f"with the event time 2024-03-{event}:00Z" in said
    for side in ("left", "right"):
        refused = "quarantined 1 of 48 records of that arrival day"
        assert f"sources.{side}.max_ahead: 1h would have {refused}" in said


def test_the_audit_names_the_watermark_of_two_sources_that_status_names(spark, tmp_path):
    sources = {
        name: side | {"watermark": side["watermark"] | {"idleness": None}}
        for name, side in JOIN["sources"].items()
    }
    line = replace(Join(spark, tmp_path, JOIN | {"sources": sources}).line, audited=True)
    outcome = line.advance("3")
    reached = status_of(line.spec, line.lake)["watermark"]["combined"]
    audit = run_of(line.spec, line.lake, outcome.run_id)["audit"]
    (ahead,) = (one for one in audit if "not_to_be_ahead" in one["expectation"])
    assert ahead["figures"].startswith(f"at {reached}, ")  # and no lower bound of it


@pytest.fixture(scope="module")
def three_days(spark, tmp_path_factory) -> Line:
    line = Line(spark, tmp_path_factory.mktemp("three days"), a_spec())
    land(line.folder, a_week(days=3))
    line.advance("4")
    return line


def test_a_book_over_the_tables_finds_what_stands_twice_and_what_is_missing(three_days, tmp_path):
    line = three_days.copy(tmp_path / "lake")
    assert off(line) == []
    for name in ("quarantine", "windows"):
        copied = line.copy(tmp_path / name)
        table = copied.table(name)
        one = table.to_pyarrow_table().slice(0, 1)
        write_deltalake(table, one, mode="append")
        assert len(off(copied)) == 1
        standing = status_of(copied.spec, copied.lake, deep=True)
        (found,) = (one for one in standing["findings"] if one["name"] == "tables")
        assert found["severity"] == "critical"
        assert "too many" in found["sentence"]
    line.table("quarantine").delete("reason = 'late'")
    assert len(off(line)) > 1
    books = books_of_all(
        ReadPipeline(line.spec, line.lake.pipeline("meter"), PipelineState.of(line.ledger))
    )
    (finding,) = findings_of_books(books)
    assert "unaccounted for" in finding.sentence


def test_an_edit_that_makes_no_other_row_malformed_leaves_the_books_over_them_balanced(
    three_days, tmp_path
):
    line = three_days.copy(tmp_path)
    edited = line.of(a_spec(aggregates__largest="max(amount)"))
    edited.advance("4")
    malformed = [row for row in edited.rows("quarantine") if row["slot_start"] is None]
    assert {row["spec_fingerprint"] for row in malformed} == {line.spec.spec_fingerprint}
    assert off(edited) == []
    stricter = line.of(a_spec(source__valid="amount < 50", quality__max_removed_share=1.0))
    assert off(stricter) == []  # no run has gone by it yet
    stricter.advance("4")
    assert off(stricter) == []
    assert off(edited) == []  # the file is as before, and no run has gone by it since
