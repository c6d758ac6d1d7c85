"""The keys that every pipeline file has, among them `alerts`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from strandline.spec import described
from strandline.spec.cron import is_cron
from strandline.spec.quality import Quality
from strandline.spec.values import PipelineName, SpecModel, parse_bytes, refuse_at, text_like

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


EngineName: TypeAlias = Literal["spark", "connect", "sail"]
"""Apache Spark in this process or on a cluster; a Spark Connect server; Sail in this process."""
Overridden: TypeAlias = Literal["keep", "redo"]
"""The treatment, by scheduled runs, of windows published by a run with overridden rules."""
_FIXED_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")


def _settings(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for name, setting in value.items():
        if not isinstance(setting, str | int | float):
            refuse_at(str(name), setting, "not a setting; give a text, a number or a boolean")
        if name in _FIXED_SETTINGS:
            refuse_at(str(name), setting, "fixed, since it would change the numbers; leave it out")
    spelled = {True: "true", False: "false"}
    return {k: spelled[v] if isinstance(v, bool) else str(v) for k, v in value.items()}


def _in_order(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class OnAsset(SpecModel):
    """A schedule by an asset of Airflow: the pipeline runs after each update of the asset.

    Attributes:
        asset: the asset's name, or its URI (with `://`).
    """

    asset: Annotated[str, Field(min_length=1, max_length=1500)]


def _schedule(value: Any) -> Any:
    shape = re.compile(r"@[a-z]+|[\w*,/?#-]+(\s+[\w*,/?#-]+){4}")
    match value:
        case str() if shape.fullmatch(value.strip()) and is_cron(value.strip()):
            return value.strip()
        case {"asset": str(asset), **more} if asset.strip() and not more:
            return OnAsset(asset=asset.strip())
        case OnAsset():
            return value
    msg = (
        'not a schedule; write the five fields of cron, such as "0 6 * * *", {asset: NAME} of an '
        "asset of Airflow that the landing updates, or null"
    )
    raise ValueError(msg)


class CommonSpec(SpecModel):
    """The name of a pipeline, its quality rules, and the settings of its runs.

    Attributes:
        pipeline: its name, which is also the name of its folder in the lake, and part of its DAG's.
        quality: the rules that the data of a run must meet.
        spark: the Spark settings of its runs.
        engine: the engine; by default `spark`.
        schedule: a cron expression in UTC, or an asset of Airflow; null: it runs by hand only.
        overridden: the treatment, by scheduled runs, of windows published by a run with overridden
            rules.
        alerts: the events that Airflow sends, and their receivers; by default none.
        quarantine_days: the number of days for which quarantine is kept; by default unlimited.
        max_bytes: the largest number of bytes that a run may read of the landing table, such as
            20GB.
    """

    pipeline: PipelineName
    quality: Quality = Field(default_factory=Quality)
    spark: Annotated[
        dict[str, str], BeforeValidator(_settings), WithJsonSchema(described.SETTINGS)
    ] = Field(default_factory=dict)
    # the engine decides no number, so that no fingerprint has it
    engine: EngineName | None = Field(default=None, exclude=True)
    schedule: Annotated[str | OnAsset, BeforeValidator(_schedule)] | None = "0 6 * * *"
    # what becomes of ranges by rules of one run decides no number by the file's rules
    overridden: Overridden = "keep"
    alerts: Annotated[tuple[Alert, ...], BeforeValidator(_in_order)] = ()
    quarantine_days: Annotated[int, Field(ge=1)] | None = None
    max_bytes: (
        Annotated[int, BeforeValidator(parse_bytes), WithJsonSchema(described.SIZE)] | None
    ) = None

    @property
    def cron(self) -> str | None:
        """The cron expression, in UTC; None if it runs by an asset, by other results or by hand."""
        return self.schedule if isinstance(self.schedule, str) else None
