"""The approval of a prepared run by a person, who sees a preview of its changes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline.visible import number_of
from strandline_airflow.alerts import failure_callbacks
from strandline_airflow.requests import PREPARE, Rendered, prepared_by


class PreviewApprovalOperator(ApprovalOperator):
    """Airflow's approval operator, whose body is the preview of a prepared run.

    It is skipped if the DAG has the param `approval` and it is off, or if there is nothing to
    publish. A rejection skips the downstream tasks. Without an answer in time the task fails
    without retries, with an alert.

    Args:
        prepare: the id of the task that has prepared the run; in a task group with the group's.
        pipelines: the folder of the pipeline files; None: from the connection or the environment.
    """

    template_fields: Sequence[str] = ("pipeline", *ApprovalOperator.template_fields)
    ui_color = "#f2ecd8"

    def __init__(
        self, *, prepare: str = PREPARE, pipelines: str | Path | None = None, **kwargs: Any
    ) -> None:
        super().__init__(
            subject=subject_to_approve(prepare),
            body=preview_to_approve(prepare),
            on_failure_callback=failure_callbacks(kwargs.pop("on_failure_callback", None)),
            **kwargs,
        )
        self.prepare = prepare
        self.pipeline = pipeline_to_approve(prepare)
        self.pipelines = None if pipelines is None else str(pipelines)

    def execute(self, context: Context) -> Any:
        """Ask, and defer until the answer.

        Raises:
            AirflowSkipException: the param `approval` is off, or nothing is prepared.
        """
        if not context["params"].get("approval", True):
            raise AirflowSkipException("the param `approval` is off: nobody is asked")
        if prepared_by(context, self.prepare)["status"] != "prepared":
            raise AirflowSkipException("nothing is prepared: nobody is asked")
        return super().execute(context)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Fail without retries.

        Raises:
            AirflowFailException: always.
        """
        problem = "nobody has answered in time" if event["error_type"] == "timeout" else event
        raise AirflowFailException(f"{problem}; nothing is published")


def pipeline_to_approve(prepare: str) -> Rendered:
    """The pipeline's name of the run that a task has prepared."""
    return lambda context, **_: prepared_by(context, prepare)["pipeline"]


def subject_to_approve(prepare: str) -> Rendered:
    """One line to approve: the pipeline, its range, and the rows that change, results first."""

    def subject(context: Context, **_: object) -> str:
        prepared = prepared_by(context, prepare)
        within, counts = prepared.get("range") or {}, (prepared.get("diff") or {})
        changes = [
            f"{number_of(rows, 'row')} of {table}"
            for table in sorted(counts, key=lambda table: table not in _RESULTS)
            if (rows := sum(counts[table].values()))
        ]
        of_range = f", {within['start']} to {within['end']}" if within else ""
        what = ", ".join(changes) or "nothing changes"
        return f"Publish {prepared['pipeline']}{of_range}: {what}?"

    return subject


def preview_to_approve(prepare: str) -> Rendered:
    """The preview of the run that a task has prepared, as a markdown block of code."""

    def body(context: Context, **_: object) -> str:
        text = preview_text(prepared_by(context, prepare))
        # a block of code, of which nothing inside is markup: its fence is longer than any within
        longest = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}text\n{text}\n{fence}"

    return body


def preview_text(answer: Any) -> str:
    """The preview of a JSON document as the command prints it; empty if it has none.

    Windows whose values change come first.
    """
    from strandline.cli.console import TextConsole  # noqa: PLC0415 - DAG files parse without it
    from strandline.cli.preview import parts  # noqa: PLC0415 - the same

    if not (isinstance(answer, Mapping) and answer.get("preview")):
        return ""
    page = io.StringIO()
    options: dict[str, Any] = {"highlight": False, "color_system": None}
    console = TextConsole(file=page, width=_WIDTH, **options)
    every = [*parts(answer["preview"])]
    summary, windows = every[:_BY_DAY_AND_REASON], every[_BY_DAY_AND_REASON:]
    for part in (*windows, *summary):  # what changes in value comes first
        console.print(part)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(lines) or "nothing changes: the published rows are those of this run"


_RESULTS = ("windows", "pairs")
_BY_DAY_AND_REASON = 2
"""The first parts of a preview: its days, and quarantine by reason."""
_WIDTH = 86
"""The width of a line in characters: Airflow's page shows as many on a screen of 1,280 pixels."""
