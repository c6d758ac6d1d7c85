"""The rows of the tables after a replay: the books, the states, and what saves a late record."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from strategies import Stream, streams

from strandline.model.lateness import MAX_WATERMARK
from strandline.reference import Record, Tables, replay
from strandline.spec import PipelineSpec, parse_spec


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


@given(streams())
def test_the_book_of_the_range_balances(stream):
    known = sum(record.arrival_ms < stream.horizon_ms for record in stream.records)
    rows = tables(stream).completeness()
    assert known == sum(row.on_time + row.late_accepted + row.late + row.no_window for row in rows)


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


@given(streams())
def test_each_windows_first_firing_is_not_before_its_slot_fires(stream):
    told = tables(stream)
    for row in told.windows():
        slot = told.slot(row.window)
        assert slot.fired_at_ms <= row.fired_at_ms
        assert row.firings - row.late_accepted in {0, 1}
        assert row.closed_at_ms is None or row.fired_at_ms <= row.closed_at_ms


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
