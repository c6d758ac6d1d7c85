"""The rows of the tables after a replay: the books, the states, and what saves a late record."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dear import DEAR
from hypothesis import given
from spec_strategies import (
    any_watermarks,
    cumulative_windows,
    session_windows,
    sliding_windows,
    windows,
)
from strategies import Stream, any_streams, streams

from strandline.model.lateness import MAX_WATERMARK
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.reference.tables import Tables
from strandline.spec import PipelineSpec, parse_spec
from strandline.spec.window import Session, Sliding


def tables(stream: Stream) -> Tables:
    return Tables(stream.spec, stream.replay())


def pipeline(lateness: str) -> PipelineSpec:
    content = {
        "pipeline": "test",
        "source": {"table": "t", "arrival_time": "a", "event_time": "e"},
        "watermark": {"strategy": "ascending", "emit": "per_record"},
        "window": {"tumbling": "10ms"},
        "allowed_lateness": lateness,
    }
    return parse_spec(content, origin="test.yaml")


def after(lateness: str, *event_times: int, end_of_input: bool = False) -> Tables:
    records = [Record(i, ts, f"{i:02d}") for i, ts in enumerate(event_times, start=1)]
    spec = pipeline(lateness)
    return Tables(spec, replay(spec, records, start_ms=0, end_of_input=end_of_input))


@DEAR
@given(streams(window=windows() | session_windows(), watermark=any_watermarks()))
def test_the_book_of_the_range_balances(stream):
    known = sum(record.arrival_ms < stream.horizon_ms for record in stream.records)
    rows = tables(stream).completeness()
    assert known == sum(row.on_time + row.late_accepted + row.late + row.no_window for row in rows)
    assert not any(row.missed_pairs for row in rows)


@DEAR
@given(streams(window=sliding_windows() | cumulative_windows()))
def test_every_pair_of_a_record_and_one_of_its_windows_is_counted_once(stream):
    told, assigner = tables(stream), stream.spec.window.assigner
    known = [record for record in stream.records if record.arrival_ms < stream.horizon_ms]
    refused = {row.record.record_id for row in told.quarantine()}
    pairs = Counter(
        window
        for record in known
        if record.record_id not in refused
        for window in assigner.windows_of(record.ts_ms)
    )
    rows = told.completeness()
    counted = {row.window: row.on_time + row.late_accepted + row.missed_pairs for row in rows}
    assert +Counter(counted) == pairs
    assert len(refused) == sum(row.late + row.no_window for row in rows)


@DEAR
@given(streams())
def test_windows_and_completeness_tell_the_same(stream):
    told = tables(stream)
    fired = told.windows()
    for slot in told.completeness():
        rows = [row for row in fired if row.window == slot.window]
        assert all(row.state == slot.slot.state for row in rows)
        assert sum(row.late_accepted for row in rows) == slot.late_accepted
        accepted = slot.on_time + slot.late_accepted
        if slot.slot.state == "open":
            assert rows == []
        else:
            assert sum(len(row.members) for row in rows) == accepted


@DEAR
@given(any_streams())
def test_each_windows_first_firing_is_not_before_its_slot_fires(stream):
    told = tables(stream)
    for row in told.windows():
        slot = told.slot(row.window)
        assert slot.fired_at_ms <= row.fired_at_ms
        assert row.firings - row.late_accepted in {0, 1}
        assert row.closed_at_ms is None or row.fired_at_ms <= row.closed_at_ms


@DEAR
@given(streams())
def test_the_lateness_that_late_by_names_would_have_saved_each_record_alone(stream):
    """Without it a record is late, with that much more allowed lateness it is accepted."""
    for row in tables(stream).quarantine():
        lateness_ms = min(stream.spec.allowed_lateness + row.late_by_ms, MAX_WATERMARK)
        wider = replace(
            stream, spec=stream.spec.model_copy(update={"allowed_lateness": lateness_ms})
        )
        refused = {r.record.record_id for r in tables(wider).quarantine()}
        assert row.record.record_id not in refused


def test_a_window_is_fired_until_its_lateness_has_passed_and_then_closed():
    (row,) = after("5ms", 3, 14).windows()
    assert (row.state, row.fired_at_ms, row.closed_at_ms) == ("fired", 2, None)
    (row,) = after("5ms", 3, 14, 15).windows()
    assert (row.state, row.fired_at_ms, row.closed_at_ms) == ("closed", 2, 3)


def test_a_window_with_endless_lateness_is_never_closed():
    (row,) = after(f"{MAX_WATERMARK}ms", 3, end_of_input=True).windows()
    assert (row.state, row.closed_at_ms) == ("fired", None)


def test_a_window_that_the_watermark_has_not_reached_shows_only_in_completeness():
    told = after("0ms", 3)
    assert told.windows() == []
    (row,) = told.completeness()
    assert (row.slot.state, row.on_time, row.channels_heard) == ("open", 1, ("",))


def test_a_late_record_is_told_with_what_it_met():
    (row,) = after("5ms", 3, 30, 4).quarantine()
    assert (row.record.ts_ms, row.reason, row.slot_start_ms) == (4, "late", 0)
    assert (row.watermark_ms, row.late_by_ms, row.missed_windows) == (29, 16, 1)


def test_a_record_in_a_gap_between_windows_is_late_only_by_its_own_time():
    """Flink: `isElementLate`; before that it vanishes, and is counted apart."""
    spec = pipeline("5ms").model_copy(
        update={"window": Sliding.model_validate({"sliding": "4ms", "every": "10ms"})}
    )
    records = [Record(i, ts, f"{i:02d}") for i, ts in enumerate((15, 8, 21, 18, 16, 15), start=1)]
    told = Tables(spec, replay(spec, records, start_ms=0))
    refused = [(r.record.record_id, r.reason, r.missed_windows) for r in told.quarantine()]
    # at watermark 20: 15 + 5 is reached, 16 + 5 and 18 + 5 are not
    assert refused == [
        ("02", "late", 0),
        ("06", "late", 0),
        ("01", "no_window", None),
        ("04", "no_window", None),
        ("05", "no_window", None),
    ]


def test_sessions_are_counted_in_the_slots_of_the_calendar():
    spec = pipeline("0ms").model_copy(
        update={"window": Session.model_validate({"session": "10ms"})}
    )
    records = [Record(i, ts, f"{i:02d}") for i, ts in enumerate((1, 11, 30, 2), start=1)]
    told = Tables(spec, replay(spec, records, start_ms=0))
    (window,) = told.windows()
    assert (window.window.start_ms, window.window.end_ms, len(window.members)) == (1, 21, 2)
    (slot,) = told.completeness()
    assert (slot.window.start_ms, slot.window.end_ms) == (0, 3_600_000)
    assert (slot.on_time, slot.late, slot.slot.state) == (3, 1, "open")
    (late,) = told.quarantine()
    assert (late.late_by_ms, late.slot_start_ms, late.missed_windows) == (29 - 11 + 1, 0, 1)


def test_a_session_that_has_grown_stays_as_last_emitted_until_it_fires_again():
    spec = pipeline("100ms").model_copy(
        update={"window": Session.model_validate({"session": "10ms"})}
    )
    told = replay(spec, [Record(1, 0, "a"), Record(2, 20, "b"), Record(3, 10, "c")], start_ms=0)
    (row,) = Tables(spec, told).windows()
    assert (row.window.start_ms, row.window.end_ms) == (0, 10)
    told = replay(
        spec,
        [Record(1, 0, "a"), Record(2, 20, "b"), Record(3, 10, "c"), Record(4, 40, "d")],
        start_ms=0,
    )
    (row,) = Tables(spec, told).windows()
    assert (row.window.start_ms, row.window.end_ms, len(row.members)) == (0, 30, 3)
