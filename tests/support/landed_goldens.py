"""Goldens of two inputs as two landing tables that a pipeline reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lakes import Line, land, ms

from strandline.conformance.golden import GoldenTwoInputs
from strandline.conformance.pipelines import pipeline_of
from strandline.conformance.spark_joins import IDS_OF_SIDES, PAIRS_OF_SIDES
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request
from strandline.spec import parse_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDENS = Path(__file__).parents[1] / "golden" / "flink"
_RECORD = pa.schema(
    [
        *((name, pa.int64()) for name in ("id", "arrival_ms", "ts_ms", "value")),
        *((name, pa.string()) for name in ("channel", "key")),
        ("marker", pa.bool_()),
    ]
)


def goldens(kind: str) -> dict[str, dict[str, Any]]:
    """Those of a kind of join by their names."""
    cases = (
        case
        for path in sorted(GOLDENS.glob("joins_*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    )
    return {
        case["scenario"]["name"]: case for case in cases if case["scenario"]["join"]["kind"] == kind
    }


def landed(spark: SparkSession, folder: Path, scenario: dict[str, Any]) -> tuple[Line, Outcome]:
    """A golden's records in two tables, and what a run by hand over all of them says."""
    content = pipeline_of(GoldenTwoInputs.model_validate(scenario))
    content |= {"quality": {"gaps": "allow"}, "spark": {"spark.sql.shuffle.partitions": "1"}}
    if "aggregates" in content:
        content["aggregates"] = (
            PAIRS_OF_SIDES if "window" in content["join"] else content["aggregates"] | IDS_OF_SIDES
        )
    for name, side in content["sources"].items():
        side["table"] = f"landing/{name}"
        own = [
            {field.name: record[field.name] for field in _RECORD}
            for record in scenario["records"]
            if record["input"] == name
        ]
        rows = pa.Table.from_pylist(own, _RECORD)
        land(folder, rows, table=f"landing/{name}", partition_by=[])
    line = Line(spark, folder, parse_spec(content, origin=scenario["name"]))
    times = [record["ts_ms"] for record in scenario["records"]]
    horizon_ms = max(record["arrival_ms"] for record in scenario["records"]) + 1
    within = TimeRange(min(times) - 3 * DAY_MS, max(times) + 3 * DAY_MS)
    close = scenario["end_of_input"] == "max_watermark"
    request = Request("backfill", within, as_of_ms=horizon_ms, close=close)
    return line, line.run(request)


def told(expected: dict[str, Any]) -> dict[str, list[Any]]:
    """What a golden says."""
    found: dict[str, list[Any]] = {
        "late": sorted((one["id"], one["watermark"]) for one in expected["late"])
    }
    if "pairs" in expected:
        pairs = expected["pairs"]
        return found | {"pairs": sorted((p["left"], p["right"], p["ts"]) for p in pairs)}
    firings = expected["firings"]
    return found | {
        "firings": sorted(
            (
                *(one["start"], one["end"], one["key"], one["watermark"]),
                *(one["count"], one.get("sum"), sorted(one["left"]), sorted(one["right"])),
            )
            for one in firings
        )
    }


def published(line: Line) -> dict[str, list[Any]]:
    """What is published of it."""
    late = line.rows("quarantine")
    found: dict[str, list[Any]] = {
        "late": sorted((row["id"], row["watermark_ms"]) for row in late if row["reason"] == "late")
    }
    if line.spec.result == "pairs":
        rows = line.rows("pairs")
        pairs = sorted((r["left_id"], r["right_id"], ms(r["pair_ts"])) for r in rows)
        return found | {"pairs": pairs}
    return found | {
        "firings": sorted(
            (
                *(ms(row["window_start"]), ms(row["window_end"]), row["key"], row["watermark_ms"]),
                *(row["records"], row.get("sum"), row["left"], row["right"]),
            )
            for row in line.rows("firings")
        )
    }
