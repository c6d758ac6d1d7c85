"""Windows that fire early, or let records go as they fire: on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from answers import agree, reference
from drawn import ROUNDS
from engine_under_test import Engine, each, firings_of, windows_of
from law_streams import ON_A_GRID, SESSIONS, drawn_stream, rows

from strandline.spec.evictor import TimeEvictor
from strandline.spec.trigger import Continuous, EventTime

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
OF_SESSIONS: dict[str, dict[str, Any]] = {
    "purging": {"trigger": EventTime(purging=True)},
    "evicting": {"evictor": TimeEvictor(time="4ms")},
    "evicting afterwards": {"evictor": TimeEvictor(time="9ms", after=True)},
}
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


def letting_go(stream: Stream, how: str) -> Stream:
    """The stream as its windows fire; where it matters, its records in an order without a tie.

    Of late records of one instant the last one is what a purged window last fired with.
    """
    stream = replace(stream, spec=stream.spec.model_copy(update=(HOW | OF_SESSIONS)[how]))
    if not stream.spec.empties_as_it_fires:
        return stream
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    spec = stream.spec.model_copy(update={"source": source})
    ordered = [replace(record, sequence=n) for n, record in enumerate(stream.records)]
    return replace(stream, spec=spec, records=tuple(ordered))


def test_the_engine_fires_and_lets_records_go_as_the_reference_does(session):
    streams = [letting_go(drawn_stream(row, n), row["how"]) for n, row in enumerate(ROWS)]
    answers = each(streams, lambda stream: Engine.on(session, stream).answer())
    for stream, answer in answers:
        agree(stream, answer, reference(stream))
    fired = [row["firings"] for _, answer in answers for row in answer.windows]
    assert max(fired) > 2
    timings = {row["timing"] for _, answer in answers for row in answer.firings}
    assert timings == {"EARLY", "ON_TIME", "LATE"}


IN_CELLS = rows(window=ON_A_GRID, how=("early", "early, purging"), emit=("per_record", "7ms"))[::2]


def test_counted_together_records_tell_what_they_tell_one_by_one(session):
    streams = [letting_go(drawn_stream(row, n), row["how"]) for n, row in enumerate(IN_CELLS)]

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
