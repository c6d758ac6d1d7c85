"""The operators of commands on an engine: Spark, Spark Connect or Sail."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import BaseOperator, Context
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline.errors import StrandlineError
from strandline.model.intervals import TimeRange
from strandline.spec import find_spec
from strandline.spec.values import parse_instant
from strandline.visible import visible
from strandline_airflow import settings
from strandline_airflow.alerts import OF_A_RUN, alert_findings, failure_callbacks
from strandline_airflow.announcing import announce, count_run
from strandline_airflow.engines import Runner, TaskEngine, engine_of_task, runner_of
from strandline_airflow.links import ReportLink
from strandline_airflow.outcomes import StagingIsStaleError
from strandline_airflow.processes import started
from strandline_airflow.requests import (
    APPROVAL,
    PREPARE,
    Rendered,
    approver_of,
    options_of,
    publish_request,
)
from strandline_airflow.submit import SubmitSpec


class StrandlineJobOperator(BaseOperator):
    """One `strandline` command on an engine.

    On `connect` and `sail` it is a child process of the task: the engine is a server, or starts
    inside the process. On `spark` it is one Spark application: by spark-submit, as a child process,
    or on Kubernetes (`engines.runner_of`). On every engine exit codes 2 (wrong input) and 3 (failed
    audit) fail the task without retries, other codes are retried, and the command's JSON document
    becomes the task's XCom.

    Args:
        command: the command, such as `advance` or `runs publish`.
        application_args: its arguments, or a callable that returns them when rendered.
        pipeline: the pipeline's name, or a callable that returns it when rendered.
        engine: `spark`, `connect` or `sail`, or a callable that returns it when rendered; if it is
            empty, the connection `strandline_engine`, the environment or the pipeline's file
            decides.
        conf: settings of the engine `spark`; the command itself reads the pipeline's settings.
        env_vars: further environment variables of the command's process.
        lake: the lake's root; None: from the connection or the environment.
        pipelines: the folder of the pipeline files; None: from the connection or the environment.
        conn_id: the connection with Spark's master.
        entry_point: the file that starts the Spark application; by default this environment's.
        archives: packed environments that Spark's executors unpack, as `file#folder`.
        submit: further arguments of the provider's operator that submits an application.
    """

    template_fields: Sequence[str] = (
        *("application_args", "conf", "env_vars", "pipeline", "engine"),
        *("entry_point", "archives", "submit"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = dict.fromkeys(
        ("application_args", "conf", "env_vars", "submit"), "json"
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
        env_vars: dict[str, str] | None = None,
        lake: str | None = None,
        pipelines: str | Path | None = None,
        conn_id: str = settings.SPARK_CONNECTION,
        entry_point: str = str(settings.ENTRY_POINT),
        archives: Sequence[str] = (),
        submit: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        callbacks = failure_callbacks(kwargs.pop("on_failure_callback", None))
        super().__init__(on_failure_callback=callbacks, **kwargs)
        self.command = command
        self.application_args = application_args
        self.pipeline = pipeline
        self.engine = engine
        self.conf = conf
        self.env_vars = env_vars
        self.lake = lake
        self.pipelines = None if pipelines is None else str(pipelines)
        self.conn_id = conn_id
        self.entry_point = entry_point
        self.archives = list(archives)
        self.submit = dict(submit or {})
        self._runner: Runner | None = None

    def execute(self, context: Context) -> Any:
        """Run the command to its end.

        Returns:
            The command's JSON document, or None.

        Raises:
            AirflowFailException: wrong input or a failed audit, which a retry would not mend.
            AirflowException: every other failure; the message ends with the command's error.
            AirflowSkipException: the day was processed before, and nothing has changed: DAGs that
                are scheduled on the pipeline's asset do not start.
        """
        pipeline, folder = self._name_of_pipeline(), self.pipelines
        engine = engine_of_task(str(self.engine), pipeline, pipelines=folder)
        self.log.info("The engine is %s", engine.name)
        spec = self._spec(engine)
        # a plain process of another engine finds out by itself, and starts no engine for it
        answer = self._repeated(engine) if engine.name == "spark" else None
        if answer is None:
            self._runner = runner_of(
                engine.name, self.log, spark_connection=self.conn_id, submit=self.submit
            )
            answer = self._runner.run(spec, context)
        if isinstance(answer, Mapping) and answer.get("status") == "already_processed":
            context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, answer)
            notes = [*map(visible, answer["notes"]), *_ways_to_compute_it(context)]
            raise AirflowSkipException("\n".join(notes))
        count_run(pipeline, answer)
        alert_findings(context, pipeline, self, answer, events=OF_A_RUN)
        announce(context["outlet_events"], self.outlets, self._name_of_pipeline(), answer)
        return answer

    def on_kill(self) -> None:
        """End the child process, or the Spark application: the JVM and the driver's Python."""
        if self._runner is not None:
            self._runner.end()

    def _spec(self, engine: TaskEngine) -> SubmitSpec:
        """The command with its environment, independent of where it runs."""
        return SubmitSpec(
            entry_point=self.entry_point,
            arguments=(*self.command.split(), *self._arguments()),
            run_id=options_of(self._arguments()).get("run-key", ""),
            archives=tuple(self.archives),
            conf=dict(self.conf or {}),  # type: ignore[arg-type] # Airflow has rendered it
            environment=self._environment(engine),
            is_short=engine.name == "spark" and self._is_short(),
        )

    def _arguments(self) -> list[str]:
        given: Any = self.application_args  # Airflow has rendered it
        return [str(argument) for argument in given or ()]

    def _environment(self, engine: TaskEngine) -> dict[str, str]:
        try:
            own = settings.job_environment(self.lake, self.pipelines)
        except StrandlineError as error:
            raise AirflowFailException(str(error)) from None
        return {**own, **engine.environment, **(self.env_vars or {})}

    def _is_short(self) -> bool:
        """Whether the run is too short for a JVM to warm up."""
        from strandline.lake.landing.results_log import log_of  # noqa: PLC0415
        from strandline.lake.landing.small_runs import is_small  # noqa: PLC0415 - without these
        from strandline.lake.ledger.ledger import Ledger  # noqa: PLC0415 - DAG files parse
        from strandline.lake.store.lake import Lake  # noqa: PLC0415
        from strandline.lake.store.places import is_uri  # noqa: PLC0415

        pipeline, where = self._name_of_pipeline(), settings.lake(self.lake)
        if pipeline is None or is_uri(where):
            return False
        try:
            spec = find_spec(settings.pipelines_folder(self.pipelines), pipeline)
            lake = Lake.at(where)
            log, state = log_of(lake, spec), Ledger(lake.pipeline(spec.pipeline)).state()
            options = options_of(self._arguments())
            edges = [parse_instant(options[one]) for one in ("start", "end") if one in options]
        except (StrandlineError, ValueError, OverflowError):
            return False  # the command will say what is wrong
        within = TimeRange(*edges) if len(edges) == 2 else None
        return log is not None and is_small(spec, state, log, within)

    def _repeated(self, engine: TaskEngine) -> Any:
        """The document of the published run that this command would repeat; None if there is none.

        It is asked without Spark, whose start takes longer than a small run.
        """
        asked = self._arguments()
        if self.pipeline is None or {"--dry-run", "--force"} & {*asked}:
            return None
        program = str(settings.executable())
        with started(program):
            done = subprocess.run(
                [program, *self.command.split(), *asked, "--repeat-only"],
                env={**os.environ, **self._environment(engine)},
                capture_output=True,
                text=True,
                check=False,
            )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def _name_of_pipeline(self) -> str | None:
        return self.pipeline if isinstance(self.pipeline, str) else None


