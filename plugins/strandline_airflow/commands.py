"""The operators of what is quick: a `strandline` command as a plain process, without Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import BaseOperator, Context

from strandline_airflow import settings
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import failure_of
from strandline_airflow.params import ALL
from strandline_airflow.requests import Rendered


class _CommandOperator(BaseOperator):
    """A `strandline` command as a plain process: quick, without Spark."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: Rendered | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def on_kill(self) -> None:
        """End the process."""
        self._process.send_sigterm()  # type: ignore[no-untyped-call]

    def _call(self, *arguments: str) -> None:
        """Run the command to its end.

        Raises:
            AirflowException: as for StrandlineSparkOperator.
        """
        command = Path(sys.executable).with_name("strandline")
        done = self._process.run_command(
            [str(command), *arguments], env={**os.environ, **settings.job_environment()}
        )
        if done.exit_code:
            raise failure_of(command.name, done.exit_code, [done.output])

    @cached_property
    def _process(self) -> SubprocessHook:
        return SubprocessHook()


class StrandlineReportOperator(_CommandOperator):
    """`strandline report` for a pipeline."""

    operator_extra_links = (ReportLink(),)
    ui_color = "#f2ecd8"

    def execute(self, context: Context) -> str:
        """Make the report.

        Returns:
            Where it lies.

        Raises:
            AirflowException: as for StrandlineSparkOperator.
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
            AirflowException: as for StrandlineSparkOperator.
        """
        which = "--all" if self.pipeline == ALL else str(self.pipeline)
        self._call("maintain", which, *(["--dry-run"] if self.shows_only is True else []))
