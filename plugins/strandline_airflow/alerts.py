"""The `alerts` of pipeline files, sent by Airflow's notifiers.

An alert that cannot be delivered is logged as a warning; it never fails the task.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook, Variable

from strandline.errors import StrandlineError
from strandline.spec import PipelineSpec, find_spec
from strandline.spec.common import Event
from strandline.visible import visible
from strandline_airflow import settings
from strandline_airflow.alarm import Alarm, notifier_of
from strandline_airflow.outcomes import AuditRejectedError
from strandline_airflow.requests import options_of

_OF_FINDING: Mapping[str, Event] = {
    "fresh_within": "stale",
    "schedule": "stale",
    "results_changed": "stale",
    "silent_after": "silent_channel",
    "upstream": "stale",
}
"""The event of a finding, by the finding's name; of every other finding it is `warning`."""
_OF_STATUS = ("results_changed", "schedule", "upstream")
"""The names of findings that no run has, but `strandline status`."""
OF_A_RUN: tuple[Event, ...] = ("warning", "silent_channel", "stale")
"""The events that the findings of a run decide."""
_PUBLISHED = "published"
_LONGEST = 500
"""The longest text of a finding that is sent, in characters."""
_log = logging.getLogger(__name__)


def failure_callbacks(own: Any) -> list[Any]:
    """The callbacks of a task's failure: `alert_failure`, and its own one or ones, if any."""
    return [alert_failure, *(own if isinstance(own, Sequence) else [own] if own else [])]


def alert_failure(context: Any) -> None:
    """Send an alarm for a task that has no retries left: Airflow's `on_failure_callback`."""
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
    """Send an alarm for each new finding of a command's result, once to each receiver.

    An Airflow Variable of the pipeline keeps the alarms sent to each receiver. A finding that a
    later result checks and lacks is removed from it, so that it is sent again when it comes back;
    an alarm that could not be delivered is sent with the next result.

    Args:
        context: the task's context.
        pipeline: the pipeline's name; None if the task belongs to no pipeline: nothing is sent.
        task: the operator, whose attribute `pipelines` is the folder of the pipeline files.
        answer: the command's JSON document, with `findings` and, if it is of a run, its `range`.
        events: the events that this command checks; alarms of other events stay as they are.
    """
    spec = _spec_of(pipeline, task)
    if spec is None or not spec.alerts or not isinstance(answer, Mapping):
        return
    if answer.get("status", _PUBLISHED) != _PUBLISHED:
        return  # it only shows, or prepares, what somebody looks at
    alarms = alarms_in(answer, spec.pipeline, _link(context))
    variable = f"strandline_alerted_{spec.pipeline}"
    before: dict[str, list[str]] = Variable.get(variable, default={}, deserialize_json=True)
    after = dict(before)
    for alert in spec.alerts:
        checked: set[str] = {event for event in alert.on if event in events}
        alerted = {*after.get(alert.to, ())}  # two alerts may name one receiver
        current = [alarm for alarm in alarms if alarm.event in checked]
        kept = _unchecked(alerted, checked, answer)
        after[alert.to] = sorted(kept | _alerted(alert.to, current, alerted, context))
    if after != before:
        Variable.set(variable, after, serialize_json=True)


def _alerted(to: str, current: Sequence[Alarm], before: set[str], context: Any) -> set[str]:
    """Send a receiver its new alarms; the keys of the current alarms that it was sent."""
    new = [alarm for alarm in current if _key(alarm) not in before]
    sent = {_key(alarm) for alarm in new if _send(to, alarm, context)}
    return before & {_key(alarm) for alarm in current} | sent


def _unchecked(before: set[str], checked: set[str], answer: Mapping[str, Any]) -> set[str]:
    """The keys of alarms whose findings may still be there although an answer lacks them.

    A run by hand checks its own range alone, and no run checks whether the next one is missing.
    """
    kind = answer.get("kind")  # a status has none
    if kind not in {None, "advance"}:
        return before
    of_others = _OF_STATUS if kind else ()
    parts = {key: key.partition("/") for key in before}
    return {
        key for key, (event, _, name) in parts.items() if event not in checked or name in of_others
    }


def alarms_in(answer: Mapping[str, Any], pipeline: str, link: str) -> list[Alarm]:
    """An alarm for each warning and each critical finding of an answer, in its order."""
    within = answer.get("range") or {}
    text = f"{within['start']} to {within['end']}" if within else ""
    return [
        Alarm(
            _OF_FINDING.get(finding["name"], "warning"),
            finding["name"],
            pipeline,
            text,
            visible(finding["sentence"])[:_LONGEST],
            link,
        )
        for finding in answer.get("findings") or ()
        if finding["severity"] in {"warning", "critical"}
    ]


def _key(alarm: Alarm) -> str:
    return f"{alarm.event}/{alarm.name}"


def _send(connection: str, alarm: Alarm, context: Any) -> bool:
    """Send an alarm by a connection; False if it could not be delivered."""
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
    """The range in a task's arguments; empty if it has none, or they could not be rendered."""
    arguments = getattr(task, "application_args", None)
    options = options_of(arguments) if isinstance(arguments, Sequence) else {}
    if "start" in options and "end" in options:
        return f"{options['start']} to {options['end']}"
    return f"up to {options['to']}" if "to" in options else ""


def _in_short(error: Any) -> str:
    """The message of an error, cut to the longest text that is sent."""
    return visible(str(error or "it has failed"), keep="\n")[:_LONGEST]


def _link(context: Any) -> str:
    return str(getattr(context.get("ti"), "log_url", "") or "")