class StrandlinePublishOperator(StrandlineJobOperator):
    """`strandline runs publish` for the run that another task has prepared.

    A prepared run becomes stale if its range is published by another run, rows land, or the rules
    change. A stale run that a person has approved fails the task, which names the tasks to clear.
    A stale run without approval is rebuilt and published in one go, since nobody has seen its
    preview.

    Args:
        again: the arguments of `strandline backfill` for this rebuild, or a callable that returns
            them when rendered.
        prepare: the id of the task that has prepared the run; in a task group with the group's.
        approval: the id of the task that has asked a person; there need not be one.
    """

    template_fields: Sequence[str] = (*StrandlineJobOperator.template_fields, "again")

    def __init__(
        self,
        *,
        again: Rendered | list[str],
        prepare: str = PREPARE,
        approval: str = APPROVAL,
        **kwargs: Any,
    ) -> None:
        arguments = publish_request(prepare, approval)
        super().__init__(command="runs publish", application_args=arguments, **kwargs)
        self.again = again
        self.prepare = prepare
        self.approval = approval

    def execute(self, context: Context) -> Any:
        """Publish the prepared run, or rebuild and publish its range.

        Returns:
            The JSON document of the command.

        Raises:
            AirflowFailException: the run is stale and was approved, or an error of
                StrandlineJobOperator.
        """
        try:
            return super().execute(context)
        except StagingIsStaleError as stale:
            if approver_of(context, self.approval) is not None:
                way_out = (
                    f"Clear the task {self.prepare} with all after it: it prepares and asks again."
                )
                raise AirflowFailException(f"{stale}\n{way_out}") from None
            self.log.warning("%s\nNobody was to approve it: the range is rebuilt.", stale)
        self.command, self.application_args = "backfill", self.again
        return super().execute(context)

    def _repeated(self, engine: TaskEngine) -> Any:
        """None: a prepared run is never a repetition."""
        return None


def _ways_to_compute_it(context: Context) -> list[str]:
    """How to compute again what was processed, where the DAG has the params for it."""
    if "force" not in context["params"]:
        return []
    return [
        "in Airflow: trigger strandline_reprocess with start and end of the range; or this DAG "
        "with the params to and force, which computes up to that midnight again"
    ]
