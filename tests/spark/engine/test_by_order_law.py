"""Windows that go by the order of their records: on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from answers import agree, reference, reference_within
from drawn import ROUNDS
from engine_under_test import Engine, each, firings_of
from law_streams import drawn_stream

from strandline.engine.result_rows import ORDER
from strandline.engine.scope import Scope
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.trigger import Count, Delta, EndOfInput, EventTime, Never
from strandline.spec.window import CountWindow, Global, Sliding, Tumbling, WindowOfAllTime

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

TUMBLING, SLIDING = Tumbling(tumbling="20ms"), Sliding(sliding="20ms", every="7ms")
ALL_TIME = Global(**{"global": {}})
BY_COUNT, BY_VALUE = Count(count=3), Delta(delta=4, of="value")
RULES: dict[str, dict[str, Any]] = {
    "count": {"window": SLIDING, "trigger": BY_COUNT},
    "purging count": {"window": TUMBLING, "trigger": Count(count=2, purging=True)},
    "delta": {"window": TUMBLING, "trigger": BY_VALUE},
    "purging delta": {"window": SLIDING, "trigger": Delta(delta=4, of="value", purging=True)},
    "the last ones": {"window": SLIDING, "evictor": CountEvictor(count=2)},
    "none": {"window": TUMBLING, "evictor": CountEvictor(count=0)},
    "the last ones afterwards": {
        "window": TUMBLING,
        "trigger": EventTime(purging=True),
        "evictor": CountEvictor(count=1, after=True),
    },
    "those near": {"window": SLIDING, "evictor": DeltaEvictor(delta=5, of="value")},
    "those near afterwards": {
        "window": TUMBLING,
        "trigger": BY_COUNT,
        "evictor": DeltaEvictor(delta=5, of="value", after=True),
    },
    "the newest by count": {
        "window": TUMBLING,
        "trigger": BY_COUNT,
        "evictor": TimeEvictor(time="4ms"),
    },
    "each one": {"window": TUMBLING, "trigger": Count(count=1)},
    "never": {"window": ALL_TIME, "trigger": Never()},
    "at the end": {"window": ALL_TIME, "trigger": EndOfInput()},
    "the last at the end": {
        "window": ALL_TIME,
        "trigger": EndOfInput(),
        "evictor": CountEvictor(count=5),
    },
    "more than there ever are": {
        "window": TUMBLING,
        "trigger": Count(count=2),
        "evictor": CountEvictor(count=2**63 - 1),
    },
    "so many": {"window": CountWindow(count=3)},
    "so many at every": {"window": CountWindow(count=5, every=2)},
    "of all time by value": {"window": ALL_TIME, "trigger": BY_VALUE},
}
AT_ONCE = 2
"""So many rules are met in each round; the next one goes on with others."""


def rules_met() -> list[str]:
    """The rules of all rounds: a few that differ in all that can differ, then the others."""
    first = ["purging delta", "none"]
    every = [*first, *(rules for rules in RULES if rules not in first)]
    return [every[n % len(every)] for n in range(AT_ONCE * ROUNDS)]


ROWS = [
    {
        "rules": rules,
        "strategy": ("bounded_out_of_orderness", "ascending")[number % 2],
        "lateness_ms": (25, 400, 25)[number % 3],
        "channels": (None, None, ["b", "a", "c"])[number % 3],
        "end_of_input": "at the end" in rules or number % 2 == 0,
    }
    for number, rules in enumerate(rules_met())
]


def ruled(stream: Stream, rules: str) -> Stream:
    """The stream of a pipeline with such rules; its records in an order that leaves no tie."""
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    spec = stream.spec.model_copy(update={"source": source, **RULES[rules]})
    ordered = [
        replace(r, sequence=n, trigger_value=r.payload["value"], evictor_value=r.payload["value"])
        for n, r in enumerate(stream.records)
    ]
    return replace(stream, spec=spec, records=tuple(ordered))


def range_of(stream: Stream) -> TimeRange:
    """Everything, or where the input goes on the windows from the middle of the times on."""
    if stream.end_of_input or isinstance(stream.spec.window, WindowOfAllTime):
        return EVERYTHING
    times = sorted(record.ts_ms for record in stream.records)
    return TimeRange(times[len(times) // 2] - 10, EVERYTHING.end_ms)


def test_the_engine_goes_by_the_order_of_records_as_the_reference_does(session):
    streams = [ruled(drawn_stream(row, n), row["rules"]) for n, row in enumerate(ROWS)]
    answers = each(
        streams, lambda stream: Engine.on(session, stream).answer(Scope(range_of(stream)))
    )
    for stream, answer in answers:
        agree(stream, answer, reference_within(stream, range_of(stream)))
    fired = [row["firings"] for _, answer in answers for row in answer.windows]
    assert max(fired) > 2
    assert any(row["count"] == 0 for _, answer in answers for row in answer.firings)


def test_a_firing_put_together_of_those_before_it_is_what_its_records_say(session):
    stream = ruled(drawn_stream({"lateness_ms": 400, "window": "tumbling"}, 0), "each one")
    engine = Engine.on(session, stream)
    alone = {
        **{"count": "count(*)", "sum": "sum(value)", "least": "min(value)"},
        **{"most": "max(value)", "mean": "avg(value)"},
    }
    one_by_one = {"ids": "array_sort(collect_list(id))", **alone}
    told = []
    for aggregates in (alone, one_by_one):
        spec = engine.stream.spec.model_copy(update={"aggregates": aggregates})
        of_spec = replace(engine, stream=replace(engine.stream, spec=spec))
        firings = of_spec.rebuild().firings()
        rows_of = firings.select(*ORDER, "k", *alone, "records", "firing").collect()
        told.append(sorted((tuple(row) for row in rows_of), key=str))
    assert told[0] == told[1]
    assert max(row[-1] for row in told[0]) > 2


def test_an_evictor_may_keep_more_records_than_there_ever_are(session):
    stream = drawn_stream({"lateness_ms": 400, "window": "tumbling"}, 0)
    stream = ruled(stream, "more than there ever are")
    found = firings_of(Engine.on(session, stream).rebuild())
    assert found == reference(stream).firings
    assert len(found) > 2


def test_records_of_one_position_go_by_their_identity(session):
    plain = drawn_stream({"lateness_ms": 400, "window": "tumbling", "sequence": None}, 0)
    tied = [
        replace(record, arrival_ms=record.arrival_ms // 40 * 40, ts_ms=record.ts_ms // 9 * 9)
        for record in plain.records
    ]
    positions = [(r.key, r.arrival_ms, r.ts_ms) for r in tied]
    assert len(set(positions)) < len(positions)
    spec = plain.spec.model_copy(update=RULES["purging count"])
    stream = replace(plain, spec=spec, records=tuple(tied))
    assert firings_of(Engine.on(session, stream).rebuild()) == reference(stream).firings
