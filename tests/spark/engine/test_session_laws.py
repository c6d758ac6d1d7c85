"""What sessions alone do: firings that take the place of others, and sessions that have ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from answers import reference
from edge_streams import a_stream, bounded
from engine_under_test import Engine, each, firings_of, late_of, windows_of
from law_streams import SESSIONS, drawn_streams, rows
from pyspark.sql import functions as F
from strategies import Stream

from strandline.engine import columns as c
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.scope import Scope
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.model.lateness import MAX_WATERMARK

pytestmark = pytest.mark.spark

FIRINGS = rows(
    "end_of_input",
    window=SESSIONS,
    strategy=("bounded_out_of_orderness", "ascending"),
    emit=("per_record", "7ms"),
    lateness_ms=(5, 25, 400),
)


@pytest.mark.hypothesis
def test_a_firing_names_those_that_it_takes_the_place_of(session):
    def named(stream: Stream) -> dict[tuple, list[tuple]]:
        rows = Engine.on(session, stream).rebuild().firings()
        window = (F.unix_millis("window_start"), F.unix_millis("window_end"), F.col("firing"))
        earlier = F.transform(
            "supersedes_windows",
            lambda one: F.struct(
                F.unix_millis(one.window_start), F.unix_millis(one.window_end), one.firing
            ),
        )
        read = rows.select("k", F.struct(*window), earlier).toArrow().to_pylist()
        values = [list(row.values()) for row in read]
        return {
            (key, *window.values()): [tuple(one.values()) for one in before or []]
            for key, window, before in values
        }

    def expected(stream: Stream) -> dict[tuple, list[tuple]]:
        numbers: dict[int, tuple] = {}
        times: Counter[tuple] = Counter()
        found = {}
        for firing in stream.replay().firings:
            window = (firing.window.start_ms, firing.window.end_ms)
            times[firing.key, window] += 1
            numbers[firing.seq] = (*window, times[firing.key, window])
            found[firing.key[0], *numbers[firing.seq]] = sorted(
                numbers[seq] for seq in firing.supersedes
            )
        return found

    for stream, found in each(drawn_streams(FIRINGS), named):
        assert found == expected(stream), stream


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


ENDED = {
    "on a grid": {"window": {"tumbling": "10ms"}},
    "sessions": {"window": {"session": "5ms"}},
    "firing early": {"window": {"session": "5ms"}, "trigger": {"continuous": "100ms"}},
}


@pytest.mark.parametrize("kind", ENDED)
def test_what_fired_as_its_input_ended_tells_the_last_watermark_in_later_runs_too(session, kind):
    stream = a_stream((1, 15, "a"), (12, 31, "a"), channels=["a"], firings=True, **ENDED[kind])
    ended = Clock(20, (Closure(TimeRange(0, 20), AT_MS),))
    (fired,) = firings_of(Engine.on(session, replace(stream, horizon_ms=20)).rebuild(clock=ended))
    assert (fired["timing"], fired["fired_at"]) == ("ON_TIME", AT_MS - 1)
    assert fired["watermark"] == MAX_WATERMARK


# ---------------------------------------------------------------------- a range that cuts a session

EARLY: dict[str, dict[str, Any]] = {
    "counted before the range": {"count": 3},
    "counted across its start": {"count": 3},
    "waits for a time before the range": {"continuous": "20ms"},
}
ACROSS = {
    "counted before the range": (-24, -15, -5, 5, 6, 7),
    "counted across its start": (5, 6, 7, -24, -15, -5),
    "waits for a time before the range": (-24, -15, -5, 4, 5, 40),
}


def across(case: str) -> Stream:
    """A session that reaches across 0, by its event times in the order of their arrival."""
    return a_stream(
        *((n + 1, ts_ms, "a") for n, ts_ms in enumerate(ACROSS[case])),
        channels=["a"],
        watermark=bounded(45),
        window={"session": "10ms"},
        allowed_lateness="100ms",
        trigger=EARLY[case],
        firings=True,
        end_of_input=True,
    )


@pytest.fixture(scope="module")
def cut(session):
    """What is told of each case, of all and of what starts from 0 on: run at once."""

    def told(case: str) -> list[tuple[Any, ...]]:
        engine = Engine.on(session, across(case))
        found = []
        for within in (EVERYTHING, TimeRange(0, EVERYTHING.end_ms)):
            rebuild = engine.rebuild(Scope(within))
            slots = rebuild.accepted_by_slot().select(c.SLOT, "records", "unfired").collect()
            found.append((windows_of(rebuild), firings_of(rebuild), sorted(map(tuple, slots))))
        return found

    return dict(each(list(ACROSS), told))


@pytest.mark.parametrize("case", ACROSS)
def test_a_session_that_a_range_cuts_fires_as_the_whole_of_it_does(cut, case):
    whole, part = cut[case]
    assert whole[1] == reference(across(case)).firings
    in_range = [[row for row in rows if row["start"] >= 0] for rows in (*whole[0], whole[1])]
    assert in_range == [*part[0], part[1]]
    assert [row for row in whole[2] if row[0] >= 0] == part[2]


def test_a_session_that_a_range_cuts_is_in_an_ended_range_by_its_true_start(session):
    before = [(n + 1, 92 + 9 * n, "a") for n in range(13)]  # one session from 92 on
    stream = a_stream(
        *before,
        (60, 205, "a"),
        channels=["a"],
        watermark=bounded(500),
        window={"session": "10ms"},
    )
    clock = Clock(stream.horizon_ms, (Closure(TimeRange(100, 200), 50),))
    engine = Engine.on(session, stream)
    whole, cut = (
        windows_of(engine.rebuild(Scope(within), clock=clock))
        for within in (EVERYTHING, TimeRange(150, EVERYTHING.end_ms))
    )
    assert [(row["start"], row["end"]) for row in whole[1]] == [(92, 215)]
    assert cut == tuple([row for row in rows if row["start"] >= 150] for rows in whole)
