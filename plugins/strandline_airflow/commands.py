"""The operators of what is quick: a plain process, without any engine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from airflow.sdk import BaseOperator, Context

from strandline_airflow import settings
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import failure_of
from strandline_airflow.params import ALL
from strandline_airflow.processes import PlainProcess
from strandline_airflow.requests import Rendered


class _ProcessOperator(BaseOperator):
    """A program as a plain process."""

    def on_kill(self) -> None:
        """End the process and whatever it has started."""
        self._process.end()

    def _run(self, name: str, *command: str) -> None:
        """Run a program to its end.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        ended = self._process.run(command, settings.job_environment(), self.log)
        if ended.exit_code:
            raise failure_of(name, ended.exit_code, ended.output)

    @cached_property
    def _process(self) -> PlainProcess:
        return PlainProcess()


class StrandlineScriptOperator(_ProcessOperator):
    """A script that needs no engine.

    Args:
        script: its name below `jobs/`.
        arguments: its arguments.
    """

    ui_color = "#dcecf2"

    def __init__(self, *, script: str, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.script = script
        self.arguments = list(arguments)

    def execute(self, context: Context) -> None:
        """Run it to its end.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        path = str(settings.JOBS / self.script)
        self._run(self.script, sys.executable, path, *self.arguments)


class _CommandOperator(_ProcessOperator):
    """A `strandline` command for a pipeline."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: Rendered | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def _call(self, *arguments: str) -> None:
        program = settings.executable()
        self._run(program.name, str(program), *arguments)


class StrandlineReportOperator(_CommandOperator):
    """`strandline report` for a pipeline."""

    operator_extra_links = (ReportLink(),)
    ui_color = "#f2ecd8"

    def execute(self, context: Context) -> str:
        """Make the report.

        Returns:
            Where it lies.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        self._call("report", str(self.pipeline))
        return settings.report_file(str(self.pipeline))


class StrandlineMaintainOperator(_CommandOperator):
    """`strandline maintain` for a pipeline, or for all that have run (`ALL`).

    Args:
        shows_only: whether nothing is done but shown, or a callable that says so when rendered.
    """

    template_fields: Sequence[str] = ("pipeline", "shows_only")
    ui_color = "#e3ecdc"

    def __init__(self, *, shows_only: Rendered | bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shows_only = shows_only

    def execute(self, context: Context) -> None:
        """Maintain; what is done, and measured, is in the log.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        which = "--all" if self.pipeline == ALL else str(self.pipeline)
        self._call("maintain", which, *(["--dry-run"] if self.shows_only is True else []))
