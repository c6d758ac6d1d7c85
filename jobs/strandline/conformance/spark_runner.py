"""The result of a scenario by the set-based engine, over a table in memory."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from strandline.conformance.answer import (
    Answer,
    AnyAnswer,
    FiringRow,
    LateRow,
    OpenRow,
    ThenAnswer,
    ThenFiring,
    ThenLate,
    ThenOpen,
    WindowRow,
)
from strandline.conformance.scenario import ChainedScenario, Scenario, Unsupported
from strandline.conformance.spark_joins import (
    IDS_OF_SIDES,
    answer_pairs,
    clock_of,
    rebuild_of_records,
    windows_of_two,
)
from strandline.engine import columns as c
from strandline.engine.frames import computed, from_arrow
from strandline.engine.history.history import History, Upstream
from strandline.engine.history.observed import cells_of, observed_history
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.records.results import results_of
from strandline.engine.result_rows import ORDER
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.timeline import Observed
from strandline.engine.watermark_values.forwarded import history_behind
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.join import SIDES, IntervalJoinSpec, WindowJoinSpec
from strandline.spec.runnable import not_yet, runnable

_BOUNDS = ("window_start", "window_end")
_OF_FIRING = (*_BOUNDS, "fired_at")
_FIELDS = pa.schema(
    [
        ("id", pa.int64()),
        ("arrival_ms", pa.int64()),
        ("ts_ms", pa.int64()),
        ("channel", pa.string()),
        ("key", pa.string()),
        ("value", pa.int64()),
        ("marker", pa.bool_()),
        ("gap_ms", pa.int64()),
        ("input", pa.string()),
    ]
)


class SparkEngine:
    """Computes results of scenarios in one session."""

    def __init__(self, spark: SparkSession) -> None:
        """Use an open session, which the caller stops."""
        self._spark = spark

    def __call__(self, scenario: Scenario) -> AnyAnswer:
        """The result of a scenario: its windows, or its pairs."""
        _require_runnable(scenario)
        spec = scenario.spec
        if isinstance(spec, IntervalJoinSpec):
            return answer_pairs(scenario, spec, self._landing(scenario))
        if isinstance(spec, WindowJoinSpec):
            rebuild = windows_of_two(scenario, spec, self._landing(scenario))
            return _answer(rebuild, _firings(rebuild), rebuild_of_records(rebuild, spec))
        rebuild = self._rebuild(scenario)
        firings = _firings(rebuild)
        answer = _answer(rebuild, firings, rebuild)
        if isinstance(scenario, ChainedScenario):
            return answer.model_copy(update={"then": self._then(scenario, rebuild, firings)})
        return answer

    def _landing(self, scenario: Scenario) -> DataFrame:
        table = pa.Table.from_pylist([dict(r.payload) for r in scenario.records], schema=_FIELDS)
        return from_arrow(self._spark, table)

    def _rebuild(self, scenario: Scenario) -> Rebuild:
        spec = runnable(scenario.spec, origin=scenario.name)
        axis = Axis.of(spec, scenario.start_ms)
        landing = self._landing(scenario)
        records = computed(read_records(landing, spec))
        known = records.where(F.col(c.ARRIVAL) < scenario.horizon_ms)
        history = observed_history(known, spec, axis, scenario.horizon_ms)
        return self._closed(scenario, records, landing, history, F.col("id").cast("string"))

    def _then(
        self, scenario: ChainedScenario, first: Rebuild, firings: list[dict[str, Any]]
    ) -> ThenAnswer:
        """The result of the second windows, whose records are the firings of the first."""
        spec = scenario.then.over(first.history.spec)
        columns = to_arrow_schema(first.firings().schema, timezone="UTC")
        table = from_arrow(self._spark, _as_records(firings, columns))
        results = results_of(table, first.windows(), spec)
        records = computed(read_records(results, spec))
        upstream = Upstream(first.records, first.history.in_probe_order(first.records))
        cells = Observed(cells_of(records, spec, first.history.axis))
        history = history_behind(spec, cells, upstream)
        then = self._closed(scenario, records, results, history, F.col("fired_by"))
        return ThenAnswer(
            firings=[
                ThenFiring(**_content(row), **_fired_at(row, then), seqs=row["ids"])
                for row in _rows(then.firings(), *_OF_FIRING)
            ],
            late=[
                ThenLate(seq=row["id"], watermark=row["watermark_ms"])
                for row in then.late().select("id", "watermark_ms").collect()
            ],
            open_at_end=[
                ThenOpen(**_of_open(row), seqs=row["ids"])
                for row in _rows(then.in_state(), *_BOUNDS)
            ],
        )

    def _closed(
        self,
        scenario: Scenario,
        records: DataFrame,
        landing: DataFrame,
        history: History,
        tie_breaker: Column,
    ) -> Rebuild:
        columns, clock, scope = SourceColumns.of(landing), clock_of(scenario), Scope(EVERYTHING)
        return rebuild_of_scope(records, columns, history, clock, scope, tie_breaker=tie_breaker)


def _require_runnable(scenario: Scenario) -> None:
    """Refuse scenarios that the engine does not support.

    Raises:
        Unsupported: it does not.
    """
    features = not_yet(scenario.spec)
    if isinstance(scenario, ChainedScenario):
        features |= not_yet(scenario.then)
    if features:
        raise Unsupported(*(f"{path}: {kind}" for path, kind in features.items()))


def _firings(rebuild: Rebuild) -> list[dict[str, Any]]:
    """The firings, computed once: each computation may order equal firings differently."""
    return _rows(rebuild.firings(), *_OF_FIRING)


def _answer(rebuild: Rebuild, firings: list[dict[str, Any]], of_records: Rebuild) -> Answer:
    """The result of windows.

    Args:
        rebuild: the windows.
        firings: their firings as rows.
        of_records: the rebuild that gives the windows in state; another one than `rebuild` for a
            window join, where windows keep records and firings contain pairs.
    """
    content = _content if of_records is rebuild else _pairs_of
    last = {(row["key"], row["window_start"], row["window_end"]): row for row in firings}
    refused = rebuild.late().select("id", "input", "reason", "watermark_ms").collect()
    return Answer(
        firings=[
            FiringRow(**content(row), **_fired_at(row, rebuild), seq=seq)
            for seq, row in enumerate(firings)
        ],
        late=[_late(row) for row in refused if row["reason"] == "late"],
        no_window=[row["id"] for row in refused if row["reason"] == "no_window"],
        final=[WindowRow(**content(row)) for row in last.values()],
        open_at_end=[OpenRow(**_of_open(row)) for row in _rows(of_records.in_state(), *_BOUNDS)],
        final_watermark=rebuild.final_watermark(),
    )


def _late(row: Row) -> LateRow:
    of_input = {"input": row["input"]} if row["input"] else {}
    return LateRow(id=row["id"], watermark=row["watermark_ms"], **of_input)


def _rows(frame: DataFrame, *times: str) -> list[dict[str, Any]]:
    """The rows of a small result with the given times in ms; firings in Flink's order."""
    rows = frame.withColumns({name: F.unix_millis(name) for name in times}).collect()
    return _in_order([row.asDict(recursive=True) for row in rows])


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not rows or ORDER[0] not in rows[0]:
        return rows
    return sorted(rows, key=lambda row: tuple(row[name] or 0 for name in ORDER))


