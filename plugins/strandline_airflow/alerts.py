"""Alerts of a pipeline's file, sent by Airflow's notifiers.

What is sent never fails a task: whoever cannot be reached is named in its log.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook, Variable

from strandline.errors import StrandlineError
from strandline.spec import PipelineSpec, find_spec
from strandline.spec.alerts import Event
from strandline.visible import visible
from strandline_airflow import settings
from strandline_airflow.notifiers import notifier_of
from strandline_airflow.outcomes import AuditRejectedError
from strandline_airflow.requests import options_of

_OF_FINDING: Mapping[str, Event] = {
    "fresh_within": "stale",
    "schedule": "stale",
    "silent_after": "silent_channel",
}
"""By a finding's name, the event that it is; every other one that warns is `warning`."""
OF_A_RUN: tuple[Event, ...] = ("warning", "silent_channel", "stale")
"""What the answer of a run decides."""
_PUBLISHED = "published"
_LONGEST = 500
"""Signs of a finding that are sent."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alarm:
    """One message.

    Attributes:
        event: what has happened.
        name: identifies the finding, so that nobody is alerted to it twice.
        pipeline: which pipeline.
        range: of the run, as `2013-01-01T00:00:00Z to 2013-01-02T00:00:00Z`; empty: there is none.
        finding: the first thing that is wrong, in a sentence.
        link: the page of the task in Airflow.
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
        """The message as HTML, of which nothing that others have written is markup."""
        lines = [f"<p>{html.escape(self.finding)}</p>"]
        if self.range:
            lines.append(f"<p>Range: {html.escape(self.range)}</p>")
        if self.link:
            link = html.escape(self.link, quote=True)
            lines.append(f'<p><a href="{link}">{link}</a></p>')
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The message as a webhook gets it; `text` is what chats show."""
        said = f"{self.subject}: {self.finding}"
        return {**asdict(self), "text": f"{said} {self.link}".strip()}


def alert_failure(context: Any) -> None:
    """Alert to a task that has failed for good: Airflow's `on_failure_callback`."""
    task, error = context["task"], context.get("exception")
    pipeline = getattr(task, "pipeline", None)
    spec = _spec_of(pipeline, task)
    if spec is None:
        return
    event: Event = "rejected" if isinstance(error, AuditRejectedError) else "failed"
    within = _asked_range(task)
    alarm = Alarm(event, event, spec.pipeline, within, _in_short(error), _link(context))
    for alert in spec.alerts:
        if event in alert.on:
            _send(alert.to, alarm, context)


def alert_findings(
    context: Any, pipeline: str | None, task: Any, answer: Any, *, events: Sequence[Event]
) -> None:
    """Alert to findings that are new; one that was gone is new again.

    Args:
        context: of the task.
        pipeline: the name of the pipeline; None: the task is for none.
        task: the task, which knows where the pipeline files are.
        answer: what the command has answered: with `findings`, and perhaps the `range`.
        events: the events that the answer decides: what is not among its findings is gone.
    """
    spec = _spec_of(pipeline, task)
    if spec is None or not spec.alerts or not isinstance(answer, Mapping):
        return
    if answer.get("status", _PUBLISHED) != _PUBLISHED:
        return  # it only shows, or prepares, what somebody looks at
    alarms = alarms_in(answer, spec.pipeline, _link(context))
    key = f"strandline_alerted_{spec.pipeline}"
    before: dict[str, list[str]] = Variable.get(key, default={}, deserialize_json=True)
    after = dict(before)
    for alert in spec.alerts:
        asked = [event for event in alert.on if event in events]
        of_alert = [alarm for alarm in alarms if alarm.event in asked]
        known, decided = {*before.get(alert.to, ())}, {f"{event}/" for event in asked}
        new = [alarm for alarm in of_alert if _key(alarm) not in known]
        reached = {_key(alarm) for alarm in new if _send(alert.to, alarm, context)}
        others = {one for one in known if not one.startswith(tuple(decided))}
        still = known & {_key(alarm) for alarm in of_alert}
        after[alert.to] = sorted(others | still | reached)
    if after != before:
        Variable.set(key, after, serialize_json=True)


def alarms_in(answer: Mapping[str, Any], pipeline: str, link: str) -> list[Alarm]:
    """What an answer's findings warn of, the worst first."""
    within = answer.get("range") or {}
    said = f"{within['start']} to {within['end']}" if within else ""
    return [
        Alarm(
            _OF_FINDING.get(finding["name"], "warning"),
            finding["name"],
            pipeline,
            said,
            visible(finding["sentence"])[:_LONGEST],
            link,
        )
        for finding in answer.get("findings") or ()
        if finding["severity"] in {"warning", "critical"}
    ]


def _key(alarm: Alarm) -> str:
    return f"{alarm.event}/{alarm.name}"


def _send(connection: str, alarm: Alarm, context: Any) -> bool:
    """Whether an alarm has been sent."""
    try:
        notifier_of(BaseHook.get_connection(connection), alarm).notify(context)
    except Exception as error:  # noqa: BLE001 - whatever a server or a connection brings about
        _log.warning("alert to %s not sent: %s", connection, visible(str(error))[:_LONGEST])
        return False
    _log.info("alert to %s: %s", connection, alarm.subject)
    return True


def _spec_of(pipeline: Any, task: Any) -> PipelineSpec | None:
    if not isinstance(pipeline, str):
        return None
    folder: str | Path | None = getattr(task, "pipelines", None)
    try:
        return find_spec(settings.pipelines_folder(folder), pipeline)
    except StrandlineError as error:
        _log.warning("alerts not known: %s", visible(str(error))[:_LONGEST])
        return None


def _asked_range(task: Any) -> str:
    """The range that a task was asked for; empty: its arguments could not even be rendered."""
    arguments = getattr(task, "application_args", None)
    said = options_of(arguments) if isinstance(arguments, Sequence) else {}
    if "start" in said and "end" in said:
        return f"{said['start']} to {said['end']}"
    return f"up to {said['to']}" if "to" in said else ""


def _in_short(error: Any) -> str:
    """The first lines of what a job has said."""
    return visible(str(error or "it has failed"), keep="\n")[:_LONGEST]


def _link(context: Any) -> str:
    return str(getattr(context.get("ti"), "log_url", "") or "")
