"""The operators: a Strandline job as a Spark application, and the report as a plain process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import AssetAlias, BaseHook, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from strandline.errors import StrandlineError
from strandline.lake.local import cluster_settings, local_settings
from strandline.spec import find_spec
from strandline_airflow import settings
from strandline_airflow.approvals import preview_text
from strandline_airflow.catalogue import published_asset
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import failure_of, result_of
from strandline_airflow.requests import Rendered, requested_range

_LINES_KEPT = 20_000  # of which its JSON document may be most
_GRACE_SECONDS = 3  # Airflow itself waits 5 s before it kills the task


class StrandlineSparkOperator(SparkSubmitOperator):
    """One job script as one Spark application.

    Connection, templates and cluster modes are the provider's. Exit codes 2 (wrong input) and 3
    (audit failed) fail the task for good; others are retried. What the job printed as JSON becomes
    the task's XCom.

    Args:
        job: the script's name below `jobs/`.
        pipeline: the pipeline that it runs for, or a callable that says so when it is rendered.
        application_args: the script's arguments, or a callable that gives them when rendered.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "pipeline")
    template_fields_renderers: ClassVar[dict[str, str]] = dict.fromkeys(
        ("application_args", "conf", "env_vars"), "json"
    )
    operator_extra_links = (ReportLink(),)
    ui_color = "#dcecf2"

    def __init__(
        self,
        *,
        job: str,
        application_args: Rendered | list[str],
        pipeline: Rendered | str | None = None,
        conf: Rendered | dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("conn_id", settings.SPARK_CONNECTION)
        kwargs.setdefault("name", f"strandline-{Path(job).stem}")
        kwargs.setdefault("env_vars", settings.job_environment())
        super().__init__(
            application=str(settings.JOBS / job),
            application_args=application_args,  # type: ignore[arg-type] # Airflow calls it
            conf=conf,  # type: ignore[arg-type] # the same
            **kwargs,
        )
        self.job = job
        self.pipeline = pipeline

    def execute(self, context: Context) -> Any:
        """Run the job to its end.

        Returns:
            The JSON document that it printed, or null.

        Raises:
            AirflowFailException: wrong input or a failed audit: not to be tried again.
            AirflowException: it failed otherwise; the message ends with what it said.
        """
        repeated = self._repeated()
        if repeated is not None:
            self._announce(context)
            return repeated
        self._hook = hook = self._get_hook()
        try:
            super().execute(context)
        except AirflowException:
            exit_code = hook._submit_sp.returncode if hook._submit_sp else None
            if not exit_code:
                raise
            # From None: the provider's own error repeats all that is in the log already.
            raise failure_of(self.job, exit_code, list(hook._last_submit_log_lines)) from None
        self._announce(context)
        answer = result_of(list(hook._last_submit_log_lines))
        if preview := preview_text(answer):
            self.log.info("What would change:\n%s", preview)
        return answer

    def on_kill(self) -> None:
        """End the Spark application: its JVM, and the driver's Python, which would outlive it."""
        submit = self._hook._submit_sp if self._hook else None
        below: list[psutil.Process] = []
        if submit and submit.poll() is None:
            with suppress(psutil.NoSuchProcess):
                below = psutil.Process(submit.pid).children(recursive=True)
            _signal(below, "terminate")
            submit.terminate()  # so that Spark removes its temporary files
            # only its own Popen may wait for it: whoever else did would take its exit code away,
            # and the hook, which waits as well, would take the end for a success
            with suppress(subprocess.TimeoutExpired):
                submit.wait(timeout=_GRACE_SECONDS)
        psutil.wait_procs(below, timeout=_GRACE_SECONDS)
        super().on_kill()
        _signal(below, "kill")

    def _get_hook(self) -> SparkSubmitHook:
        try:
            BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            # The provider would go on with master `yarn`, and fail with a riddle.
            problem = (
                f"there is no connection {self._conn_id!r}: it names Spark's master; set "
                f"AIRFLOW_CONN_{self._conn_id.upper()} as scripts/env.sh does, or add it in the UI"
            )
            raise AirflowFailException(problem) from None
        hook = super()._get_hook()
        local = str(hook._connection["master"]).startswith("local")
        own = local_settings(short=self._is_short()) if local else cluster_settings()
        hook._conf = {**own, **hook._conf}
        hook._last_submit_log_lines = deque(maxlen=_LINES_KEPT)  # it keeps 20 by itself
        return hook

    def _is_short(self) -> bool:
        """Whether the run is over before a JVM would have warmed up."""
        from strandline.lake.results_log import log_of  # noqa: PLC0415 - DAG files parse
        from strandline.lake.small_runs import is_small  # noqa: PLC0415 - without these
        from strandline.lake.store import Lake  # noqa: PLC0415

        if not isinstance(self.pipeline, str):
            return False
        try:
            spec = find_spec(settings.pipelines_folder(), self.pipeline)
            lake = Lake.at(settings.lake())
            log = log_of(lake, spec)
            within = requested_range(self.application_args or ())
        except StrandlineError:
            return False  # the job will say what is wrong
        return log is not None and is_small(spec, lake, log, within)

    def _repeated(self) -> Any:
        """What `strandline` says of a run that would only repeat a published one; None: it is none.

        It is asked before Spark is started, which costs more than a small run.
        """
        command = Path(sys.executable).with_name("strandline")
        asked = [str(argument) for argument in self.application_args or ()]
        if self.pipeline is None or {"--dry-run", "--force"} & {*asked}:
            return None
        done = subprocess.run(
            [str(command), Path(self.job).stem, *asked, "--repeat-only"],
            env={**os.environ, **settings.job_environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        return result_of(done.stdout.splitlines()) if done.returncode == 0 else None

    def _announce(self, context: Context) -> None:
        """Tell the DAGs that wait for this pipeline's tables, where it was not known before."""
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias) and isinstance(self.pipeline, str):
                context["outlet_events"][outlet].add(published_asset(self.pipeline))


def _signal(processes: list[psutil.Process], how: str) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            getattr(process, how)()
