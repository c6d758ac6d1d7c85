"""Airflow's notifiers of an alarm: by the type of the connection that a pipeline's file names."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote

from airflow.sdk import BaseNotifier, Connection

from strandline_airflow.alarm import Alarm

_TIMEOUT_S = 10


class Notifies(Protocol):
    """What sends a message."""

    def notify(self, context: Any) -> None:
        """Send it."""


class WebhookNotifier(BaseNotifier):
    """Posts an alarm as JSON to the address of a connection.

    Args:
        connection: of type http or https: host, port, schema (`http` or `https`), and in extra
            `path`; a password is sent as a bearer token, with a login as basic authentication.
        alarm: what is posted.
    """

    def __init__(self, connection: Connection, alarm: Alarm) -> None:
        super().__init__()
        self._connection = connection
        self._alarm = alarm

    def notify(self, context: Any) -> None:
        """Post it.

        Raises:
            HTTPError: the server does not answer, or refuses it.
        """
        import httpx  # noqa: PLC0415 - DAG files parse without it

        connection, headers, login = self._connection, {}, None
        if connection.login and connection.password:
            login = (connection.login, connection.password)
        elif connection.password:
            headers["Authorization"] = f"Bearer {connection.password}"
        answer = httpx.post(
            address_of(connection),
            json=self._alarm.to_json(),
            headers=headers,
            auth=login,
            timeout=_TIMEOUT_S,
        )
        answer.raise_for_status()


def address_of(connection: Connection) -> str:
    """The address that a connection names.

    Raises:
        ValueError: it has no host.
    """
    if not connection.host:
        msg = f"connection {connection.conn_id!r} has no host"
        raise ValueError(msg)
    kind = connection.schema or connection.conn_type
    base = connection.host if "://" in connection.host else f"{kind}://{connection.host}"
    port = f":{connection.port}" if connection.port else ""
    path = str(connection.extra_dejson.get("path", ""))
    return f"{base.rstrip('/')}{port}/{quote(path.lstrip('/'), safe='/%?=&')}"


def notifier_of(connection: Connection, alarm: Alarm) -> Notifies:
    """What sends an alarm by a connection.

    Raises:
        ValueError: the connection is of another type, or names nobody.
    """
    if connection.conn_type in {"http", "https"}:
        return WebhookNotifier(connection, alarm)
    if connection.conn_type == "smtp":
        from airflow.providers.smtp.notifications.smtp import SmtpNotifier  # noqa: PLC0415

        to = connection.extra_dejson.get("to")
        if not to:
            msg = f"connection {connection.conn_id!r} names nobody: give `to` among its extras"
            raise ValueError(msg)
        return SmtpNotifier(
            smtp_conn_id=connection.conn_id,
            to=to,
            subject=alarm.subject,
            html_content=alarm.html,
        )
    msg = f"connection {connection.conn_id!r} is of type {connection.conn_type}: take smtp or http"
    raise ValueError(msg)
