"""The key `alerts`: the events to report, and the Airflow connections that receive them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from strandline.spec import described
from strandline.spec.values import SpecModel, refuse_at, text_like

Event: TypeAlias = Literal["failed", "rejected", "warning", "stale", "silent_channel"]
"""The events: a run has failed without retries left; its audit has failed; it was published with a
warning; no arrival or no run in time; a channel is silent."""
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_CONNECTION = re.compile(r"[A-Za-z0-9_.\-]{1,200}")


def _events(value: Any) -> Any:
    """The events as a tuple; a single one may be written without brackets."""
    if value in ([], ""):
        msg = "names no event; give one, such as failed"
        raise ValueError(msg)
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


_connection = text_like(
    _CONNECTION, "not the id of a connection: letters, digits, dots, dashes and underscores"
)
_time = text_like(_TIME, 'not a time of the day; write it in quotes, as "09:00" (UTC)')


class Alert(SpecModel):
    """`{on: [EVENT, …], to: CONNECTION, by: "HH:MM"}`.

    Attributes:
        on: the events that are sent.
        to: the id of an Airflow connection: of type smtp for an e-mail, http for a webhook.
        by: for `stale`, the time of day, in UTC, by which yesterday must be processed; by default
            09:00.
    """

    on: Annotated[tuple[Event, ...], BeforeValidator(_events), Field(min_length=1)]
    to: Annotated[
        str, BeforeValidator(_connection), WithJsonSchema(described.text(_CONNECTION.pattern))
    ]
    by: Annotated[str, BeforeValidator(_time), WithJsonSchema(described.text(_TIME.pattern))] = (
        "09:00"
    )

    @model_validator(mode="after")
    def _each_event_once(self) -> Alert:
        twice = [event for event in self.on if self.on.count(event) > 1]
        if twice:
            refuse_at("on", twice[0], "named twice; name each event once")
        if "by" in self.model_fields_set and "stale" not in self.on:
            refuse_at("by", self.by, "of `stale` alone; add it to `on`, or leave it out")
        return self
