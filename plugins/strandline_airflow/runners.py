"""Where a command runs: as a plain process, by spark-submit, or on Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from strandline_airflow import settings
from strandline_airflow.engines import TOKEN
from strandline_airflow.outcomes import failure_of
from strandline_airflow.processes import PlainProcess
from strandline_airflow.provider import SUBMITS
from strandline_airflow.settings import CONNECTION, connection, spark_master
from strandline_airflow.submit import SparkOnKubernetes, SubmitSpec

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class Runner(Protocol):
    """Runs a command to its end."""

    def run(self, spec: SubmitSpec, context: Context) -> Any:
        """The JSON document of the command; None if it wrote none.

        Raises:
            AirflowFailException: wrong input or a failed audit, which a retry would not mend.
            AirflowException: every other failure.
        """

    def end(self) -> None:
        """End the command and its child processes."""


class ProcessRunner:
    """Runs a command as a child process, which starts its engine itself or connects to a server.

    On Apache Spark the master is that of the Spark connection, or else local. Spark's settings are
    not handed over: the command reads them from the pipeline's file.
    """

    def __init__(self, log: Logger, spark_connection: str | None = None) -> None:
        self._log = log
        self._spark_connection = spark_connection
        self._process = PlainProcess()

    def run(self, spec: SubmitSpec, context: Context) -> Any:
        """See Runner."""
        master = spark_master(self._spark_connection) if self._spark_connection else None
        options = [f"--master={master}"] if master else []
        argv = [str(settings.executable()), *spec.arguments, *options]
        secret = spec.environment.get(TOKEN)
        ended = self._process.run(argv, spec.environment, self._log, secret=secret)
        if ended.exit_code:
            raise failure_of(spec.title, ended.exit_code, ended.output, ended.answer)
        return ended.answer

    def end(self) -> None:
        """See Runner."""
        self._process.end()


def runner_of(
    engine: str, log: Logger, *, spark_connection: str, submit: Mapping[str, Any]
) -> Runner:
    """The runner of a command on an engine.

    On `spark` the connection's field `submit` chooses it; if the field is empty, it is spark-submit
    if the Spark provider is installed, and else a plain process.

    Args:
        engine: the engine's name.
        log: the task's logger.
        spark_connection: the id of the connection with Spark's master.
        submit: further arguments of the provider's operator.

    Raises:
        AirflowFailException: the value of `submit` is unknown, or its provider is not installed.
    """
    if engine != "spark":
        return ProcessRunner(log)
    found = connection()
    extra = found.extra_dejson if found else {}
    has_provider = _is_installed("airflow.providers.apache.spark")
    how = extra.get("submit") or ("spark-submit" if has_provider else "process")
    if how == "process":
        return ProcessRunner(log, spark_connection)
    if how == "spark-submit":
        _require(has_provider, how, "strandline[airflow-spark]")
        from strandline_airflow.spark_submit import SparkSubmitRunner  # noqa: PLC0415 - a provider

        return SparkSubmitRunner(log, spark_connection, submit)
    if how == "kubernetes":
        package = "apache-airflow-providers-cncf-kubernetes"
        _require(_is_installed("airflow.providers.cncf.kubernetes"), how, package)
        from strandline_airflow.kubernetes import KubernetesRunner  # noqa: PLC0415 - a provider

        return KubernetesRunner(log, _kubernetes(extra.get("kubernetes")), submit)
    problem = f"submit: {how!r} is none of {', '.join(SUBMITS)}"
    raise AirflowFailException(f"connection {CONNECTION!r}: {problem}")


def _kubernetes(given: Any) -> SparkOnKubernetes:
    """The cluster in the connection's extra `kubernetes`."""
    try:
        return SparkOnKubernetes(**(given or {}))
    except TypeError as error:
        names = ", ".join(SparkOnKubernetes.__dataclass_fields__)
        problem = f"kubernetes: {error}; it takes {names}, and needs an image"
        raise AirflowFailException(f"connection {CONNECTION!r}: {problem}") from None


def _require(installed: bool, how: str, package: str) -> None:
    if not installed:
        problem = f"submit: {how} needs a package that is not installed"
        raise AirflowFailException(f"connection {CONNECTION!r}: {problem}; install {package}")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is its parent
        return False
