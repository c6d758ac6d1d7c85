"""Windows that let records go as they fire, by purging or by time: on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from answers import agree, reference
from engine_under_test import Engine, each
from law_streams import ON_A_GRID, drawn_stream, rows

from strandline.spec.evictor import TimeEvictor
from strandline.spec.trigger import EventTime

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

LET_GO: dict[str, dict[str, Any]] = {
    "purging": {"trigger": EventTime(purging=True)},
    "evicting": {"evictor": TimeEvictor(time="4ms")},
    "both": {"trigger": EventTime(purging=True), "evictor": TimeEvictor(time="4ms")},
}
ROWS = rows(
    window=ON_A_GRID,
    let_go=tuple(LET_GO),
    strategy=("bounded_out_of_orderness", "ascending"),
    lateness_ms=(25, 400),
    channels=(None, ["b", "a", "c"]),
    end_of_input=(False, True),
)


def letting_go(stream: Stream, how: str) -> Stream:
    """The stream as its windows let records go; its records in an order that leaves no tie.

    Of late records of one instant the last one is what a purged window last fired with.
    """
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    spec = stream.spec.model_copy(update={"source": source, **LET_GO[how]})
    ordered = [replace(record, sequence=n) for n, record in enumerate(stream.records)]
    return replace(stream, spec=spec, records=tuple(ordered))


def test_the_engine_lets_records_go_as_the_reference_does(session):
    streams = [letting_go(drawn_stream(row, n), row["let_go"]) for n, row in enumerate(ROWS)]
    answers = each(streams, lambda stream: Engine.on(session, stream).answer())
    for stream, answer in answers:
        agree(stream, answer, reference(stream))
    fired = [row["firings"] for _, answer in answers for row in answer.windows]
    assert max(fired) > 2
