"""One pipeline: the whole of its YAML file as one frozen value."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from strandline.model.intervals import END_OF_INSTANTS_MS
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.quality import Quality
from strandline.spec.source import Source
from strandline.spec.values import (
    Expression,
    Lateness,
    Name,
    PipelineName,
    SpecModel,
    parse_bytes,
    refuse_at,
)
from strandline.spec.watermark import Ingestion, Watermark
from strandline.spec.window import Session, WindowField
from strandline.tables import FIRING_COLUMNS, WINDOW_COLUMNS

OWN_PREFIX = "_strandline_"
"""What the names of the engine's own columns begin with, without case."""

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


def _cron(value: Any) -> str:
    shape = re.compile(r"@[a-z]+|[\w*,/?#-]+(\s+[\w*,/?#-]+){4}")
    if not isinstance(value, str) or not shape.fullmatch(value.strip()):
        msg = 'not a schedule; write the five fields of cron, such as "0 6 * * *", or null'
        raise ValueError(msg)
    return value.strip()


class PipelineSpec(SpecModel):
    """A pipeline, as its YAML file says; every time is in whole milliseconds."""

    pipeline: PipelineName
    source: Source
    watermark: Watermark
    window: WindowField
    allowed_lateness: Lateness = 0
    aggregates: dict[Name, Expression] = Field(default_factory=dict)
    quality: Quality = Field(default_factory=Quality)
    firings: bool = False
    spark: Annotated[dict[str, str], BeforeValidator(_settings)] = Field(default_factory=dict)
    schedule: Annotated[str, BeforeValidator(_cron)] | None = "0 6 * * *"
    max_bytes: Annotated[int, BeforeValidator(parse_bytes)] | None = None

    @model_validator(mode="after")
    def _result_columns_are_distinct(self) -> PipelineSpec:
        in_use = {*WINDOW_COLUMNS, *FIRING_COLUMNS, "supersedes_windows"}
        for place, names in (("source.key", self.source.key), ("aggregates", self.aggregates)):
            for name in names:
                if name.lower().startswith(OWN_PREFIX):
                    problem = f"a name of ours, as all that begin with {OWN_PREFIX}; choose another"
                    refuse_at(f"{place}.{name}", name, problem)
                if name.lower() in in_use:
                    problem = "a result column that exists already; choose another name"
                    refuse_at(f"{place}.{name}", name, problem)
                in_use.add(name.lower())
        return self

    @model_validator(mode="after")
    def _sessions_are_cleaned(self) -> PipelineSpec:
        longest_ms = MAX_WATERMARK - END_OF_INSTANTS_MS
        if isinstance(self.window, Session) and self.allowed_lateness > longest_ms:
            problem = (
                "too long for sessions: the time at which one is dropped would not fit 64 bits, "
                f"where Flink fails as soon as two merge; give at most {longest_ms}ms"
            )
            refuse_at("allowed_lateness", f"{self.allowed_lateness}ms", problem)
        return self

    @model_validator(mode="after")
    def _retired_channels_would_hold_back(self) -> PipelineSpec:
        if self.source.retired and self.watermark.idleness_in_effect:
            problem = (
                "of no use with watermark.idleness: a channel that is silent is left out anyway; "
                "remove one of them"
            )
            refuse_at("source.retired", list(self.source.retired), problem)
        if self.source.retired and self.watermark.goes_by_the_clock:
            problem = (
                "of no use where the watermark goes by the clock: a channel that is silent holds "
                "nothing back; remove it"
            )
            refuse_at("source.retired", list(self.source.retired), problem)
        return self

    @property
    def without_where(self) -> PipelineSpec:
        """The pipeline as if no row of its source were left out."""
        source = self.source.model_copy(update={"where": None})
        return self.model_copy(update={"source": source})

    @property
    def arrival_is_event_time(self) -> bool:
        """Whether ingestion replaces every event time by the arrival."""
        return isinstance(self.watermark, Ingestion) and self.watermark.assign_timestamps

    @property
    def days_follow_each_other(self) -> bool:
        """Whether what is observed of a day of arrivals depends on the days before it, too.

        A channel that is silent may be so since yesterday, a record out of order or a repetition of
        one of then.
        """
        counts_order = self.watermark.violation_handler is not None
        repeats = self.source.deduplicate is not None
        return self.watermark.idleness_in_effect or counts_order or repeats

    @property
    def spec_fingerprint(self) -> str:
        """Of all that decides the numbers; not of quality, schedule and Spark's settings."""
        return _fingerprint(
            self, {"source", "watermark", "window", "allowed_lateness", "aggregates"}
        )

    @property
    def layout(self) -> dict[str, Any]:
        """What its published rows are laid out by: `window`, `key` and, of sessions, `slot`.

        Another one is another pipeline: its rows do not lie among those of this one.
        """
        slot = {"slot": self.quality.session_slot} if isinstance(self.window, Session) else {}
        return {"window": self.window.model_dump(mode="json"), "key": self.source.key, **slot}

    @property
    def timeline_fingerprint(self) -> str:
        """Of all that decides the timeline: source, watermark and the grid of thresholds."""
        slot = {"slot": self.quality.session_slot} if isinstance(self.window, Session) else {}
        parts = {"source", "watermark", "window", "allowed_lateness"}
        return _fingerprint(self, parts, **slot)


def _fingerprint(spec: PipelineSpec, parts: set[str], **more: int) -> str:
    said = spec.model_dump(mode="json", include=parts) | more
    # when a day is over for a run decides no number; and of older versions nothing changes
    said["source"].pop("ready_after")
    if not said["source"]["retired"]:
        said["source"].pop("retired")
    content = json.dumps(said, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
