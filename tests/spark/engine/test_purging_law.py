"""Windows that are emptied as they fire: on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from answers import agree, reference
from engine_under_test import Engine, each
from law_streams import ON_A_GRID, drawn_streams, rows

from strandline.spec.trigger import EventTime

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

ROWS = rows(
    window=ON_A_GRID,
    strategy=("bounded_out_of_orderness", "ascending"),
    lateness_ms=(25, 400),
    channels=(None, ["b", "a", "c"]),
    end_of_input=(False, True),
)


def purging(stream: Stream) -> Stream:
    """The stream as its windows purge; its records in an order that leaves no tie.

    Of late records of one instant the last one is what the window last fired with.
    """
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    changes = {"source": source, "trigger": EventTime(purging=True)}
    ordered = [replace(record, sequence=n) for n, record in enumerate(stream.records)]
    return replace(stream, spec=stream.spec.model_copy(update=changes), records=tuple(ordered))


def test_the_engine_purges_as_the_reference_does(session):
    streams = [purging(stream) for stream in drawn_streams(ROWS)]
    answers = each(streams, lambda stream: Engine.on(session, stream).answer())
    for stream, answer in answers:
        agree(stream, answer, reference(stream))
    fired = [row["firings"] for _, answer in answers for row in answer.windows]
    assert max(fired) > 2
