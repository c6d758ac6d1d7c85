"""The engine of a task, and where its command runs: a plain process, spark-submit, Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import Connection, Context
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.log import mask_secret

from strandline.errors import InputError, StrandlineError
from strandline.lake.sessions.choice import ENGINE, REMOTE, TRUST, choose
from strandline.spec import find_spec
from strandline.spec.common import EngineName
from strandline_airflow import settings
from strandline_airflow.outcomes import failure_of
from strandline_airflow.processes import PlainProcess
from strandline_airflow.provider import SUBMITS
from strandline_airflow.settings import CONNECTION, connection, spark_master
from strandline_airflow.submit import SparkOnKubernetes, SubmitSpec

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable from which PySpark reads the token of a Spark Connect server."""
_PORT = 15002
"""Spark Connect's port if the connection has none."""


@dataclass(frozen=True)
class TaskEngine:
    """The engine of a task.

    Attributes:
        name: `spark`, `connect` or `sail`.
        environment: environment variables of its process; they may hold a token.
    """

    name: EngineName
    environment: Mapping[str, str] = field(repr=False)


def engine_of_task(
    asked: str, pipeline: str | None, *, pipelines: str | Path | None = None
) -> TaskEngine:
    """The engine of a task.

    Args:
        asked: the param `engine`; if it is empty, the connection decides, else the environment,
            else the pipeline's file, else it is Spark.
        pipeline: the pipeline's name, if the task belongs to one.
        pipelines: the folder of its file; None: from the connection or the environment.

    Raises:
        AirflowFailException: the engine is unknown, or its server has no address.
    """
    of_connection = _set_by_connection()
    environment = {**os.environ, **of_connection}
    try:
        choice = choose(
            environment, engine=asked or None, of_pipeline=_of_file(pipeline, pipelines)
        )
    except InputError as error:
        way_out = f"in Airflow the connection {CONNECTION!r} sets it"
        raise AirflowFailException(f"{error}; {way_out}") from None
    handed_on: dict[str, str] = {ENGINE: choice.name}
    if choice.name == "sail":
        handed_on[TRUST] = str(int(choice.trust_this_machine))
    if choice.remote is not None:
        handed_on[REMOTE] = choice.remote
        handed_on |= {name: of_connection[name] for name in (_TOKEN,) if name in of_connection}
    return TaskEngine(choice.name, handed_on)


def _set_by_connection() -> dict[str, str]:
    """The fields of the connection under the names of their environment variables."""
    found = connection()
    if found is None:
        return {}
    extra = found.extra_dejson
    variables = {
        ENGINE: extra.get("engine"),
        REMOTE: extra.get("remote") or _address(found, use_ssl=extra.get("use_ssl")),
        TRUST: extra.get("trust_this_machine"),
        _TOKEN: found.password or extra.get("token"),
    }
    if variables[_TOKEN]:
        mask_secret(variables[_TOKEN])
    return {name: str(value) for name, value in variables.items() if value not in (None, "")}


def _address(connection: Connection, *, use_ssl: object) -> str | None:
    """The address `sc://host:port` of a connection; None if it has no host."""
    if not connection.host:
        return None
    address = f"sc://{connection.host}:{connection.port or _PORT}"
    return f"{address}/;use_ssl=true" if str(use_ssl).lower() in {"true", "1"} else address


def _of_file(pipeline: str | None, pipelines: str | Path | None) -> EngineName | None:
    """The engine named in a pipeline's file; None if it names none or cannot be read."""
    if pipeline is None:
        return None
    try:
        return find_spec(settings.pipelines_folder(pipelines), pipeline).engine
    except StrandlineError:
        return None  # the command will say what is wrong


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
        secret = spec.environment.get(_TOKEN)
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
        return util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is its parent
        return False
