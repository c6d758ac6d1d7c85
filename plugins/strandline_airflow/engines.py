"""Which engine a task runs on, and how its process gets to know."""

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
from strandline_airflow.connection import CONNECTION, connection

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable that PySpark reads a server's token from."""
_PORT = 15002
"""Of Spark Connect, where a connection does not say another."""


@dataclass(frozen=True)
class TaskEngine:
    """The engine of a task.

    Attributes:
        name: of the engine.
        environment: what its process reads beside the task's own; it may hold a token.
    """

    name: EngineName
    environment: Mapping[str, str] = field(repr=False)


def engine_of_task(
    asked: str, pipeline: str | None, *, pipelines: str | Path | None = None
) -> TaskEngine:
    """The engine of a task.

    Args:
        asked: by the param `engine`; empty: what the connection says, else the environment, else
            the pipeline's file, else Spark.
        pipeline: the name of the pipeline, if the task is for one.
        pipelines: the folder of its file; None: as for every task.

    Raises:
        AirflowFailException: there is no such engine, or no address of its server.
    """
    said = _said_by_connection()
    environment = {**os.environ, **said}
    try:
        choice = choose(
            environment, engine=asked or None, of_pipeline=_of_file(pipeline, pipelines)
        )
    except InputError as error:
        way_out = f"in Airflow the connection {CONNECTION!r} says it"
        raise AirflowFailException(f"{error}; {way_out}") from None
    handed_on: dict[str, str] = {ENGINE: choice.name}
    if choice.name == "sail":
        handed_on[TRUST] = str(int(choice.trust_this_machine))
    if choice.remote is not None:
        handed_on[REMOTE] = choice.remote
        handed_on |= {name: said[name] for name in (TOKEN,) if name in said}
    return TaskEngine(choice.name, handed_on)


def _said_by_connection() -> dict[str, str]:
    """What the connection says, by the names of the variables that say the same; or nothing."""
    found = connection()
    if found is None:
        return {}
    extra = found.extra_dejson
    said = {
        ENGINE: extra.get("engine"),
        REMOTE: extra.get("remote") or _address(found, use_ssl=extra.get("use_ssl")),
        TRUST: extra.get("trust_this_machine"),
        TOKEN: found.password or extra.get("token"),
    }
    if said[TOKEN]:
        mask_secret(said[TOKEN])
    return {name: str(value) for name, value in said.items() if value not in (None, "")}


def _address(connection: Connection, *, use_ssl: object) -> str | None:
    """The address that host and port of a connection name; None: it has no host."""
    if not connection.host:
        return None
    address = f"sc://{connection.host}:{connection.port or _PORT}"
    return f"{address}/;use_ssl=true" if str(use_ssl).lower() in {"true", "1"} else address


def _of_file(pipeline: str | None, pipelines: str | Path | None) -> EngineName | None:
    """The engine that a pipeline's file names."""
    if pipeline is None:
        return None
    try:
        return find_spec(settings.pipelines_folder(pipelines), pipeline).engine
    except StrandlineError:
        return None  # the command will say what is wrong
