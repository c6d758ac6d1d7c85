"""The operators of commands without an engine, which run as a plain process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline.errors import InputError
from strandline.lake.store.places import is_uri
from strandline_airflow import settings
from strandline_airflow.alerts import alert_findings
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import NothingHasRunError, failure_of
from strandline_airflow.params import ALL
from strandline_airflow.processes import PlainProcess
from strandline_airflow.requests import Rendered


class _ProcessOperator(BaseOperator):
    """A program as a plain process.

    Args:
        lake: the lake's root; None: from the connection or the environment.
        pipelines: the folder of the pipeline files; None: from the connection or the environment.
    """

    def __init__(
        self, *, lake: str | None = None, pipelines: str | Path | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.lake = lake
        self.pipelines = None if pipelines is None else str(pipelines)

    def on_kill(self) -> None:
        """End the process and its child processes."""
        self._process.end()

    def _run(self, name: str, *command: str) -> Any:
        """Run a program to its end.

        Returns:
            The JSON document that it wrote, or null.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        try:
            environment = settings.job_environment(self.lake, self.pipelines)
        except InputError as error:
            raise AirflowFailException(str(error)) from None
        ended = self._process.run(command, environment, self.log)
        if ended.exit_code:
            raise failure_of(name, ended.exit_code, ended.output, ended.answer)
        return ended.answer

    @cached_property
    def _process(self) -> PlainProcess:
        return PlainProcess()


class StrandlineScriptOperator(_ProcessOperator):
    """A script that needs no engine.

    Args:
        script: its path.
        arguments: its arguments.
    """

    ui_color = "#dcecf2"

    def __init__(self, *, script: str | Path, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.script = str(script)
        self.arguments = list(arguments)

    def execute(self, context: Context) -> None:
        """Run it to its end.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        self._run(Path(self.script).name, sys.executable, self.script, *self.arguments)


class _CommandOperator(_ProcessOperator):
    """A `strandline` command for a pipeline."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: Rendered | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def _call(self, *arguments: str) -> Any:
        program = settings.executable()
        return self._run(program.name, str(program), *arguments)


class StrandlineReportOperator(_CommandOperator):
    """`strandline report` for a pipeline."""

    operator_extra_links = (ReportLink(),)
    ui_color = "#f2ecd8"

    def execute(self, context: Context) -> str:
        """Make the report.

        Returns:
            The path of its file.

        Raises:
            AirflowException: as for StrandlineJobOperator.
            AirflowSkipException: the lake is on an object store, where no folder holds a report.
        """
        file = settings.report_file(str(self.pipeline), self.lake)
        if is_uri(file):
            problem = "a report is a file of a folder, and the lake is on an object store"
            raise AirflowSkipException(f"{problem}: the page Strandline makes it when it is opened")
        self._call("report", str(self.pipeline))
        return file


class StrandlineMaintainOperator(_CommandOperator):
    """`strandline maintain` for one pipeline, or for all pipelines that have run (`ALL`).

    Args:
        shows_only: whether it is a dry run, or a callable that returns this when rendered.
    """

    template_fields: Sequence[str] = ("pipeline", "shows_only")
    ui_color = "#e3ecdc"

    def __init__(self, *, shows_only: Rendered | bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shows_only = shows_only

    def execute(self, context: Context) -> None:
        """Run the upkeep; the log lists its steps and their sizes.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        which = "--all" if self.pipeline == ALL else str(self.pipeline)
        self._call("maintain", which, *(["--dry-run"] if self.shows_only is True else []))


class StrandlineWatchOperator(_CommandOperator):
    """Sends the alerts of a pipeline that has become stale, to the receivers in its file.

    It is stale if `strandline status` finds that arrivals or runs are missing, or if yesterday is
    not processed; one that has never run is stale, too.
    """

    ui_color = "#f2dcdc"

    def execute(self, context: Context) -> None:
        """Read the status, and send an alarm for each new finding.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        try:
            status = self._call("status", str(self.pipeline), "--json")
        except NothingHasRunError:
            status = {}
        found = with_unprocessed(status, datetime.now(UTC))
        alert_findings(context, str(self.pipeline), self, found, events=("stale",))


def with_unprocessed(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The findings of a status, with one more if the last full day is not processed.

    Their range begins where processing has ended, and ends with the last midnight; there is none if
    nothing is missing, or nothing has ever been processed.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    until, findings = status.get("processed_up_to"), list(status.get("findings") or ())
    is_known = any(finding["name"] == "schedule" for finding in findings)
    is_behind = until is None or datetime.fromisoformat(until) < midnight
    if is_behind and not is_known:
        reached = "nothing is processed" if until is None else f"processed up to {until}"
        sentence = f"{reached}, and it is {now:%Y-%m-%dT%H:%MZ}"
        findings.append({"name": "schedule", "severity": "warning", "sentence": sentence})
    found: dict[str, Any] = {"findings": findings}
    if is_behind and until is not None:
        found["range"] = {"start": until, "end": f"{midnight:%Y-%m-%dT%H:%M:%SZ}"}
    return found
