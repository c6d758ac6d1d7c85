"""The set-based engine's answer to a scenario: a backfill's functions on a table in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.conformance.answer import Answer, FiringRow, LateRow, OpenRow, WindowRow
from strandline.conformance.scenario import ChainedScenario, Scenario, Unsupported
from strandline.engine import columns as c
from strandline.engine.past.observed import observed_history
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.rebuild import Rebuild, Scope, close
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.results.rows import ORDER
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec import PipelineSpec
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
    ]
)


class SparkEngine:
    """Answers scenarios in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        """Use a session that is there; it is not stopped here."""
        self._spark = spark

    def __call__(self, scenario: Scenario) -> Answer:
        """Observe, close, place, split and fire the scenario's records."""
        rebuild = self._rebuild(scenario)
        firings = _rows(rebuild.firings(F.col("id").cast("string")))
        last = {(row["key"], row["window_start"], row["window_end"]): row for row in firings}
        refused = _rows(rebuild.late())
        return Answer(
            firings=[_firing(row, rebuild) for row in firings],
            late=[
                LateRow(id=row["id"], watermark=row["watermark_ms"])
                for row in refused
                if row["reason"] == "late"
            ],
            no_window=[row["id"] for row in refused if row["reason"] == "no_window"],
            final=[WindowRow(**_content(row)) for row in last.values()],
            open_at_end=[
                OpenRow(**_content(row), end_passed=row["state"] == "fired")
                for row in _rows(rebuild.held())
            ],
            final_watermark=rebuild.final_watermark(),
        )

    def _rebuild(self, scenario: Scenario) -> Rebuild:
        spec = _runnable(scenario)
        axis = Axis.of(spec, scenario.start_ms)
        table = pa.Table.from_pylist([dict(r.payload) for r in scenario.records], schema=_FIELDS)
        landing = self._spark.createDataFrame(table)
        records = read_records(landing, spec, axis)
        known = records.where(F.col(c.ARRIVAL) < scenario.horizon_ms)
        history = observed_history(known, spec, axis, scenario.horizon_ms)
        ended = (Closure(EVERYTHING, scenario.horizon_ms),) if scenario.end_of_input else ()
        clock = Clock(scenario.horizon_ms, ended)
        columns = SourceColumns(tuple(landing.columns))
        return close(self._spark, records, columns, history, clock, Scope(EVERYTHING))


def _runnable(scenario: Scenario) -> PipelineSpec:
    """The scenario's pipeline, if the engine runs it."""
    features = not_yet(scenario.spec)
    if isinstance(scenario, ChainedScenario):
        features |= not_yet(scenario.then)
    if features:
        raise Unsupported(*(f"{path}: {kind}" for path, kind in features.items()))
    return runnable(scenario.spec, origin=scenario.name)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small result; firings in Flink's order."""
    moments = [name for name in frame.columns if name in {"window_start", "window_end", "fired_at"}]
    frame = frame.withColumns({name: F.unix_millis(name) for name in moments})
    rows = list(frame.toArrow().to_pylist())
    if "order_instant" in frame.columns:
        rows.sort(key=lambda row: tuple(row[name] or 0 for name in ORDER))
    return rows


def _content(row: dict[str, Any]) -> dict[str, Any]:
    of_all_time = row["window_start"] == LEAST_INSTANT_MS
    return {
        "key": row["key"],
        "start": None if of_all_time else row["window_start"],
        "end": None if of_all_time else row["window_end"],
        "count": row["count"],
        "sum": row["sum"] or 0,  # Spark's sum of no record is null
        "ids": row["ids"],
    }


def _firing(row: dict[str, Any], rebuild: Rebuild) -> FiringRow:
    axis = rebuild.history.axis
    seen_from = int(row["order_instant"])
    after: int | None = None
    if row["fired_by"] is not None:
        cause, after = "record", int(row["fired_by"])
    elif seen_from == axis.end:
        cause = "end"
    elif axis.interval_ms is None and row["order_rank"] < TICK_RANK:
        cause, after = "record", axis.sequence_of(seen_from - 1)
    else:
        cause = "tick"
    return FiringRow(
        **_content(row),
        watermark=MIN_WATERMARK if row["watermark_ms"] is None else row["watermark_ms"],
        arrival_ms=row["fired_at"],
        after_record_id=after,
        cause=cause,  # type: ignore[arg-type]
    )
