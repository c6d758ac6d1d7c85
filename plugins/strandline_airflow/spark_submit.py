"""A command as a Spark application, submitted by the Spark provider's operator."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

from strandline.lake.local import DRIVERS_PYTHON, cluster_settings, local_settings
from strandline_airflow import settings
from strandline_airflow.answers_in_lake import AnswerInLake
from strandline_airflow.outcomes import Answer, answer_file, exit_code_of, failure_of
from strandline_airflow.processes import LINES_KEPT, end_tree
from strandline_airflow.submit import SubmitSpec, as_spark_submit

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_PYTHON = "PYSPARK_DRIVER_PYTHON"


class SparkSubmitRunner:
    """Runs a command by spark-submit; connections and deploy modes are the provider's."""

    def __init__(self, log: Logger, spark_connection: str, submit: Mapping[str, Any]) -> None:
        self._log = log
        self._spark_connection = spark_connection
        self._submit = submit
        self.operator: _NestedSparkSubmitOperator | None = None

    def run(self, spec: SubmitSpec, context: Context) -> Any:
        """See Runner."""
        self._require_connection()
        arguments: dict[str, Any] = {"conn_id": self._spark_connection, **as_spark_submit(spec)}
        self.operator = _NestedSparkSubmitOperator(
            task_id="submit", is_short=spec.is_short, **{**arguments, **self._submit}
        )
        hook = self.operator.build_hook()
        is_elsewhere = hook._connection["deploy_mode"] == "cluster"
        with answer_file() as file:
            answer = AnswerInLake(spec, self._log) if is_elsewhere else file
            hook._env_vars = {**(hook._env_vars or {}), **answer.environment}
            self._submit_and_wait(hook, answer, spec, context)
            return answer.read()

    def _submit_and_wait(
        self, hook: SparkSubmitHook, answer: Answer, spec: SubmitSpec, context: Context
    ) -> None:
        """Submit the application, and wait for its end.

        Raises:
            AirflowException: see Runner.
        """
        try:
            # unwrapped as by Airflow's task runner: else Airflow warns of a nested operator
            inspect.unwrap(SparkSubmitOperator.execute)(self.operator, context)
        except AirflowException:
            document = answer.read()
            of_submit = hook._submit_sp.returncode if hook._submit_sp else None
            exit_code = exit_code_of(document) or of_submit
            if not exit_code:
                raise
            # From None: the provider's own error repeats all that is in the log already.
            output = list(hook._last_submit_log_lines)
            raise failure_of(spec.title, exit_code, output, document) from None

    def end(self) -> None:
        """End the Spark application: the JVM and the driver's Python."""
        hook = self.operator._hook if self.operator else None
        if self.operator is None or hook is None:
            return
        if hook._submit_sp:
            # the JVM removes its temporary files; the driver's Python would outlive it
            end_tree(hook._submit_sp, ask_all=True)
        self.operator.on_kill()

    def _require_connection(self) -> None:
        try:
            BaseHook.get_connection(self._spark_connection)
        except AirflowNotFoundException:
            # The provider would go on with master `yarn`, and fail with an unrelated error.
            problem = (
                f"there is no connection {self._spark_connection!r}: it names Spark's master; set "
                f"AIRFLOW_CONN_{self._spark_connection.upper()}, such as "
                '{"conn_type": "spark", "host": "local[*]"}, or add it in the UI'
            )
            raise AirflowFailException(problem) from None


class _NestedSparkSubmitOperator(SparkSubmitOperator):
    """The provider's operator with the command's settings, executed inside another operator."""

    def __init__(self, *, is_short: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._is_short = is_short

    def build_hook(self) -> SparkSubmitHook:
        """The provider's hook with Strandline's defaults; the pipeline and the connection win."""
        self._hook = hook = self._get_hook()
        master = str(hook._connection["master"])
        defaults = local_settings(short=self._is_short) if _is_local(master) else cluster_settings()
        if _is_local(master) or master.startswith("spark://"):  # the driver is a child of the task
            python = _driver_python()
            defaults |= {DRIVERS_PYTHON: python}
            hook._env_vars = {**_environment_of_driver(python), **(hook._env_vars or {})}
        if master == "yarn" and not getattr(hook, "_yarn_track_via_rm_api", False):
            self.durable = False  # only this API finds the application of an earlier try
        hook._conf = {**defaults, **(hook._conf or {})}
        hook._last_submit_log_lines = deque(maxlen=LINES_KEPT)  # it keeps 20 by itself
        return hook


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _environment_of_driver(python: str) -> dict[str, str]:
    """PATH, with this environment's `spark-submit` last, and the Python that starts the driver."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(_bin_folder())])
    return {"PATH": path, _PYTHON: python}


def _driver_python() -> str:
    """The driver's Python: PYSPARK_DRIVER_PYTHON, else the Python beside the `strandline` command.

    It is given to Spark as a setting as well, since Spark prefers a pipeline's setting of the
    workers' Python to the environment variable.
    """
    installed = _bin_folder() / "python"
    return os.environ.get(_PYTHON) or (str(installed) if installed.exists() else "python3")


def _bin_folder() -> Path:
    return settings.executable().parent
