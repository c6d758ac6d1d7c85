"""The set-based engine on streams written by hand, and on tables with columns of any name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from answers import Answer, agree, reference
from edge_streams import EDGES, a_stream, bounded
from engine_under_test import Engine, each, firings_of, late_of, windows_of
from pyspark.sql import functions as F
from strategies import Stream

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.records.arithmetic import floor, tick_after
from strandline.engine.scope import Scope
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import MAX_WATERMARK
from strandline.model.watermarks import Ticks
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def answers(session):
    def answer(stream: Stream) -> Answer | Exception:
        try:
            return Engine.on(session, stream).answer()
        except Exception as error:  # noqa: BLE001 - the test of this edge raises it
            return error

    found = each(EDGES.values(), answer)
    return dict(zip(EDGES, (answer for _, answer in found), strict=True))


@pytest.mark.parametrize("edge", EDGES)
def test_the_engine_answers_as_the_reference_does_where(edge, answers):
    if isinstance(answers[edge], Exception):
        raise answers[edge]
    agree(EDGES[edge], answers[edge], reference(EDGES[edge]))


def test_what_comes_after_the_end_of_the_input_is_late(session):
    at_ms, last = 10, (12, 31, "a")
    stream = a_stream((1, 15, "a"), (3, 28, "a"), last, (13, 15, "a"), channels=["a"])
    clock = Clock(stream.horizon_ms, (Closure(EVERYTHING, at_ms),))
    rebuild = Engine.on(session, stream).rebuild(clock=clock)
    emitted, still_open = windows_of(rebuild)
    ended = reference(replace(stream, horizon_ms=at_ms, end_of_input=True))
    assert emitted == ended.windows
    assert still_open == []
    assert [(row["id"], row["watermark"], row["late_by"]) for row in late_of(rebuild)] == [
        (2, MAX_WATERMARK, MAX_WATERMARK - 39 + 1),
        (3, MAX_WATERMARK, MAX_WATERMARK - 19 + 1),
    ]


ENDED_MS = 180
ARRIVED = ((10, 5, "a"), (71, 65, "b"), (140, 135, "a"), (150, 80, "a"), (165, 160, "b"))
LATER = ((1450, 1450, "a"), (1451, 1451, "b"))
SHORT = {"window": {"session": "20ms"}, "allowed_lateness": "0ms"}
SELDOM = {"watermark": bounded(30) | {"emit": {"every": "60ms"}}}
FIRED: dict[str, dict[str, Any]] = {
    "windows fire early": {"trigger": {"continuous": "20ms"}},
    "a tick comes at that instant": SELDOM,
    "a tick comes at that instant for sessions": SHORT | SELDOM,
}


@pytest.mark.parametrize("kind", FIRED)
def test_what_an_end_of_input_has_fired_is_in_later_runs_what_it_was_in_its_own_where(
    session, kind
):
    common = {"window": {"tumbling": "60ms"}, "allowed_lateness": "60ms", "firings": True}
    common["watermark"] = bounded(30) | {"emit": {"every": "1ms"}}
    stream = a_stream(*ARRIVED, *LATER, channels=["a", "b"], **common | FIRED[kind])
    ended = Closure(TimeRange(0, 1440), ENDED_MS)

    def told(horizon_ms: int) -> list[Any]:
        engine = Engine.on(session, replace(stream, horizon_ms=horizon_ms))
        of_day = Scope(TimeRange(0, 720))
        rebuild = engine.rebuild(of_day, clock=Clock(horizon_ms, (ended,)))
        return [firings_of(rebuild), windows_of(rebuild)]

    firings, _ = its_own = told(ENDED_MS)
    assert MAX_WATERMARK in {row["watermark"] for row in firings}
    assert told(3_000) == its_own


def test_columns_of_the_source_keep_their_values_whatever_their_names(session):
    stream = a_stream((1, 25, "a"), (2, 3, "a"), channels=["a"])
    names = {"value": "watermark_ms", "seq": "record_id", "k": "reason"}
    landing = Engine.on(session, stream).landing.withColumnsRenamed(names)
    spec = parse_spec(
        {
            **{"pipeline": "edge", "firings": True, "window": {"tumbling": "10ms"}},
            "source": {
                **{"table": "t", "channel": "channel", "channels": ["a"], "key": {"k": "reason"}},
                "arrival_time": "timestamp_millis(arrival_ms)",
                "event_time": "timestamp_millis(ts_ms)",
            },
            "watermark": {"strategy": "ascending", "emit": "per_record"},
            "aggregates": {"sum": "sum(watermark_ms)", "last": "max(record_id)"},
        },
        origin="edge.yaml",
    )
    engine = Engine(session, landing.withColumn("record_id", landing["id"]), stream)
    engine = replace(engine, stream=replace(stream, spec=spec, end_of_input=True))
    rebuild = engine.rebuild(tie_breaker=None)
    (late,) = rebuild.late().toArrow().to_pylist()
    assert (late["source_watermark_ms"], late["source_record_id"], late["source_reason"]) == (
        *(10, 1),
        "x",
    )
    assert (late["watermark_ms"], late["reason"], len(late["record_id"])) == (24, "late", 32)
    (fired,) = rebuild.firings().toArrow().to_pylist()
    assert (fired["sum"], fired["last"]) == (1, 0)


def test_steps_and_ticks_are_the_models_at_both_ends_of_the_timestamps(session):
    begin_ms = 1_700_000_000_123
    ends = (-(2**63) // 1000, LEAST_INSTANT_MS, -700, 0, begin_ms, 2**63 // 1000 - 1)
    instants = sorted(end + off for end in ends for off in (*range(-3, 4), 700, -700, 7_777_777))
    steps = [(1, 0), (7, 3), (10_000, -2_500), (86_400_000, 86_399_999), (400_000_000_000_000, 5)]
    ticks = [Ticks(begin_ms, interval_ms) for interval_ms in (1, 7, 200, 86_400_000)]
    ts = F.col(c.TS)
    rows = small_table(session, {c.TS: instants}).select(
        ts, *(floor(ts, *step) for step in steps), *(tick_after(ts, one) for one in ticks)
    )
    assert sorted(tuple(row) for row in rows.collect()) == [
        (ms, *(ms - (ms - of) % step for step, of in steps), *(one.after(ms) for one in ticks))
        for ms in instants
    ]
