"""The one schema of every DAG's parameters: for the form, the API, `airflow backfill` and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from strandline.lake.sessions.choice import ENGINES

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
