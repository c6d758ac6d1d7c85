"""The message that an alert sends, and the notifiers that deliver it."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier, Connection

from strandline.spec.common import Event


@dataclass(frozen=True)
class Alarm:
    """A message about one finding of one pipeline.

    Attributes:
        event: the kind of finding, as `alerts.on` of the pipeline's file names it.
        name: the finding's name; a receiver gets one message for each event and name.
        pipeline: the pipeline's name.
        range: the run's range, as `2013-01-01T00:00:00Z to 2013-01-02T00:00:00Z`; empty if the
            finding belongs to no run.
        finding: the finding as a sentence.
        link: the URL of the task's page in Airflow; empty if it has none.
    """

    event: Event
    name: str
    pipeline: str
    range: str
    finding: str
    link: str

    @property
    def subject(self) -> str:
        """One line, such as `strandline flights: rejected`."""
        return f"strandline {self.pipeline}: {self.event.replace('_', ' ')}"

    @property
    def html(self) -> str:
        """The message as HTML; all text is escaped."""
        lines = [f"<p>{html.escape(self.finding)}</p>"]
        if self.range:
            lines.append(f"<p>Range: {html.escape(self.range)}</p>")
        if self.link:
            link = html.escape(self.link, quote=True)
            lines.append(f'<p><a href="{link}">{link}</a></p>')
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The body that a webhook receives; chat services show its key `text`."""
        text = f"{self.subject}: {self.finding} {self.link}".strip()
        return {**asdict(self), "text": text}


_TIMEOUT_S = 10


class _WebhookNotifier(BaseNotifier):
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
            _address_of(connection),
            json=self._alarm.to_json(),
            headers=headers,
            auth=login,
            timeout=_TIMEOUT_S,
        )
        answer.raise_for_status()


def _address_of(connection: Connection) -> str:
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
        return _WebhookNotifier(connection, alarm)
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
