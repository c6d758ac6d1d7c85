"""What sessions alone do: firings that take the place of others, and sessions that have ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from answers import reference
from edge_streams import a_stream, bounded
from engine_under_test import Engine, each, late_of, windows_of
from law_streams import SESSIONS, drawn_streams, rows
from pyspark.sql import functions as F
from strategies import Stream

from strandline.engine.position.clock import Clock, Closure
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
        rows = Engine.on(session, stream).rebuild().firings(F.format_string("%04d", "id"))
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
