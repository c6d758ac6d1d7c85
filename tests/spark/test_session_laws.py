"""Sessions by sets are the sessions of the record-by-record reference, merged and saved alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from engine_under_test import Engine, each, firings_of, late_of, law, reference, windows_of
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from strategies import Stream, any_watermarks, session_windows
from test_engine_laws import a_stream, batches, bounded, only, over_midnight, same, session

from strandline.engine import columns as c
from strandline.engine.history import Clock, Closure
from strandline.engine.rebuild import Scope
from strandline.engine.session_reach import first_not_final
from strandline.model.intervals import EVERYTHING, TimeRange, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference import Tables

pytestmark = pytest.mark.spark

__all__ = ["session"]  # the fixture
SESSIONS = session_windows()


def told_of(stream: Stream, rebuild: Any) -> tuple[list, list, list, list]:
    return (*windows_of(rebuild), late_of(rebuild), firings_of(rebuild))


def late_within(stream: Stream, rows: list[dict[str, Any]], within: TimeRange) -> list:
    """Late records belong to their own event time."""
    times = {record.payload["id"]: record.ts_ms for record in stream.records}
    if stream.spec.arrival_is_event_time:
        times = {record.payload["id"]: record.arrival_ms for record in stream.records}
    return [row for row in rows if times[row["id"]] in within]


@law(3)
@given(batches(watermark=any_watermarks(), window=SESSIONS))
def test_sessions_are_the_references(session, streams):
    for stream, told in each(streams, lambda s: Engine.on(session, s).told()):
        same(stream, told, reference(stream))


@law(2)
@given(batches(window=SESSIONS))
def test_a_firing_names_those_that_it_takes_the_place_of(session, streams):
    def named(stream: Stream) -> dict[tuple, list[tuple]]:
        rows = Engine.on(session, stream).rebuild().firings(F.format_string("%04d", "id"))
        window = (F.unix_millis("window_start"), F.unix_millis("window_end"), F.col("firing"))
        earlier = F.transform(
            "supersedes_windows",
            lambda one: F.struct(
                F.unix_millis(one.window_start), F.unix_millis(one.window_end), one.firing
            ),
        )
        told = rows.select("k", F.struct(*window), earlier).toArrow().to_pylist()
        values = [list(row.values()) for row in told]
        return {
            (key, *window.values()): [tuple(one.values()) for one in before or []]
            for key, window, before in values
        }

    def expected(stream: Stream) -> dict[tuple, list[tuple]]:
        numbers: dict[int, tuple] = {}
        times: Counter[tuple] = Counter()
        told = {}
        for firing in stream.replay().firings:
            window = (firing.window.start_ms, firing.window.end_ms)
            times[firing.key, window] += 1
            numbers[firing.seq] = (*window, times[firing.key, window])
            told[firing.key[0], *numbers[firing.seq]] = sorted(
                numbers[seq] for seq in firing.supersedes
            )
        return told

    for stream, found in each(streams, named):
        assert found == expected(stream), stream


@law(2)
@given(batches(window=SESSIONS))
def test_aggregates_of_rows_put_together_are_those_of_the_records(session, streams):
    in_two_steps = {"count": "count(*)", "total": "sum(value)", "least": "min(value)"}

    def told(stream: Stream) -> tuple[list[tuple], list[tuple]]:
        engine = Engine.on(session, stream)
        spec = stream.spec.model_copy(update={"aggregates": in_two_steps})
        rebuild = replace(engine, stream=replace(stream, spec=spec)).rebuild()
        emitted = (
            rebuild.windows()
            .where("state != 'open'")
            .select(
                F.unix_millis("window_start"),
                F.unix_millis("window_end"),
                *("k", "records", "late_accepted", *in_two_steps),
            )
        )
        taken = rebuild.taken().select(c.SLOT, "accepted", "late_accepted")
        return (
            sorted(tuple(row.values()) for row in emitted.toArrow().to_pylist()),
            sorted(tuple(row.values()) for row in taken.toArrow().to_pylist()),
        )

    for stream, (windows, taken) in each(streams, told):
        tables = Tables(stream.spec, stream.replay())
        expected = []
        for row in tables.windows():
            values = [record.payload["value"] for record in row.members]
            counts = (len(values), row.late_accepted, len(values))
            window = (row.window.start_ms, row.window.end_ms, row.key[0])
            expected.append((*window, *counts, sum(values), min(values)))
        assert windows == sorted(expected), stream
        slots = [
            (row.window.start_ms, row.on_time + row.late_accepted, row.late_accepted)
            for row in tables.completeness()
        ]
        assert taken == [slot for slot in slots if slot[1]], stream


@law(2)
@given(batches(window=SESSIONS), st.integers(-20, 60), st.integers(1, 80))
def test_a_range_of_sessions_rebuilt_alone_is_that_range_of_the_whole(
    session, streams, ahead_ms, width_ms
):
    def range_of(stream: Stream) -> TimeRange:
        return TimeRange(stream.start_ms + ahead_ms, stream.start_ms + ahead_ms + width_ms)

    def told(stream: Stream) -> tuple[list, list, list, list]:
        return told_of(stream, Engine.on(session, stream).rebuild(Scope(range_of(stream))))

    for stream, parts in each(streams, told):
        whole, within = reference(stream), range_of(stream)
        late = late_within(stream, whole.late, within)
        expected = (only(whole.windows, within), only(whole.open, within), late)
        assert parts == (*expected, only(whole.firings, within)), stream


@law(2)
@given(batches(window=SESSIONS))
def test_one_more_day_of_sessions_on_what_was_final_gives_what_one_go_gives(session, streams):
    held = [replace(over_midnight(stream), end_of_input=False) for stream in streams]

    def day_of_work(stream: Stream) -> tuple[int, Any, Any]:
        midnight_ms = midnight_of(day_of(stream.horizon_ms - 1))
        before = Engine.on(session, replace(stream, horizon_ms=midnight_ms)).history()
        engine = Engine.on(session, stream)
        history = engine.history()
        first_ms = first_not_final(
            engine.observed_records(history),
            history,
            until_ms=stream.horizon_ms,
            watermark_ms=before.watermark_reached(midnight_ms),
        )
        scope = Scope(TimeRange(first_ms, EVERYTHING.end_ms), older_since_ms=midnight_ms)
        rebuild = engine.rebuild(scope, history=history)
        emitted, _ = windows_of(rebuild)
        return first_ms, emitted, late_of(rebuild)

    for stream, (first_ms, emitted, late) in each(held, day_of_work):
        midnight_ms = midnight_of(day_of(stream.horizon_ms - 1))
        before, after = reference(replace(stream, horizon_ms=midnight_ms)), reference(stream)
        final = TimeRange(MIN_WATERMARK, first_ms)
        assert only(before.windows, final) + emitted == after.windows, stream
        both = late_within(stream, before.late, final) + late
        assert sorted(both, key=lambda row: row["id"]) == after.late, stream


# -------------------------------------------------------------------------------------------- edges

AT_MS = 10
BEFORE = ((1, 15, "a"), (2, 20, "a"), (3, 41, "a"))


def in_sessions_of_10(*later: tuple[int, int, str]) -> Stream:
    return a_stream(
        *BEFORE,
        *later,
        channels=["a"],
        watermark=bounded(5),
        window={"session": "10ms"},
        allowed_lateness="100ms",
    )


def closed(session: Any, stream: Stream, windows: TimeRange) -> tuple[dict, list, list]:
    """The emitted windows by start, the open ones, and the late records, after a --close."""
    clock = Clock(stream.horizon_ms, (Closure(windows, AT_MS),))
    rebuild = Engine.on(session, stream).rebuild(clock=clock)
    emitted, still_open = windows_of(rebuild)
    shown = {
        row["start"]: (row["end"], row["ids"], row["state"], row["fired_at"], row["closed_at"])
        for row in emitted
    }
    late = [(row["id"], row["watermark"]) for row in late_of(rebuild)]
    return shown, [(row["start"], row["end"], row["ids"]) for row in still_open], late


def test_what_comes_after_the_end_of_all_input_is_late_for_sessions(session):
    stream = in_sessions_of_10((12, 45, "a"), (13, 20, "a"))
    emitted, still_open, late = closed(session, stream, EVERYTHING)
    ended = reference(replace(stream, horizon_ms=AT_MS, end_of_input=True))
    assert emitted == {
        row["start"]: (row["end"], row["ids"], row["state"], row["fired_at"], row["closed_at"])
        for row in ended.windows
    }
    assert still_open == []
    assert late == [(3, MAX_WATERMARK), (4, MAX_WATERMARK)]


def test_sessions_that_began_where_the_input_had_ended_stay_and_others_begin_beside_them(session):
    # 30 touches the session that had ended, 18 lies in it, 45 goes on with the one that had not
    stream = in_sessions_of_10((11, 30, "a"), (12, 18, "a"), (13, 45, "a"))
    emitted, still_open, late = closed(session, stream, TimeRange(0, 25))
    assert emitted == {
        15: (30, [0, 1], "closed", 3, AT_MS - 1),
        30: (40, [3], "fired", 13, None),
    }
    assert still_open == [(41, 55, [2, 5])]
    assert late == [(4, MAX_WATERMARK)]
