"""The set-based engine's answer to a scenario: a backfill's functions on a table in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.conformance.answer import (
    Answer,
    AnyAnswer,
    FiringRow,
    LateRow,
    OpenRow,
    WindowRow,
)
from strandline.conformance.scenario import ChainedScenario, Scenario, Unsupported
from strandline.conformance.spark_joins import (
    IDS_OF_SIDES,
    answer_pairs,
    clock_of,
    windows_of_two,
)
from strandline.engine import columns as c
from strandline.engine.past.observed import observed_history
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.engine.rebuild import Rebuild, Scope, close
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.results.rows import ORDER
from strandline.model.intervals import EVERYTHING
from strandline.spec.join import IntervalJoinSpec, WindowJoinSpec
from strandline.spec.runnable import not_yet, runnable

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
    """Answers scenarios in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        """Use a session that is there; it is not stopped here."""
        self._spark = spark

    def __call__(self, scenario: Scenario) -> AnyAnswer:
        """Observe, close, place, split and fire the scenario's records, or join them."""
        _refuse_what_is_not_run(scenario)
        spec = scenario.spec
        if isinstance(spec, IntervalJoinSpec):
            return answer_pairs(self._spark, scenario, spec, self._landing(scenario))
        if isinstance(spec, WindowJoinSpec):
            rebuild = windows_of_two(self._spark, scenario, spec, self._landing(scenario))
            return _of_windows(rebuild, _content if spec.join.window is None else _pairs_of)
        return _of_windows(self._rebuild(scenario), _content)

    def _landing(self, scenario: Scenario) -> DataFrame:
        table = pa.Table.from_pylist([dict(r.payload) for r in scenario.records], schema=_FIELDS)
        return self._spark.createDataFrame(table)

    def _rebuild(self, scenario: Scenario) -> Rebuild:
        spec = runnable(scenario.spec, origin=scenario.name)
        axis = Axis.of(spec, scenario.start_ms)
        landing = self._landing(scenario)
        records = read_records(landing, spec, axis)
        known = records.where(F.col(c.ARRIVAL) < scenario.horizon_ms)
        history = observed_history(known, spec, axis, scenario.horizon_ms)
        columns, clock = SourceColumns(tuple(landing.columns)), clock_of(scenario)
        return close(self._spark, records, columns, history, clock, Scope(EVERYTHING))


def _refuse_what_is_not_run(scenario: Scenario) -> None:
    features = not_yet(scenario.spec)
    if isinstance(scenario, ChainedScenario):
        features |= not_yet(scenario.then)
    if features:
        raise Unsupported(*(f"{path}: {kind}" for path, kind in features.items()))


_Content = Callable[[dict[str, Any]], dict[str, Any]]
"""What is told of a window."""


def _of_windows(rebuild: Rebuild, content: _Content) -> Answer:
    firings = [
        row
        for row in _rows(rebuild.firings(F.col("id").cast("string")))
        if content is not _pairs_of or (row["left"] and row["right"])
    ]
    last = {(row["key"], row["window_start"], row["window_end"]): row for row in firings}
    refused = _rows(rebuild.late())
    return Answer(
        firings=[_firing(row, rebuild, content) for row in firings],
        late=[_late(row) for row in refused if row["reason"] == "late"],
        no_window=[row["id"] for row in refused if row["reason"] == "no_window"],
        final=[WindowRow(**content(row)) for row in last.values()],
        open_at_end=[
            OpenRow(**_of_all(row), end_passed=row["state"] == "fired")
            for row in _rows(rebuild.held())
        ],
        final_watermark=rebuild.final_watermark(),
    )


def _late(row: dict[str, Any]) -> LateRow:
    told = {"input": row["input"]} if row["input"] else {}
    return LateRow(id=row["id"], watermark=row["watermark_ms"], **told)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small result; firings in Flink's order."""
    moments = [name for name in frame.columns if name in {"window_start", "window_end", "fired_at"}]
    frame = frame.withColumns({name: F.unix_millis(name) for name in moments})
    rows = list(frame.toArrow().to_pylist())
    if "order_instant" in frame.columns:
        rows.sort(key=lambda row: tuple(row[name] or 0 for name in ORDER))
    return rows


def _of_all(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "key": row["key"],
        "start": row["window_start"],
        "end": row["window_end"],
        "count": row["count"],
        "sum": row["sum"],
        "ids": row["ids"],
    }


def _content(row: dict[str, Any]) -> dict[str, Any]:
    """All records of a window, and of two inputs those of each side."""
    return _of_all(row) | {name: row[name] for name in IDS_OF_SIDES if name in row}


def _pairs_of(row: dict[str, Any]) -> dict[str, Any]:
    """The pairs of a window of a join."""
    both = _content(row)
    del both["sum"]
    return both | {"count": len(both["left"]) * len(both["right"])}


def _firing(row: dict[str, Any], rebuild: Rebuild, content: _Content) -> FiringRow:
    axis = rebuild.history.axis
    seen_from = int(row["order_instant"])
    after: int | None = None
    if row["timing"] == "LATE":
        cause, after = "record", int(row["fired_by"])
    elif seen_from == axis.end:
        cause = "end"
    elif axis.interval_ms is None and row["order_rank"] < TICK_RANK:
        cause, after = "record", axis.sequence_of(seen_from - 1)
    else:
        cause = "tick"
    return FiringRow(
        **content(row),
        watermark=row["watermark_ms"],
        arrival_ms=row["fired_at"],
        after_record_id=after,
        cause=cause,  # type: ignore[arg-type]
    )
