"""The instants of a DAG run, from its params, its partition date or its data interval."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from strandline.errors import InputError
from strandline.model.intervals import text_of
from strandline.spec.values import parse_instant


def horizon_of(
    params: Mapping[str, Any],
    *,
    partition_date: datetime | None,
    data_interval_end: datetime | None,
    run_after: datetime | None = None,
) -> str:
    """The instant that a scheduled run advances to: ISO-8601, UTC.

    It is the param `to`; else the end of the partition's day; else the end of the data interval;
    else, for a run triggered by an asset, the time at which the run was triggered.

    Raises:
        InputError: `to` is not an instant, or there is none of these (a run that was triggered by
            hand may have no logical date).
    """
    if params.get("to") is not None:
        return _instant(params, "to")
    if partition_date is not None:
        day = partition_date.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return _text_of(day + timedelta(days=1))
    if data_interval_end is not None:
        return _text_of(data_interval_end)
    if run_after is not None:
        return _text_of(run_after)
    place, problem = "param to", "this run has neither a logical date nor a partition"
    raise InputError(place, problem, "trigger it with `to`, an instant to advance to")


def range_options(params: Mapping[str, Any]) -> list[str]:
    """The options of a backfill for the range, and the data cut-off, in a reprocess run's params.

    Raises:
        InputError: a param is missing or not an instant, or start is not before end.
    """
    start, end = _instant(params, "start"), _instant(params, "end")
    if parse_instant(start) >= parse_instant(end):
        place, problem = "param end", f"{end} is not after start, {start}"
        raise InputError(place, problem, "give a later end")
    options = [f"--start={start}", f"--end={end}"]
    if params.get("as_of") is not None:
        options.append(f"--as-of={_instant(params, 'as_of')}")
    return options


def pipeline_of(params: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """The pipeline's name in the params.

    Raises:
        InputError: there is no such pipeline.
    """
    name = params.get("pipeline")
    if not isinstance(name, str) or name not in known:
        place, there_are = "param pipeline", ", ".join(known) or "none"
        raise InputError(place, f"{name!r} is no pipeline", f"there are: {there_are}")
    return name


def _instant(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    try:
        return text_of(parse_instant(value))
    except (ValueError, OverflowError) as error:
        place = f"param {name}"
        raise InputError(place, f"{value!r} is {error}") from None


def _text_of(timestamp: datetime) -> str:
    # As a text: Airflow's are pendulum's, which cannot all be subtracted and divided.
    return text_of(parse_instant(timestamp.isoformat()))
