"""Interval joins: on Spark as in the reference, whole or a range of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from drawn import ROUNDS, drawn
from engine_under_test import LANDING, each
from hypothesis import strategies as st
from pyspark.sql import functions as F
from spec_strategies import IDLENESS, any_watermarks, generators_of, watermarks_of
from two_inputs import TwoInputs, two_inputs

from strandline.engine import columns as c
from strandline.engine.history.inputs import HistoryOfTwo, Input
from strandline.engine.history.observed import observed_history
from strandline.engine.pairs.columns import PAIR_TS
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.scope import Scope
from strandline.engine.timeline import CombinedTimeline
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.spec.join import SIDES, Interval, side_of
from strandline.spec.joined import JoinedSpec
from strandline.tables import INPUT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

MARKED = watermarks_of(
    generators_of("punctuated"), st.sampled_from(["per_record", "1ms"]), st.none(), st.just("valve")
)
IDLE = watermarks_of(
    st.sampled_from(["ascending", "punctuated", "time_lag"]).flatmap(generators_of),
    st.sampled_from(["1ms", "7ms"]),
    st.sampled_from(IDLENESS),
    st.sampled_from(["valve", "splits"]),
)
KINDS = {"marked": MARKED, "idle": IDLE, "any": any_watermarks()}
ROWS = [(kind, number) for number in range(ROUNDS) for kind in KINDS]


def happenings(join: TwoInputs) -> int:
    """How much happens in a join, by the reference; what is rare counts for more."""
    told = join.replay()
    late = Counter(one.record.input for one in told.late)
    within = join.spec.join
    near = sum(
        within.lower_ms <= right.ts_ms - left.ts_ms <= within.upper_ms
        for left in join.records
        for right in join.records
        if (left.input, right.input) == SIDES and left.key == right.key
    )
    happens = {
        "pairs": (len(told.pairs) > 3, 3),
        "late on both sides": (len(late) == 2, 2),
        "late": (bool(late), 1),
        "kept": (any(told.kept.values()), 1),
        "idle": (bool(told.input_status), 2),
        "no pair, though close": (near > len(told.pairs), 1),
    }
    return sum(weight for does, weight in happens.values() if does)


def rich(kind: str, number: int) -> TwoInputs:
    """A join in which much happens: both of its sides have to be so, which takes many draws."""
    asked = two_inputs(watermark=KINDS[kind], length=st.just(40))
    names = [f"{kind} {number} {draw}" for draw in range(8)]
    return max((drawn(asked, name, best=happenings) for name in names), key=happenings)


def engine(spark: SparkSession, join: TwoInputs, within: TimeRange = EVERYTHING) -> PairRebuild:
    inputs = {name: _input(spark, getattr(join, name), side_of(join.spec, name)) for name in SIDES}
    observed = CombinedTimeline(*(one.history.timeline for one in inputs.values()))
    history = HistoryOfTwo.of(observed, JoinedSpec.of(join.spec), inputs)
    ended = (Closure(EVERYTHING, join.horizon_ms),) if join.end_of_input else ()
    clock, records = Clock(join.horizon_ms, ended, by_channel=True), inputs["left"].records
    return rebuild_of_scope(records, SourceColumns(()), history, clock, Scope(within))


def _input(spark: SparkSession, stream: Stream, spec: Any) -> Input:
    landing = spark.createDataFrame(pa.Table.from_pylist(stream.rows(), schema=LANDING))
    axis = Axis.of(spec, stream.start_ms)
    records = read_records(landing, spec)
    known = records.where(F.col(c.ARRIVAL) < stream.horizon_ms)
    history = observed_history(known, spec, axis, stream.horizon_ms)
    return Input(records, SourceColumns.of(landing), history)


def found(rebuild: PairRebuild) -> dict[str, Any]:
    pairs = rebuild.joined().select("left_id", "right_id", F.unix_millis(PAIR_TS))
    late = rebuild.late().select(INPUT, "id", "watermark_ms").collect()
    return {
        "pairs": sorted(tuple(row) for row in pairs.collect()),
        "late": {name: sorted((i, w) for side, i, w in late if side == name) for name in SIDES},
    }


def expected(join: TwoInputs, within: TimeRange = EVERYTHING) -> dict[str, Any]:
    told = join.replay()
    late = {name: [one for one in told.late if one.record.input == name] for name in SIDES}
    return {
        "pairs": sorted(
            (pair.left.payload["id"], pair.right.payload["id"], pair.ts_ms)
            for pair in told.pairs
            if pair.ts_ms in within
        ),
        "late": {
            name: sorted(
                (one.record.payload["id"], one.watermark_ms)
                for one in of_side
                if one.record.ts_ms in within
            )
            for name, of_side in late.items()
        },
    }


def answer(spark: SparkSession, join: TwoInputs) -> tuple[Any, ...]:
    rebuild = engine(spark, join)
    kept = {name: rebuild.in_state_of(name).select("id").collect() for name in SIDES}
    times = sorted(record.ts_ms for record in join.records) or [0]
    within = TimeRange(times[len(times) // 3], times[2 * len(times) // 3] + 1)
    return (
        found(rebuild),
        {name: sorted(row[0] for row in rows) for name, rows in kept.items()},
        rebuild.final_watermark(),
        within,
        found(engine(spark, join, within)),
    )


@pytest.mark.parametrize("upper_ms", [0, 1])
def test_exclusive_bounds_may_leave_no_distance_and_nothing_is_joined(session, upper_ms):
    between = Interval(
        interval=("0ms", f"{upper_ms}ms"), lower_inclusive=False, upper_inclusive=False
    )
    join = drawn(two_inputs(watermark=MARKED, length=st.just(40)), "none", best=happenings)
    join = replace(join, spec=join.spec.model_copy(update={"join": between}))
    told = found(engine(session, join))
    assert told == expected(join)
    assert told["late"]
    assert not told["pairs"]


def test_the_engine_joins_within_an_interval_as_the_reference_does(session):
    joins = [rich(kind, number) for kind, number in ROWS]
    for join, (whole, kept, watermark_ms, within, part) in each(
        joins, lambda j: answer(session, j)
    ):
        told = join.replay()
        assert whole == expected(join), join
        assert kept == {
            name: sorted(record.payload["id"] for record in records)
            for name, records in told.kept.items()
        }, join
        assert watermark_ms == told.final_watermark_ms, join
        assert part == expected(join, within), join
