"""The Airflow connection that names the `strandline` executable, its lake and its engine."""

from __future__ import annotations

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

CONNECTION = "strandline_engine"
"""The connection's id; the connection is optional."""


def connection() -> Connection | None:
    """The connection, of any type; None if there is none."""
    try:
        return BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return None


def in_connection(name: str) -> str | None:
    """A field of the connection's extras, such as `lake`; None if it is missing or empty."""
    found = connection()
    value = found.extra_dejson.get(name) if found else None
    return str(value) if value not in (None, "") else None


def store_environment() -> dict[str, str]:
    """The credentials of the lake's object store as environment variables; or none.

    The extra `store` names a connection of Airflow's type `aws`, which holds them.

    Raises:
        AirflowNotFoundException: there is no such connection.
    """
    name = in_connection("store")
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
