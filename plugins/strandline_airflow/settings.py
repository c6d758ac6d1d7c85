"""The connection of tasks, the places of the command, the lake and the pipelines, and retries.

An argument of an operator or a DAG file comes first, then the connection, then the environment.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

import strandline
from strandline.errors import InputError
from strandline.lake.store.places import path_of

CONNECTION = "strandline_engine"
"""The connection's id; the connection is optional."""
SPARK_CONNECTION = "spark_default"
ENTRY_POINT = Path(strandline.__file__).parent / "cli" / "entry" / "strandline_job.py"
"""The file that starts a command as a Spark application."""
_RETRIES = 2
"""Retries of a task; exit codes 2 and 3 are never retried."""
RETRY_DELAY = timedelta(seconds=30)
"""The delay before the first retry; it doubles with each further retry."""
_MAX_RETRY_DELAY = timedelta(minutes=10)
APPROVAL_TIMEOUT = timedelta(days=1)
"""The longest wait for an approval; other ranges are reprocessed meanwhile."""


def connection() -> Connection | None:
    """The connection, of any type; None if there is none."""
    try:
        return BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return None


def _in_connection(name: str) -> str | None:
    """A field of the connection's extras, such as `lake`; None if it is missing or empty."""
    found = connection()
    value = found.extra_dejson.get(name) if found else None
    return str(value) if value not in (None, "") else None


def _store_environment() -> dict[str, str]:
    """The credentials of the lake's object store as environment variables; or none.

    The extra `store` names a connection of Airflow's type `aws`, which holds them.

    Raises:
        AirflowNotFoundException: there is no such connection.
    """
    name = _in_connection("store")
    if name is None:
        return {}
    found = BaseHook.get_connection(name)
    extra = found.extra_dejson
    endpoint = str(extra.get("endpoint_url") or "")
    variables = {
        "AWS_ACCESS_KEY_ID": found.login,
        "AWS_SECRET_ACCESS_KEY": found.password,
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true" if endpoint.startswith("http://") else None,
    }
    for secret in (variables["AWS_SECRET_ACCESS_KEY"], variables["AWS_SESSION_TOKEN"]):
        if secret:
            mask_secret(secret)
    return {variable: str(value) for variable, value in variables.items() if value}


def spark_master(spark_connection: str) -> str | None:
    """The master of a Spark connection, as `local[2]` or `spark://host:7077`."""
    try:
        found = BaseHook.get_connection(spark_connection)
    except AirflowNotFoundException:
        return None
    return f"{found.host}:{found.port}" if found.port else found.host


def lake(given: str | None = None) -> str:
    """The lake's root: an absolute path, or a URI.

    Raises:
        InputError: neither argument, connection nor environment names it.
    """
    root = _found(given, "lake", "STRANDLINE_LAKE")
    path = path_of(root)
    return root if path is None else str(path.absolute())


def pipelines_folder(given: str | Path | None = None) -> Path:
    """The absolute folder of the pipeline files.

    Raises:
        InputError: neither argument, connection nor environment names it.
    """
    return Path(_found(given, "pipelines", "STRANDLINE_PIPELINES")).absolute()


def _found(given: str | Path | None, name: str, variable: str) -> str:
    found = given or _in_connection(name) or os.environ.get(variable)
    if not found:
        way_out = (
            f"give `{name}` to the DAG file, to the connection {CONNECTION!r}, or set {variable}"
        )
        raise InputError(name, "its place is not configured", way_out)
    return str(found)


def job_environment(
    given_lake: str | None = None, given_pipelines: str | Path | None = None
) -> dict[str, str]:
    """The environment variables of a command: lake, pipelines, and the store's credentials.

    Lake and pipelines are the same as for the DAGs; the credentials come from a connection, if it
    has any.
    """
    return {
        **_store_environment(),
        "STRANDLINE_LAKE": lake(given_lake),
        "STRANDLINE_PIPELINES": str(pipelines_folder(given_pipelines)),
    }


def executable() -> Path:
    """The `strandline` executable of the connection, or else of this Python environment."""
    return Path(_in_connection("executable") or Path(sys.executable).with_name("strandline"))


def report_file(pipeline: str, given_lake: str | None = None) -> str:
    """The file that `strandline report` writes for a pipeline."""
    return f"{lake(given_lake)}/{pipeline}/_reports/report.html"


def dag_defaults() -> dict[str, Any]:
    """The arguments of all DAGs that run commands."""
    return {
        "start_date": datetime(1970, 1, 1, tzinfo=UTC),  # a backfill reaches all of history
        "catchup": False,
        "default_args": task_defaults(),
    }


def task_defaults() -> dict[str, Any]:
    """The `default_args` of every DAG."""
    return {
        "owner": "strandline",
        "retries": _RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
        "max_retry_delay": _MAX_RETRY_DELAY,
    }
