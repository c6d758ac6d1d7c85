"""The connection that says where `strandline`, its lake and its engine are."""

from __future__ import annotations

import subprocess
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

CONNECTION = "strandline_engine"
"""Its id; there need not be one."""
CONNECTION_TYPE = "strandline"
_SECONDS_TO_ANSWER = 60


def connection() -> Connection | None:
    """The connection, of whatever type; None: there is none."""
    try:
        return BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return None


def in_connection(name: str) -> str | None:
    """A field among a connection's extras, as `lake`; None: it is not there, or empty."""
    found = connection()
    value = found.extra_dejson.get(name) if found else None
    return str(value) if value not in (None, "") else None


def store_environment() -> dict[str, str]:
    """Credentials of the lake's object store, as variables of a job; or nothing.

    They are those of the connection that the extra `store` names, one of Airflow's type `aws`.

    Raises:
        AirflowNotFoundException: there is no such connection.
    """
    name = in_connection("store")
    if name is None:
        return {}
    found = BaseHook.get_connection(name)
    extra = found.extra_dejson
    endpoint = str(extra.get("endpoint_url") or "")
    said = {
        "AWS_ACCESS_KEY_ID": found.login,
        "AWS_SECRET_ACCESS_KEY": found.password,
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true" if endpoint.startswith("http://") else None,
    }
    for secret in (said["AWS_SECRET_ACCESS_KEY"], said["AWS_SESSION_TOKEN"]):
        if secret:
            mask_secret(secret)
    return {variable: str(value) for variable, value in said.items() if value}


def spark_master(spark_connection: str) -> str | None:
    """The master that a Spark connection names, as `local[2]` or `spark://host:7077`."""
    try:
        found = BaseHook.get_connection(spark_connection)
    except AirflowNotFoundException:
        return None
    return f"{found.host}:{found.port}" if found.port else found.host


class StrandlineHook(BaseHook):
    """The type of connection; what the button "Test" of its form does."""

    conn_name_attr = "strandline_conn_id"
    default_conn_name = CONNECTION
    conn_type = CONNECTION_TYPE
    hook_name = "Strandline"

    def __init__(self, strandline_conn_id: str = CONNECTION) -> None:
        super().__init__()
        self.strandline_conn_id = strandline_conn_id

    def get_conn(self) -> Connection:
        """The connection itself: what it names is a program."""
        return self.get_connection(self.strandline_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the command that it names runs, and the version that it says."""
        from strandline_airflow import settings  # noqa: PLC0415 - it asks for the connection, too

        program: Any = self.get_conn().extra_dejson.get("executable") or settings.executable()
        try:
            done = subprocess.run(
                [str(program), "--version"],
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS_TO_ANSWER,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, str(error)
        return done.returncode == 0, (done.stdout or done.stderr).strip()
