"""Metrics of a published run, sent by Airflow's StatsD or OpenTelemetry if it is configured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.observability import stats

_PREFIX = "strandline"


def count_run(pipeline: str | None, answer: Any, now: datetime | None = None) -> None:
    """Send the gauges of a published run (see `gauges_of`), and its seconds per step as timings."""
    if pipeline is None or not isinstance(answer, Mapping) or answer.get("status") != "published":
        return
    tags = {"pipeline": pipeline}
    for name, value in gauges_of(answer, now or datetime.now(UTC)).items():
        stats.gauge(f"{_PREFIX}.{pipeline}.{name}", value, tags=tags)
    for step, seconds in (answer.get("seconds") or {}).items():
        stats.timing(f"{_PREFIX}.{pipeline}.seconds.{step}", float(seconds) * 1_000, tags=tags)


def gauges_of(answer: Mapping[str, Any], now: datetime) -> dict[str, float]:
    """The gauges of a run by name; a gauge that the run does not decide is missing.

    `freshness_seconds`: the age of the instant up to which the pipeline is processed;
    `rows`: landing rows read to observe new days; `malformed_share`: the share of these rows that
    is malformed; `late_share`: the share of the range's records that is late.
    """
    found: dict[str, float] = {}
    if until := answer.get("frontier"):
        found["freshness_seconds"] = (now - datetime.fromisoformat(until)).total_seconds()
    rows = malformed = evaluated = late = 0
    for book in answer.get("books") or ():
        parts = book["parts"]
        rows += book["total"] if "malformed" in parts else 0
        malformed += parts.get("malformed", 0)
        evaluated += book["total"] if "late" in parts else 0
        late += parts.get("late", 0)
    found["rows"] = rows
    if rows:
        found["malformed_share"] = malformed / rows
    if evaluated:
        found["late_share"] = late / evaluated
    return found
