"""The results of scenarios with two inputs by the set-based engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.conformance.answer import LateRow, PairRow, PairsAnswer
from strandline.conformance.scenario import Scenario
from strandline.engine import columns as c
from strandline.engine.frames import computed
from strandline.engine.history.history import History
from strandline.engine.history.inputs import HistoryOfTwo, Input
from strandline.engine.history.observed import (
    assemble_history,
    cells_of,
    observe_days,
    observed_history,
)
from strandline.engine.idleness.union import Union
from strandline.engine.pairs.columns import PAIR_TS, of_side
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.arithmetic import instant_of
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.replay.window_pairs import WindowPairsRebuild
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.timeline import CombinedTimeline, Observed
from strandline.engine.watermark.by_steps import KnownSteps
from strandline.engine.watermark_values.of_two import EmissionsOfTwo
from strandline.model.intervals import EVERYTHING
from strandline.spec.join import SIDES, IntervalJoinSpec, WindowJoinSpec, side_of
from strandline.spec.joined import CogroupSpec, JoinedSpec
from strandline.tables import INPUT

IDS_OF_SIDES = {
    name: f"array_sort(collect_list(CASE WHEN input = '{name}' THEN id END))" for name in SIDES
}
"""The additional columns in results of windows over two inputs."""
PAIRS_OF_SIDES = {name: f"array_sort(collect_set({name}_id))" for name in SIDES}
"""The additional columns in results of window joins: the records of each side that have a pair."""
_LATER = "_strandline_later"


def answer_pairs(scenario: Scenario, spec: IntervalJoinSpec, landing: DataFrame) -> PairsAnswer:
    """Observe both inputs, split them by lateness, and join.

    Args:
        scenario: the scenario.
        spec: its pipeline.
        landing: its records, each with its `input`.
    """
    inputs = {name: _input(scenario, spec, landing, name) for name in SIDES}
    observed = CombinedTimeline(*(one.history.timeline for one in inputs.values()))
    history = HistoryOfTwo.of(observed, JoinedSpec.of(spec), inputs)
    columns, clock, scope = SourceColumns(()), clock_of(scenario), Scope(EVERYTHING)
    rebuild = cast("PairRebuild", rebuild_of_scope(landing, columns, history, clock, scope))
    return PairsAnswer(
        pairs=_pairs(rebuild),
        late=[
            LateRow(id=row["id"], watermark=row["watermark_ms"], input=row[INPUT])
            for row in _rows(rebuild.late().select("id", "watermark_ms", INPUT))
        ],
        buffered={name: [row["id"] for row in _rows(rebuild.in_state_of(name))] for name in SIDES},
        final_watermark=rebuild.final_watermark(),
    )


def windows_of_two(scenario: Scenario, spec: WindowJoinSpec, landing: DataFrame) -> Rebuild:
    """The rebuild of the windows over both inputs; the arguments are those of `answer_pairs`."""
    aggregates = spec.aggregates | IDS_OF_SIDES
    if spec.join.window is not None:
        aggregates = PAIRS_OF_SIDES | {"count": "count(*)"}
    spec = spec.model_copy(update={"aggregates": aggregates})
    left, right = (Axis.of(side_of(spec, name), scenario.start_ms) for name in SIDES)
    inputs = {
        name: computed(read_records(landing.where(F.col(INPUT) == name), side_of(spec, name)))
        for name in SIDES
    }
    source = Union.of(CogroupSpec.of(spec), (left, right))
    records = _in_one(inputs, source.axis)
    history = _behind_one_valve(inputs, records, spec, source, scenario.horizon_ms)
    columns, clock, scope = SourceColumns.of(landing), clock_of(scenario), Scope(EVERYTHING)
    by_id = F.col("id").cast("string")
    return rebuild_of_scope(records, columns, history, clock, scope, tie_breaker=by_id)


def _in_one(inputs: Mapping[str, DataFrame], axis: Axis) -> DataFrame:
    """The records of both inputs, channels prefixed by side; instants on the axis of both."""
    instant = instant_of(axis, F.col(c.ARRIVAL), F.col(c.SEQUENCE))
    sides = (
        rows.withColumns({c.INSTANT: instant, c.CHANNEL: F.concat(F.lit(f"{name}/"), c.CHANNEL)})
        for name, rows in inputs.items()
    )
    return reduce(DataFrame.unionByName, sides)


def _behind_one_valve(
    inputs: Mapping[str, DataFrame],
    records: DataFrame,
    spec: WindowJoinSpec,
    source: Union,
    horizon_ms: int,
) -> History:
    """The history of both inputs; `records`: those of both, as `_in_one` has them."""
    is_known, whole = F.col(c.ARRIVAL) < horizon_ms, CogroupSpec.of(spec)
    cells = Observed(cells_of(records.where(is_known), whole, source.axis))
    known = {name: rows.where(is_known) for name, rows in inputs.items()}
    nothing = KnownSteps.none(source)
    days = [*observe_days(source, known, cells, nothing, horizon_ms)]
    return assemble_history(cells, whole, source, nothing, days, horizon_ms=horizon_ms)


def rebuild_of_records(rebuild: Rebuild, spec: WindowJoinSpec) -> Rebuild:
    """The rebuild whose windows in state contain records, also if the results are pairs."""
    if not isinstance(rebuild, WindowPairsRebuild):
        return rebuild
    replay = rebuild.replay
    counting = replay.history.spec.model_copy(update={"aggregates": spec.aggregates})
    return replace(replay, history=replace(replay.history, spec=counting))


def clock_of(scenario: Scenario) -> Clock:
    """The clock of a scenario: its horizon, and whether the input ends."""
    ended = (Closure(EVERYTHING, scenario.horizon_ms),) if scenario.end_of_input else ()
    return Clock(scenario.horizon_ms, ended, by_channel=True)


def _input(scenario: Scenario, spec: IntervalJoinSpec, landing: DataFrame, name: str) -> Input:
    side = side_of(spec, name)
    axis = Axis.of(side, scenario.start_ms)
    own = landing.where(F.col(INPUT) == name).drop(INPUT)
    records = computed(read_records(own, side))
    known = records.where(F.col(c.ARRIVAL) < scenario.horizon_ms)
    history = observed_history(known, side, axis, scenario.horizon_ms)
    return Input(records, SourceColumns.of(own), history)


def _pairs(rebuild: PairRebuild) -> list[PairRow]:
    """The pairs, each with the watermark at the arrival of its later record."""
    left, right = (
        F.struct(
            *(
                F.col(of_side(name, column)).alias(column)
                for column in (c.ARRIVAL, "id", c.AT_ARRIVAL, c.ARRIVAL_DAY)
            )
        )
        for name in SIDES
    )
    later = F.col(_LATER)
    probes = computed(
        rebuild.joined()
        .withColumn(_LATER, F.greatest(left, right))
        .withColumns({c.ARRIVAL_DAY: later[c.ARRIVAL_DAY], c.AT_ARRIVAL: later[c.AT_ARRIVAL]})
    )
    days = [row[c.ARRIVAL_DAY] for row in _rows(probes.select(c.ARRIVAL_DAY).distinct())]
    at_arrival = EmissionsOfTwo(rebuild.history, rebuild.clock, days).at_arrival(probes)
    rows = at_arrival.select(
        F.col("left_id").alias("left"),
        F.col("right_id").alias("right"),
        F.unix_millis(PAIR_TS).alias("ts"),
        F.col(c.WATERMARK).alias("watermark"),
        later[c.ARRIVAL].alias("arrival_ms"),
        later["id"].alias("after_record_id"),
    )
    return [PairRow(**row) for row in _rows(rows)]


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]
