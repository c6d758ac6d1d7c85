"""What a published run announces: asset events with their `extra`, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.observability import stats

from strandline_airflow.catalogue import published_asset

_FACTS = ("run_id", "kind", "range", "horizon", "dates", "completed")
"""The keys of a run's JSON document that its asset event repeats."""
_PUBLISHED = AssetAlias("strandline_published")
"""The alias of the event for a pipeline's tables as a whole. It is sent beside the events of single
partitions, which start no DAG that is scheduled on the whole tables."""
_COMPLETE = AssetAlias("strandline_complete")
"""The alias of the events for complete days, of any pipeline."""
_REPROCESSED = AssetAlias("strandline_reprocessed")
"""The alias of the events for the tables of a pipeline that a param of the DAG run names."""


def _complete_asset(pipeline: str) -> Asset:
    """The asset of a pipeline's complete days; it has an event when further days are complete.

    A day is complete when all its slots are closed.
    """
    return Asset(name=f"strandline_{pipeline}_complete", uri=f"strandline://{pipeline}/complete")


def outlets_of(pipeline: str) -> list[Asset | AssetAlias]:
    """The outlets of a task that publishes a pipeline known when its DAG is parsed."""
    return [published_asset(pipeline), _PUBLISHED, _COMPLETE]


def outlets_of_any() -> list[Asset | AssetAlias]:
    """The outlets of a task that publishes the pipeline named by a param of the DAG run."""
    return [_REPROCESSED, _COMPLETE]


def announce(events: Any, outlets: Sequence[Any], pipeline: str | None, answer: Any) -> None:
    """Fill the asset events of a task with the result of a published run.

    Args:
        events: Airflow's `outlet_events` of the task.
        outlets: the task's outlets.
        pipeline: the pipeline's name; None if the task belongs to no pipeline: there is no event.
        answer: the command's JSON document.
    """
    if pipeline is None:
        return
    event, days = event_of(answer), _changed_dates(answer)
    for outlet in outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = event
            events[outlet].add_partitions(days)
        elif outlet == _REPROCESSED or (outlet == _PUBLISHED and days):
            events[outlet].add(published_asset(pipeline), extra=event)
        elif outlet == _COMPLETE and event.get("completed"):
            events[outlet].add(_complete_asset(pipeline), extra=event)


def event_of(answer: Any) -> dict[str, Any]:
    """The `extra` of an event: run id, range, counts, verdict and findings of a run."""
    if not isinstance(answer, Mapping):
        return {}
    facts = {name: answer[name] for name in _FACTS if answer.get(name) not in (None, [], {})}
    findings = answer.get("findings") or []
    severities = {finding["severity"] for finding in findings}
    return facts | {
        "status": answer.get("status"),
        "counts": answer.get("diff") or {},
        "verdict": next((one for one in ("critical", "warning") if one in severities), "OK"),
        "findings": [finding["sentence"] for finding in findings],
    }


def _changed_dates(answer: Any) -> list[str]:
    """The dates on which a run has changed windows or pairs, as ISO texts."""
    dates = answer.get("dates") if isinstance(answer, Mapping) else None
    ranges = (dates or {}).get("windows") or (dates or {}).get("pairs") or ()
    return [day.isoformat() for first, last in ranges for day in _days(first, last)]


def _days(first: str, last: str) -> list[date]:
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [begin + timedelta(days=n) for n in range((end - begin).days + 1)]


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
