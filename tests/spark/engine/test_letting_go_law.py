"""Windows that fire early, or let records go as they fire: on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from answers import agree, reference, reference_within
from drawn import ROUNDS
from edge_streams import a_stream
from engine_under_test import Engine, each, firings_of, windows_of
from law_streams import ON_A_GRID, SESSIONS, drawn_stream, rows

from strandline.engine.position.clock import Clock, Closure
from strandline.engine.scope import Scope
from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.spec.evictor import CountEvictor, TimeEvictor
from strandline.spec.trigger import Continuous, Count, EventTime
from strandline.spec.window import Global, Sliding

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

EARLY = Continuous(continuous="3ms")
HOW: dict[str, dict[str, Any]] = {
    "purging, evicting": {
        "trigger": EventTime(purging=True),
        "evictor": TimeEvictor(time="4ms"),
    },
    "early, evicting afterwards": {
        "trigger": EARLY,
        "evictor": TimeEvictor(time="9ms", after=True),
    },
    "early": {"trigger": EARLY},
    "early, purging": {"trigger": Continuous(continuous="5ms", purging=True)},
    "early, evicting all": {"trigger": EARLY, "evictor": TimeEvictor(time="0ms")},
}
ON_SLIDING = {"window": Sliding(sliding="20ms", every="7ms")}
OF_SESSIONS: dict[str, dict[str, Any]] = {
    "purging": {"trigger": EventTime(purging=True)},
    "evicting": {"evictor": TimeEvictor(time="4ms")},
    "evicting afterwards": {"evictor": TimeEvictor(time="9ms", after=True)},
}
REPLAYED: dict[str, dict[str, Any]] = {
    "counting": {"trigger": Count(count=2), "evictor": TimeEvictor(time="9ms")},
    "early": {"trigger": EARLY},
    "early, purging": {"trigger": Continuous(continuous="5ms", purging=True)},
    "evicting all": {"evictor": TimeEvictor(time="0ms", after=True)},
    "early, the last ones": {"trigger": EARLY, "evictor": CountEvictor(count=2), **ON_SLIDING},
    "early, for ever": {"trigger": EARLY, "window": Global(**{"global": {}})},
}
"""Windows whose firings go by the order of what happens; sessions if nothing else is said."""
BY_ROUNDS = ("early, purging", "early, for ever")
CHOSEN: dict[str, tuple[Any, ...]] = {
    "strategy": ("bounded_out_of_orderness", "time_lag"),
    "emit": ("per_record", "7ms"),
    "idleness": (None, "10ms"),
    "lateness_ms": (25, 400),
    "channels": (None, ["b", "a", "c"]),
    "end_of_input": (False, True),
}
EVERY = [
    *rows(window=ON_A_GRID, how=tuple(HOW), **CHOSEN),
    *rows(window=SESSIONS, how=tuple(OF_SESSIONS), **CHOSEN),
]
ROWS = EVERY if ROUNDS > 1 else EVERY[::3]
"""All of them by `make test-deep`: each is several seconds of Spark."""


def letting_go(stream: Stream, how: dict[str, Any]) -> Stream:
    """The stream as its windows fire; where it matters, its records in an order without a tie.

    Of late records of one instant the last one is what a purged window last fired with.
    """
    stream = replace(stream, spec=stream.spec.model_copy(update=how))
    evictor = stream.spec.evicts_by
    evicts_all = isinstance(evictor, TimeEvictor) and evictor.time == 0
    if not (stream.spec.fires_by.purging or evicts_all or stream.spec.goes_by_order):
        return stream
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    spec = stream.spec.model_copy(update={"source": source})
    ordered = [replace(record, sequence=n) for n, record in enumerate(stream.records)]
    return replace(stream, spec=spec, records=tuple(ordered))


def test_the_engine_fires_and_lets_records_go_as_the_reference_does(session):
    how = HOW | OF_SESSIONS
    streams = [letting_go(drawn_stream(row, n), how[row["how"]]) for n, row in enumerate(ROWS)]
    answers = each(streams, lambda stream: Engine.on(session, stream).answer())
    for stream, answer in answers:
        agree(stream, answer, reference(stream))
    fired = [row["firings"] for _, answer in answers for row in answer.windows]
    assert max(fired) > 2
    timings = {row["timing"] for _, answer in answers for row in answer.firings}
    assert timings == {"EARLY", "ON_TIME", "LATE"}


NEAR_MS = 10_000
IN_ORDER = rows(window=SESSIONS, how=tuple(REPLAYED), **CHOSEN)
ONCE = {row["how"]: row for row in IN_ORDER}
CHOSEN_ONCE = IN_ORDER if ROUNDS > 1 else [ONCE[how] for how in REPLAYED if how not in BY_ROUNDS]
"""One of each; all of them by `make test-deep`."""


def replayed(stream: Stream, how: str) -> Stream:
    """The stream as its windows fire.

    Of a global one, which fires at all times, the input goes on, and no time is far off.
    """
    stream = letting_go(stream, REPLAYED[how])
    if not isinstance(stream.spec.window, Global):
        return stream
    near = tuple(one for one in stream.records if abs(one.ts_ms - one.arrival_ms) < NEAR_MS)
    return replace(stream, end_of_input=False, records=near)


def range_of(stream: Stream) -> TimeRange:
    """Everything, or where the input goes on the windows from the middle of the times on."""
    if stream.end_of_input or isinstance(stream.spec.window, Global):
        return EVERYTHING
    times = sorted(record.ts_ms for record in stream.records)
    return TimeRange(times[len(times) // 2] - 10, EVERYTHING.end_ms)


def test_windows_that_go_by_the_order_of_what_happens_fire_as_the_reference_has_them(session):
    streams = [replayed(drawn_stream(row, n), row["how"]) for n, row in enumerate(CHOSEN_ONCE)]
    answers = each(
        streams, lambda stream: Engine.on(session, stream).answer(Scope(range_of(stream)))
    )
    for stream, answer in answers:
        agree(stream, answer, reference_within(stream, range_of(stream)))
    assert max(row["firings"] for _, answer in answers for row in answer.windows) > 2


def fires_often(*, purging: bool) -> Stream:
    """Two records that are further apart than a window of all time may fire at times between."""
    trigger = {"continuous": "3ms", "purging": purging}
    fires = {"window": {"global": {}}, "trigger": trigger, "firings": True}
    told = {"aggregates": {"count": "count(*)", "sum": "sum(value)", "ids": "collect_list(id)"}}
    return a_stream((1, 0, "a"), (2, 30_010, "a"), (3, 30_020, "a"), **fires, **told)


def test_windows_of_all_time_that_would_fire_ever_so_often_are_refused_unless_purging(
    session,
):
    with pytest.raises(InputError, match=r"trigger\.continuous: .* 10,006 times by now, more than"):
        Engine.on(session, fires_often(purging=False)).answer()
    stream = fires_often(purging=True)
    answer = Engine.on(session, stream).answer()
    assert [row["ids"] for row in answer.firings] == [[0, 1], [2]]
    agree(stream, answer, reference(stream))


def test_a_window_of_all_time_that_an_earlier_run_has_ended_fires_at_times_once_reopened(session):
    stream = fires_often(purging=True)
    engine, ended = Engine.on(session, stream), Closure(EVERYTHING, stream.horizon_ms)
    with pytest.raises(InputError, match="let the input go on"):
        engine.rebuild(clock=Clock(ended.at_ms, (ended,))).windows()
    with pytest.raises(InputError, match="earlier run has ended the input; give backfill --reopen"):
        engine.rebuild(clock=Clock(ended.at_ms + 1, (ended,))).windows()


IN_CELLS = rows(window=ON_A_GRID, how=("early", "early, purging"), emit=("per_record", "7ms"))[::2]


def test_counted_together_records_tell_what_they_tell_one_by_one(session):
    streams = [letting_go(drawn_stream(row, n), HOW[row["how"]]) for n, row in enumerate(IN_CELLS)]

    def counted(stream: Stream) -> tuple[list[Any], list[Any]]:
        engine = Engine.on(session, stream)
        update = {"aggregates": {"count": "count(*)", "sum": "sum(value)"}}
        spec = engine.stream.spec.model_copy(update=update)
        rebuild = replace(engine, stream=replace(engine.stream, spec=spec)).rebuild()
        return windows_of(rebuild)[0], firings_of(rebuild)

    for stream, (windows, firings) in each(streams, counted):
        expected = reference(stream)
        assert windows == without_ids(expected.windows)
        assert in_any_order(firings) == in_any_order(without_ids(expected.firings))


def without_ids(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "ids"} for row in found]


def in_any_order(found: list[dict[str, Any]]) -> list[Any]:
    return sorted(tuple(sorted(row.items())) for row in found)
