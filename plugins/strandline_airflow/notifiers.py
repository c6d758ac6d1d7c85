"""The notifier of an alarm, by the type of the receiver's Airflow connection."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier, Connection

from strandline_airflow.alarm import Alarm

_TIMEOUT_S = 10


class WebhookNotifier(BaseNotifier):
    """Posts an alarm as JSON to the URL of a connection.

    Args:
        connection: a connection of type http or https, with host, port, schema (`http` or `https`)
            and the extra `path`. A password without a login is sent as a bearer token, with a
            login by basic authentication.
        alarm: the message.
    """

    def __init__(self, connection: Connection, alarm: Alarm) -> None:
        super().__init__()
        self._connection = connection
        self._alarm = alarm

    def notify(self, context: Any) -> None:
        """Post the message.

        Raises:
            HTTPError: the server does not answer in ten seconds, or answers with an error.
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
    """The URL of a connection of type http.

    Raises:
        ValueError: the connection has no host.
    """
    if not connection.host:
        msg = f"connection {connection.conn_id!r} has no host"
        raise ValueError(msg)
    kind = connection.schema or connection.conn_type
    base = connection.host if "://" in connection.host else f"{kind}://{connection.host}"
    port = f":{connection.port}" if connection.port else ""
    path = str(connection.extra_dejson.get("path", ""))
    return f"{base.rstrip('/')}{port}/{quote(path.lstrip('/'), safe='/%?=&')}"


def notifier_of(connection: Connection, alarm: Alarm) -> BaseNotifier:
    """The notifier that sends an alarm by a connection of type http, https or smtp.

    Raises:
        ValueError: the connection has another type, or lacks a host or a recipient.
    """
    if connection.conn_type in {"http", "https"}:
        return WebhookNotifier(connection, alarm)
    if connection.conn_type == "smtp":
        from airflow.providers.smtp.notifications.smtp import SmtpNotifier  # noqa: PLC0415

        to = connection.extra_dejson.get("to")
        if not to:
            msg = f"connection {connection.conn_id!r} names no recipient: give `to` in its extras"
            raise ValueError(msg)
        return SmtpNotifier(
            smtp_conn_id=connection.conn_id,
            to=to,
            subject=alarm.subject,
            html_content=alarm.html,
        )
    msg = f"connection {connection.conn_id!r} is of type {connection.conn_type}: take smtp or http"
    raise ValueError(msg)
