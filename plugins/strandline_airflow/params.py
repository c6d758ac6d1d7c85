"""The params of every DAG: their schema, and the instants of a DAG run that they give.

The schema serves the form, the API, `airflow backfill` and tests. Without the param, the instant is
that of the run's partition date or data interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param

from strandline.errors import InputError
from strandline.lake.sessions.choice import ENGINES
from strandline.model.intervals import text_of
from strandline.spec.values import parse_instant

ALL = "(all)"
"""The choice of all pipelines in a form; no pipeline can have this name."""

# In Python `$` also stands before a last line feed; `\\Z` is no JavaScript, which the form speaks.
_END = r"(?![\s\S])"
_INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?" + _END
)
# Airflow's form has a date picker for this format. Its server leaves values to `pattern`, unless
# the package rfc3339-validator is installed: then only times with seconds and an offset are taken.
_PICKED = "date-time"
_INSTANT_HELP = "ISO-8601, such as 2013-02-10T06:00:00Z or 2013-02-10; a date is midnight UTC"
_DURATION = r"^(0|[1-9][0-9]*)(ms|s|m|h|d)" + _END
# One line without control characters: it is read in tables, logs and a terminal.
_REASON = r"^\S[^\x00-\x1f\x7f]*\S" + _END


def daily_params() -> dict[str, Param]:
    """The params of a daily DAG; all are optional, since the data interval gives the horizon."""
    return {
        "to": _optional_instant(
            "Advance to",
            "The last midnight not after this instant is advanced to, in place of the end of the "
            f"data interval. {_INSTANT_HELP}",
        ),
        "allow_removals": _allow_removals(),
        "force": _force(),
        "engine": _engine(),
    }


def reprocess_params(pipelines: Sequence[str]) -> dict[str, Param]:
    """The params of the reprocess DAG, by the sections of its form."""
    only = pipelines[0] if len(pipelines) == 1 else None
    return {
        **_section(
            "What to rebuild, and why",
            pipeline=_pipeline(pipelines, default=only),
            start=_instant("Start", f"The first window start to rebuild. {_INSTANT_HELP}"),
            end=_instant("End", f"The end of the range, not itself rebuilt. {_INSTANT_HELP}"),
            reason=Param(
                type="string",
                title="Reason",
                description="Why history is rebuilt; kept in the ledger for those who ask later",
                minLength=5,
                maxLength=500,
                pattern=_REASON,
            ),
        ),
        **_section(
            "By which rules",
            as_of=_optional_instant(
                "As of",
                "Know only what had arrived before this instant. Empty: all that has arrived. "
                f"{_INSTANT_HELP}",
            ),
            allowed_lateness=_optional_duration(
                "Allowed lateness", "Of this run alone, in place of the pipeline's file"
            ),
            bound=_optional_duration(
                "Bound", "The watermark's, of this run alone, in place of the pipeline's file"
            ),
        ),
        **_section(
            "What becomes of it",
            preview=_switch(
                "Preview only",
                "Show what would change, in the log of the task prepare; keep and publish nothing",
            ),
            approval=_switch(
                "Approval",
                "Ask a person before anything is published, with the preview before them",
            ),
            allow_removals=_allow_removals(),
            recreate=_switch(
                "Recreate",
                "Publish in place of all that was published before, also by another window or key; "
                "what lies outside the range is then gone",
            ),
        ),
        **_section("How it runs", engine=_engine(), force=_force()),
    }


def report_params(pipelines: Sequence[str]) -> dict[str, Param]:
    """The params of the report DAG: one pipeline, or all of them."""
    return {"pipeline": _pipeline([ALL, *pipelines], default=ALL)}


def maintain_params(pipelines: Sequence[str]) -> dict[str, Param]:
    """The params of the upkeep DAG: one pipeline or all that have run, and whether to dry-run."""
    return {
        "pipeline": _pipeline([ALL, *pipelines], default=ALL),
        "dry_run": _switch("Dry run", "Only show, in the task's log, what would be done"),
    }


def _section(title: str, **params: Param) -> dict[str, Param]:
    """Params of one section of the form, under its title."""
    for param in params.values():
        param.schema["section"] = title
    return params


def _switch(title: str, description: str) -> Param:
    return Param(False, type="boolean", title=title, description=description)


def _allow_removals() -> Param:
    return _switch(
        "Allow removals",
        "Publish even if more of the range's published windows go than quality.max_removed_share "
        "allows",
    )


def _force() -> Param:
    return _switch(
        "Force",
        "Compute also what would only repeat a published run (same request, same rules, same "
        "landed rows), or was processed before",
    )


def _engine() -> Param:
    # null and no empty text: Airflow's form takes that for a value that is missing
    return Param(
        None,
        type=["null", "string"],
        title="Engine",
        description="What computes it; each publishes the same rows",
        enum=[None, *ENGINES],
        values_display={
            "null": "as the connection, the environment or the pipeline says",
            "spark": "Apache Spark, by spark-submit",
            "connect": "Apache Spark behind a Spark Connect server",
            "sail": "Sail, beside the task and without Java",
        },
    )


def _pipeline(names: Sequence[str], *, default: str | None) -> Param:
    schema: dict[str, Any] = {"type": "string", "title": "Pipeline", "enum": list(names)}
    description = "A file of the folder pipelines/ defines it"
    if default is None:
        return Param(description=description, **schema)
    return Param(default, description=description, **schema)


def _instant(title: str, description: str) -> Param:
    return Param(
        type="string",
        title=title,
        description=description,
        pattern=_INSTANT,
        format=_PICKED,
    )


def _optional_instant(title: str, description: str) -> Param:
    return _optional(title, description, pattern=_INSTANT, format=_PICKED)


def _optional_duration(title: str, description: str) -> Param:
    help_ = f"{description}. Such as 90m or 2h; empty: what the file says"
    return _optional(title, help_, pattern=_DURATION)


def _optional(title: str, description: str, **schema: Any) -> Param:
    return Param(None, type=["null", "string"], title=title, description=description, **schema)


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
        return _instant_in(params, "to")
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
    start, end = _instant_in(params, "start"), _instant_in(params, "end")
    if parse_instant(start) >= parse_instant(end):
        place, problem = "param end", f"{end} is not after start, {start}"
        raise InputError(place, problem, "give a later end")
    options = [f"--start={start}", f"--end={end}"]
    if params.get("as_of") is not None:
        options.append(f"--as-of={_instant_in(params, 'as_of')}")
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


def _instant_in(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    try:
        return text_of(parse_instant(value))
    except (ValueError, OverflowError) as error:
        place = f"param {name}"
        raise InputError(place, f"{value!r} is {error}") from None


def _text_of(timestamp: datetime) -> str:
    # As a text: Airflow's are pendulum's, which cannot all be subtracted and divided.
    return text_of(parse_instant(timestamp.isoformat()))
