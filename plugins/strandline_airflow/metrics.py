"""A published run as metrics, by Airflow's own StatsD or OpenTelemetry, where one is configured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.observability import stats

_PREFIX = "strandline"


def count_run(pipeline: str | None, answer: Any, now: datetime | None = None) -> None:
    """Send what a published run has read and taken: see `gauges_of`; seconds a step as timings."""
    if pipeline is None or not isinstance(answer, Mapping) or answer.get("status") != "published":
        return
    tags = {"pipeline": pipeline}
    for name, value in gauges_of(answer, now or datetime.now(UTC)).items():
        stats.gauge(f"{_PREFIX}.{pipeline}.{name}", value, tags=tags)
    for step, seconds in (answer.get("seconds") or {}).items():
        stats.timing(f"{_PREFIX}.{pipeline}.seconds.{step}", float(seconds) * 1_000, tags=tags)


def gauges_of(answer: Mapping[str, Any], now: datetime) -> dict[str, float]:
    """The gauges of a run's answer, by name; those that it does not decide are left out.

    `freshness_seconds`: how long ago what is processed up to ended; `rows`: of the landing, read to
    observe new days; `malformed_share`: of these; `late_share`: of the range's records.
    """
    found: dict[str, float] = {}
    if until := answer.get("frontier"):
        found["freshness_seconds"] = (now - datetime.fromisoformat(until)).total_seconds()
    rows = malformed = judged = late = 0
    for book in answer.get("books") or ():
        parts = book["parts"]
        rows += book["total"] if "malformed" in parts else 0
        malformed += parts.get("malformed", 0)
        judged += book["total"] if "late" in parts else 0
        late += parts.get("late", 0)
    found["rows"] = rows
    if rows:
        found["malformed_share"] = malformed / rows
    if judged:
        found["late_share"] = late / judged
    return found
