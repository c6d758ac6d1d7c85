"""A person says yes or no to what a run has prepared, with its preview before them."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline_airflow.requests import prepared_by


class PreviewApprovalOperator(ApprovalOperator):
    """Airflow's own approval of what the task `prepare` shows.

    It is skipped where the param `approval` is off, and where there is nothing to publish. A
    rejection skips what follows. If nobody answers in time it fails for good: asked again, nobody
    else would answer.
    """

    ui_color = "#f2ecd8"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject=subject_to_approve, body=preview_to_approve, **kwargs)

    def execute(self, context: Context) -> Any:
        """Ask, and wait.

        Raises:
            AirflowSkipException: nobody is to be asked.
        """
        if not context["params"]["approval"]:
            raise AirflowSkipException("the param `approval` is off: nobody is asked")
        if prepared_by(context)["status"] != "prepared":
            raise AirflowSkipException("nothing is prepared: nobody is asked")
        return super().execute(context)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Fail for good.

        Raises:
            AirflowFailException: always.
        """
        problem = "nobody has answered in time" if event["error_type"] == "timeout" else event
        raise AirflowFailException(f"{problem}; nothing is published")


def subject_to_approve(context: Context, **_: object) -> str:
    """What is to be approved, in a line: the pipeline, its range, and how many rows change."""
    prepared = prepared_by(context)
    within, counts = prepared.get("range") or {}, (prepared.get("diff") or {}).items()
    changes = [
        f"{sum(of_table.values()):,} rows of {table}"
        for table, of_table in counts
        if sum(of_table.values())
    ]
    range_text = f", {within['start']} to {within['end']}" if within else ""
    return f"Publish {prepared['pipeline']}{range_text}: {', '.join(changes) or 'nothing changes'}?"


def preview_to_approve(context: Context, **_: object) -> str:
    """The preview of what is prepared, as markdown, for whoever is to approve it."""
    prepared = prepared_by(context)
    text = preview_text(prepared)
    # a block of code, of which nothing inside is markup: its fence is longer than any within
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def preview_text(answer: Any) -> str:
    """The preview in what a job has answered, as `strandline` shows it; empty: it has none."""
    from strandline.cli.console import TextConsole  # noqa: PLC0415 - DAG files parse without it
    from strandline.cli.preview import parts  # noqa: PLC0415 - the same

    if not (isinstance(answer, Mapping) and answer.get("preview")):
        return ""
    page = io.StringIO()
    options: dict[str, Any] = {"highlight": False, "soft_wrap": True, "color_system": None}
    console = TextConsole(file=page, width=_WIDTH, **options)
    every = [*parts(answer["preview"])]
    summary, windows = every[:_BY_DAY_AND_REASON], every[_BY_DAY_AND_REASON:]
    for part in (*windows, *summary):  # what changes in value comes first
        console.print(part)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(lines) or "nothing changes: what is published is what this run computes"


_BY_DAY_AND_REASON = 2
"""The first parts of a preview: its days, and quarantine by reason."""
_WIDTH = 100
"""Signs of a line, as Airflow's page shows them; what is longer is wrapped."""
