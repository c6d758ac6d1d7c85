"""The operator of what needs an engine: a `strandline` command on Spark, Spark Connect or Sail."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import AssetAlias, BaseHook, Context
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from strandline.errors import StrandlineError
from strandline.lake.local import cluster_settings, local_settings
from strandline.spec import find_spec
from strandline.visible import visible
from strandline_airflow import settings
from strandline_airflow.approvals import preview_text
from strandline_airflow.catalogue import published_asset
from strandline_airflow.engines import TOKEN, TaskEngine, engine_of_task
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import failure_of, result_of
from strandline_airflow.processes import LINES_KEPT, PlainProcess, end_tree
from strandline_airflow.requests import Rendered, requested_range


class StrandlineJobOperator(SparkSubmitOperator):
    """One `strandline` command on an engine.

    On `spark` it is one Spark application: connection, templates and cluster modes are the
    provider's. On `connect` and `sail` it is a plain process of the task, since the engine is
    elsewhere, or starts beside it. All else is the same: exit codes 2 (wrong input) and 3 (audit
    failed) fail the task for good, others are retried; what the command printed as JSON becomes
    the task's XCom.

    Args:
        command: as `strandline` has it; its last word names the script below `jobs/` that
            spark-submit is given.
        application_args: its arguments, or a callable that gives them when rendered.
        pipeline: the pipeline that it runs for, or a callable that says so when it is rendered.
        engine: `spark`, `connect` or `sail`, or a callable that says so when it is rendered; empty:
            as the connection `strandline_engine`, the environment or the pipeline's file says.
        conf: Spark's settings, of the engine `spark`; the command itself reads the pipeline's.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "pipeline", "engine")
    template_fields_renderers: ClassVar[dict[str, str]] = dict.fromkeys(
        ("application_args", "conf", "env_vars"), "json"
    )
    operator_extra_links = (ReportLink(),)
    ui_color = "#dcecf2"

    def __init__(
        self,
        *,
        command: str,
        application_args: Rendered | list[str],
        pipeline: Rendered | str | None = None,
        engine: Rendered | str = "",
        conf: Rendered | dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("conn_id", settings.SPARK_CONNECTION)
        kwargs.setdefault("name", f"strandline-{command.rsplit(maxsplit=1)[-1]}")
        kwargs.setdefault("env_vars", settings.job_environment())
        super().__init__(
            application=settings.script_of(command),
            application_args=application_args,  # type: ignore[arg-type] # Airflow calls it
            conf=conf,  # type: ignore[arg-type] # the same
            **kwargs,
        )
        self.command = command
        self.pipeline = pipeline
        self.engine = engine
        self._process = PlainProcess()

    def execute(self, context: Context) -> Any:
        """Run the command to its end.

        Returns:
            The JSON document that it printed, or null.

        Raises:
            AirflowFailException: wrong input or a failed audit: not to be tried again.
            AirflowException: it failed otherwise; the message ends with what it said.
            AirflowSkipException: the day was processed before, and the command has changed nothing:
                nobody who waits for the pipeline's tables is to start.
        """
        engine = engine_of_task(str(self.engine), self._name_of_pipeline())
        self.log.info("The engine is %s", engine.name)
        is_spark = engine.name == "spark"
        # a plain process finds out by itself, and starts no engine for it
        answer = self._repeated(engine) if is_spark else None
        if answer is None:
            output = self._submit(engine, context) if is_spark else self._call(engine)
            answer = result_of(output)
        if isinstance(answer, Mapping) and answer.get("status") == "already_processed":
            context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, answer)
            raise AirflowSkipException("\n".join(map(visible, answer["notes"])))
        self._announce(context)
        if preview := preview_text(answer):
            self.log.info("What would change:\n%s", preview)
        return answer

    def on_kill(self) -> None:
        """End the plain process, or the Spark application: a JVM and the driver's Python."""
        self._process.end()
        if self._hook is None:
            return
        if self._hook._submit_sp:
            # the JVM removes its temporary files; the driver's Python would outlive it
            end_tree(self._hook._submit_sp, ask_all=True)
        super().on_kill()

    def _call(self, engine: TaskEngine) -> list[str]:
        """The output of the command as a plain process."""
        program = [str(settings.executable()), *self.command.split()]
        arguments = [str(argument) for argument in self.application_args or ()]
        environment = {**settings.job_environment(), **engine.environment}
        secret = engine.environment.get(TOKEN)
        ended = self._process.run([*program, *arguments], environment, self.log, secret=secret)
        if ended.exit_code:
            raise failure_of(f"strandline {self.command}", ended.exit_code, ended.output)
        return ended.output

    def _submit(self, engine: TaskEngine, context: Context) -> list[str]:
        """The output of the command as a Spark application."""
        self._hook = hook = self._get_hook()
        hook._env_vars = {**(hook._env_vars or {}), **engine.environment}
        try:
            super().execute(context)
        except AirflowException:
            exit_code = hook._submit_sp.returncode if hook._submit_sp else None
            if not exit_code:
                raise
            # From None: the provider's own error repeats all that is in the log already.
            said = list(hook._last_submit_log_lines)
            raise failure_of(f"strandline {self.command}", exit_code, said) from None
        return list(hook._last_submit_log_lines)

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
        hook._last_submit_log_lines = deque(maxlen=LINES_KEPT)  # it keeps 20 by itself
        return hook

    def _is_short(self) -> bool:
        """Whether the run is over before a JVM would have warmed up."""
        from strandline.lake.ledger import Ledger  # noqa: PLC0415 - DAG files parse
        from strandline.lake.results_log import log_of  # noqa: PLC0415
        from strandline.lake.small_runs import is_small  # noqa: PLC0415 - without these
        from strandline.lake.store import Lake  # noqa: PLC0415

        pipeline = self._name_of_pipeline()
        if pipeline is None:
            return False
        try:
            spec = find_spec(settings.pipelines_folder(), pipeline)
            lake = Lake.at(settings.lake())
            log, state = log_of(lake, spec), Ledger(lake.pipeline(spec.pipeline)).state()
            within = requested_range(self.application_args or ())
        except StrandlineError:
            return False  # the command will say what is wrong
        return log is not None and is_small(spec, state, log, within)

    def _repeated(self, engine: TaskEngine) -> Any:
        """What `strandline` says of a run that would only repeat a published one; None: it is none.

        It is asked before Spark is started, which costs more than a small run.
        """
        asked = [str(argument) for argument in self.application_args or ()]
        if self.pipeline is None or {"--dry-run", "--force"} & {*asked}:
            return None
        done = subprocess.run(
            [str(settings.executable()), *self.command.split(), *asked, "--repeat-only"],
            env={**os.environ, **settings.job_environment(), **engine.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return result_of(done.stdout.splitlines()) if done.returncode == 0 else None

    def _name_of_pipeline(self) -> str | None:
        return self.pipeline if isinstance(self.pipeline, str) else None

    def _announce(self, context: Context) -> None:
        """Emit asset events of this pipeline's tables, if not emitted before."""
        pipeline = self._name_of_pipeline()
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias) and pipeline is not None:
                context["outlet_events"][outlet].add(published_asset(pipeline))
