"""What the asset events of a published run say, and which assets have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias

from strandline_airflow.catalogue import published_asset

_SAID = ("run_id", "kind", "range", "horizon", "dates", "completed")
"""What an event has of a run's answer, under the same names."""
_PUBLISHED = AssetAlias("strandline_published")
"""Of the event of a pipeline's tables as a whole, beside events of their partitions: such an event
starts no DAG that is scheduled on the tables as a whole."""
_COMPLETE = AssetAlias("strandline_complete")
_REPROCESSED = AssetAlias("strandline_reprocessed")


def complete_asset(pipeline: str) -> Asset:
    """The days of a pipeline whose slots are all closed: it has an event when there are more."""
    return Asset(name=f"strandline_{pipeline}_complete", uri=f"strandline://{pipeline}/complete")


def outlets_of(pipeline: str) -> list[Asset | AssetAlias]:
    """The outlets of a task that publishes a pipeline which its DAG names."""
    return [published_asset(pipeline), _PUBLISHED, _COMPLETE]


def outlets_of_any() -> list[Asset | AssetAlias]:
    """The outlets of a task that publishes the pipeline which a run of its DAG names."""
    return [_REPROCESSED, _COMPLETE]


def announce(events: Any, outlets: Sequence[Any], pipeline: str | None, answer: Any) -> None:
    """Let the asset events of a task say what a run has published.

    Args:
        events: Airflow's `outlet_events` of the task.
        outlets: of the task.
        pipeline: the name of the pipeline; None: the task is for none.
        answer: what the command has answered.
    """
    if pipeline is None:
        return
    said, days = event_of(answer), changed_dates(answer)
    for outlet in outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = said
            events[outlet].add_partitions(days)
        elif outlet == _REPROCESSED or (outlet == _PUBLISHED and days):
            events[outlet].add(published_asset(pipeline), extra=said)
        elif outlet == _COMPLETE and said.get("completed"):
            events[outlet].add(complete_asset(pipeline), extra=said)


def event_of(answer: Any) -> dict[str, Any]:
    """The `extra` of an event: the run, its range, its counts and the verdict on it."""
    if not isinstance(answer, Mapping):
        return {}
    said = {name: answer[name] for name in _SAID if answer.get(name) not in (None, [], {})}
    findings = answer.get("findings") or []
    return said | {
        "status": answer.get("status"),
        "counts": answer.get("diff") or {},
        "verdict": min((finding["severity"] for finding in findings), default="OK"),
        "findings": [finding["sentence"] for finding in findings],
    }


def changed_dates(answer: Any) -> list[str]:
    """The dates of the windows that a run has changed; none: it has changed none."""
    dates = answer.get("dates") if isinstance(answer, Mapping) else None
    ranges = (dates or {}).get("windows") or (dates or {}).get("pairs") or ()
    return [day.isoformat() for first, last in ranges for day in _days(first, last)]


def _days(first: str, last: str) -> list[date]:
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [begin + timedelta(days=n) for n in range((end - begin).days + 1)]
