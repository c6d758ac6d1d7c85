"""The asset events of a published run: which assets get one, and its `extra`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias

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


def complete_asset(pipeline: str) -> Asset:
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
    event, days = event_of(answer), changed_dates(answer)
    for outlet in outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = event
            events[outlet].add_partitions(days)
        elif outlet == _REPROCESSED or (outlet == _PUBLISHED and days):
            events[outlet].add(published_asset(pipeline), extra=event)
        elif outlet == _COMPLETE and event.get("completed"):
            events[outlet].add(complete_asset(pipeline), extra=event)


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


def changed_dates(answer: Any) -> list[str]:
    """The dates on which a run has changed windows or pairs, as ISO texts."""
    dates = answer.get("dates") if isinstance(answer, Mapping) else None
    ranges = (dates or {}).get("windows") or (dates or {}).get("pairs") or ()
    return [day.isoformat() for first, last in ranges for day in _days(first, last)]


def _days(first: str, last: str) -> list[date]:
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [begin + timedelta(days=n) for n in range((end - begin).days + 1)]
