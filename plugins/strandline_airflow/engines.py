"""The engine of a task, and the environment variables that name it to the task's process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.log import mask_secret

from strandline.errors import InputError, StrandlineError
from strandline.lake.sessions.choice import ENGINE, REMOTE, TRUST, choose
from strandline.spec import find_spec
from strandline.spec.common import EngineName
from strandline_airflow import settings
from strandline_airflow.settings import CONNECTION, connection

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
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
        handed_on |= {name: of_connection[name] for name in (TOKEN,) if name in of_connection}
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
        TOKEN: found.password or extra.get("token"),
    }
    if variables[TOKEN]:
        mask_secret(variables[TOKEN])
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