def _as_records(firings: list[dict[str, Any]], columns: pa.Schema) -> pa.Table:
    """Firings as records of a scenario, with their number and value."""
    columns = pa.schema([*columns, ("id", pa.int64()), ("value", pa.int64())])
    records = [
        row
        | {name: row[name] * 1000 for name in _OF_FIRING if row[name] is not None}
        | {"id": seq, "value": row["sum"]}
        for seq, row in enumerate(firings)
    ]
    return pa.Table.from_pylist(records, schema=columns)


def _records_of(row: dict[str, Any]) -> dict[str, Any]:
    is_global = row["window_start"] == LEAST_INSTANT_MS
    return {
        "key": row.get("key", ""),  # one window for all has none
        "start": None if is_global else row["window_start"],
        "end": None if is_global else row["window_end"],
        "count": row["count"],
        "sum": row["sum"] or 0,  # Spark's sum of no record is null
        "ids": row["ids"],
    }


def _content(row: dict[str, Any]) -> dict[str, Any]:
    """The records of a window; for two inputs the records of each side."""
    return _records_of(row) | {name: row[name] for name in IDS_OF_SIDES if name in row}


def _pairs_of(row: dict[str, Any]) -> dict[str, Any]:
    """The pairs of a window of a join."""
    sides = {name: row[name] for name in SIDES}
    both = _records_of(row | {"sum": None, "ids": sorted(chain(*sides.values()))})
    del both["sum"]
    return both | sides


def _of_open(row: dict[str, Any]) -> dict[str, Any]:
    return _records_of(row) | {"end_passed": row["state"] == "fired"}


def _fired_at(row: dict[str, Any], rebuild: Rebuild) -> dict[str, Any]:
    """The time and the cause of a firing: the fields of `FiringRow` but for its window."""
    axis = rebuild.history.axis
    instant = int(row["order_instant"])
    after: int | None = None
    if row["fired_by"] is not None:  # a late record, or one that a trigger reacts to
        cause, after = "record", int(row["fired_by"])
    elif instant == axis.end:
        cause = "end"
    elif axis.interval_ms is None and row["order_rank"] < TICK_RANK:
        # the watermark that a record emitted; scenarios have the id as sequence
        cause, after = "record", axis.sequence_of(instant - 1)
    else:
        cause = "tick"
    timer = {}
    if row["window_start"] != LEAST_INSTANT_MS:  # the timer of a window of all time is its end
        timer["timer"] = None if row["fired_by"] is not None else row["order_window_ms"] - 1
    return timer | {
        "watermark": MIN_WATERMARK if row["watermark_ms"] is None else row["watermark_ms"],
        "arrival_ms": row["fired_at"],
        "after_record_id": after,
        "cause": cause,
    }
