"""Windows over two inputs that let records go: their firings on Spark as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from answers import numbers_of
from drawn import ROUNDS, drawn
from engine_under_test import LANDING, each
from hypothesis import strategies as st
from pyspark.sql import functions as F
from spec_strategies import watermarks_of
from strategies import row_of
from two_inputs import two_inputs

from strandline.conformance.scenario import Scenario
from strandline.conformance.spark_joins import windows_of_two
from strandline.reference.answer import Replay
from strandline.reference.joins import replay_windows_of_two
from strandline.reference.records import Record
from strandline.spec.join import SIDES, Sources, WindowJoinSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

TUMBLING = {"window": {"tumbling": "20ms"}}
LATE = {"window": {"sliding": "20ms", "every": "10ms"}, "allowed_lateness": "30ms"}
HOW: dict[str, dict[str, Any]] = {
    "the last ones": {**TUMBLING, "trigger": {"count": 1}, "evictor": {"count": 3}},
    "the last ones, afterwards": {
        **TUMBLING,
        "trigger": {"count": 2},
        "evictor": {"count": 4, "after": True},
    },
    "the newest": {**LATE, "evictor": {"time": "5ms"}},
    "the newest, early": {**LATE, "trigger": {"continuous": "3ms"}, "evictor": {"time": "5ms"}},
    "purging": {**TUMBLING, "trigger": {"count": 3, "purging": True}},
    "sessions": {
        "window": {"session": "9ms"},
        "allowed_lateness": "40ms",
        "trigger": {"count": 1},
        "evictor": {"time": "6ms"},
    },
}
OVER = {"cogroup": {"cogroup": {}}, "join": {"window": {}}}
ROWS = [(how, "join", number) for number in range(ROUNDS) for how in HOW]
ROWS += [
    (how, "cogroup", number) for number in range(ROUNDS) for how in ("the last ones", "sessions")
]
BOUNDED = st.just({"strategy": "bounded_out_of_orderness", "bound": "10ms"})
BY_RECORD = watermarks_of(BOUNDED, st.just("per_record"), st.none(), st.just("valve"))


def told(scenario: Scenario) -> Replay:
    return replay_windows_of_two(
        scenario.spec,
        scenario.records,
        start_ms=scenario.start_ms,
        horizon_ms=scenario.horizon_ms,
        end_of_input=scenario.end_of_input,
    )


def scenario_of(how: str, over: str, number: int) -> Scenario:
    """Two inputs whose records have an order without a tie, and much that is replaced or not."""
    name = f"{how} {over} {number}"

    def scenario(inputs: Any) -> Scenario:
        sides = {
            side: getattr(inputs.spec.sources, side).model_copy(update={"sequence": "seq"})
            for side in SIDES
        }
        sources = Sources.model_construct(**sides)
        spec = WindowJoinSpec(
            pipeline="stream", sources=sources, join=OVER[over], firings=True, **HOW[how]
        )
        records = tuple(
            replace(record, sequence=n, payload={"id": n, "value": n})
            for n, record in enumerate(inputs.records)
        )
        return Scenario(name, spec, records, inputs.left.start_ms, inputs.end_of_input)

    asked = two_inputs(watermark=BY_RECORD, length=st.just(24)).map(scenario)
    return drawn(asked, name, best=lambda one: sum(happenings(one)))


def happenings(scenario: Scenario) -> tuple[int, int]:
    """The firings, but the first, that replace the one before, and the others; ten at most."""
    numbers = numbers_of(told(scenario).firings).values()
    later = [bool(one["supersedes"]) for one in numbers if one["firing"] > 1]
    return min(sum(later), 10), min(len(later) - sum(later), 10)


def expected(scenario: Scenario) -> list[tuple[Any, ...]]:
    firings = told(scenario).firings
    numbers = numbers_of(firings)

    def named(seq: int) -> tuple[int, int, int]:
        window = by_seq[seq].window
        return window.start_ms, window.end_ms, numbers[seq]["firing"]

    def ids(members: tuple[Record, ...], name: str) -> list[int]:
        return sorted(record.payload["id"] for record in members if record.input == name)

    by_seq, merging = {one.seq: one for one in firings}, scenario.spec.window.merging
    return sorted(
        (
            one.key[0],
            *named(one.seq),
            numbers[one.seq]["supersedes"],
            sorted(named(seq) for seq in one.supersedes if seq in by_seq) if merging else [],
            ids(one.members, "left"),
            ids(one.members, "right"),
        )
        for one in firings
    )


def found(session: SparkSession, scenario: Scenario) -> list[tuple[Any, ...]]:
    schema = LANDING.append(pa.field("input", pa.string()))
    rows = [{"input": record.input, **row_of(record)} for record in scenario.records]
    landing = session.createDataFrame(pa.Table.from_pylist(rows, schema=schema))
    firings = windows_of_two(scenario, scenario.spec, landing).firings()
    earlier = F.array().cast("array<struct<start:bigint,end:bigint,firing:bigint>>")
    if scenario.spec.window.merging:
        earlier = F.transform(
            "supersedes_windows",
            lambda one: F.struct(
                F.unix_millis(one.window_start), F.unix_millis(one.window_end), one.firing
            ),
        )
    told = firings.select(
        "k",
        *(F.unix_millis(name).alias(name) for name in ("window_start", "window_end")),
        "firing",
        F.coalesce("supersedes", F.lit(0)).alias("supersedes"),
        earlier.alias("earlier"),
        *("left", "right"),
    )
    rows = [list(row.values()) for row in told.toArrow().to_pylist()]
    return sorted(
        (*row[:5], [tuple(one.values()) for one in row[5] or []], *row[6:]) for row in rows
    )


def test_a_firing_over_two_inputs_supersedes_the_one_before_only_if_it_has_all_of_it(session):
    scenarios = [scenario_of(*row) for row in ROWS]
    for scenario, firings in each(scenarios, lambda one: found(session, one)):
        assert firings == expected(scenario), scenario
    both = [happenings(one) for one in scenarios if one.spec.join.window is not None]
    assert all(map(sum, zip(*both, strict=True)))
