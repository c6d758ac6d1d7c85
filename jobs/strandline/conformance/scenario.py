"""A scenario of the goldens as what a pipeline knows: a spec and its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from strandline.errors import InputError
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, datetime_of
from strandline.reference.records import Record
from strandline.spec import PipelineSpec, parse_spec

PIPELINE = "conformance"
"""The name of every scenario's pipeline."""

_STRATEGIES = {
    "bounded": ("bounded_out_of_orderness", "bound"),
    "legacy_bounded": ("legacy_bounded_out_of_orderness", "bound"),
    "ascending": ("ascending", None),
    "legacy_ascending": ("legacy_ascending", None),
    "punctuated": ("punctuated", "marker"),
    "time_lag": ("time_lag", "lag"),
    "ingestion": ("ingestion", "assign_timestamps"),
}
"""A golden's strategy, a pipeline's, and the field that belongs to it: goldens may have others."""


class Unsupported(Exception):
    """A scenario asks for features that a pipeline cannot say, or that are not built yet."""

    def __init__(self, *features: str) -> None:
        """Keep the features by name."""
        self.features = features
        super().__init__(", ".join(features))


@dataclass(frozen=True)
class Scenario:
    """A scenario, ready to run.

    Attributes:
        name: its name in the goldens.
        spec: its pipeline; the source's columns bear the names of the golden's record fields.
        records: its records; `payload` holds `id` and `value`, and the other fields as given.
        start_ms: when the job's clock started.
        end_of_input: whether the input ends after the last record.
    """

    name: str
    spec: PipelineSpec
    records: tuple[Record, ...]
    start_ms: int
    end_of_input: bool

    @property
    def horizon_ms(self) -> int:
        """Just after the last arrival: the scenario knows no later record and no later tick."""
        return max((r.arrival_ms for r in self.records), default=self.start_ms) + 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _Window(_Part):
    kind: str
    size_ms: int | None = None
    slide_ms: int | None = None
    offset_ms: int = 0
    gap_ms: int | None = None
    gap_field: Literal["gap_ms", "value"] | None = None


class _Watermark(_Part):
    strategy: str
    emit: Literal["periodic", "per_record"]
    emit_interval_ms: int | None = None
    bound_ms: int | None = None
    lag_ms: int | None = None
    assign_timestamps: bool | None = None
    idleness_ms: int | None = None
    combine: Literal["valve", "splits"] = "valve"


class _Trigger(_Part):
    kind: str
    interval_ms: int | None = None
    n: int | None = None
    threshold: int | None = None
    purging: bool = False


class _Record(_Part):
    id: int
    arrival_ms: int
    ts_ms: int
    channel: str
    key: str
    value: int
    marker: bool = False
    gap_ms: int | None = None


class _Scenario(_Part):
    name: str
    clock_start_ms: int
    window: _Window
    allowed_lateness_ms: int = Field(ge=0)
    watermark: _Watermark
    end_of_input: Literal["hold", "max_watermark"]
    channels: Literal["discovered"] | list[str]
    records: list[_Record]
    trigger: _Trigger | None = None
    output: dict[str, Any] | None = None


def read_scenario(content: Mapping[str, Any]) -> Scenario:
    """The scenario that a golden tells.

    Raises:
        Unsupported: it asks for what a pipeline cannot say or what is not built yet.
        InputError: it is broken: a field is missing, of the wrong type or impossible.
    """
    name = str(content.get("name"))
    foreign = _foreign_features(content)
    if foreign:
        raise Unsupported(*foreign)
    try:
        parsed = _Scenario.model_validate(content)
    except ValidationError as error:
        raise InputError(name, mistakes_in(error), "see the format of the goldens") from None
    spec = parse_spec(_pipeline(parsed), origin=name)
    return Scenario(
        name=name,
        spec=spec,
        records=_records(parsed),
        start_ms=parsed.clock_start_ms,
        end_of_input=parsed.end_of_input == "max_watermark",
    )


def mistakes_in(error: ValidationError) -> str:
    """The first thing that is wrong with a JSON value: its path, and what is wrong there."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _foreign_features(content: Mapping[str, Any]) -> list[str]:
    """What no pipeline file can say; the rest of such a scenario need not make sense."""
    features = []
    join, trigger, evictor = (_kind(content, name) for name in ("join", "trigger", "evictor"))
    if join:
        features.append(f"join: {join}")
    if trigger and (trigger != "event_time" or content["trigger"].get("purging")):
        purging = "purging " if content["trigger"].get("purging") else ""
        features.append(f"trigger: {purging}{trigger}")
    if evictor:
        features.append(f"evictor: {evictor}")
    if "then" in content:
        features.append("then: chained windows")
    window, strategy = _kind(content, "window"), _kind(content, "watermark", "strategy")
    if window and window not in {"tumbling", "sliding", "session"}:
        features.append(f"window.kind: {window}")
    if strategy and strategy not in _STRATEGIES:
        features.append(f"watermark.strategy: {strategy}")
    known = {*_Scenario.model_fields, "join", "inputs", "evictor", "then"}
    features += [f"scenario.{field}" for field in content if field not in known]
    return features


def _kind(content: Mapping[str, Any], part: str, field: str = "kind") -> str | None:
    value = content.get(part)
    return str(value.get(field)) if isinstance(value, dict) and field in value else None


def _pipeline(scenario: _Scenario) -> dict[str, Any]:
    """The pipeline file that says the same."""
    start_ms = scenario.clock_start_ms
    if not LEAST_INSTANT_MS <= start_ms < END_OF_INSTANTS_MS:
        problem = f"clock_start_ms: {start_ms} is outside the years 0001 to 9999"
        raise InputError(scenario.name, problem, "start the clock inside them")
    return {
        "pipeline": PIPELINE,
        "source": {
            "table": "scenario",
            "arrival_time": "timestamp_millis(arrival_ms)",
            "event_time": "timestamp_millis(ts_ms)",
            "channel": "channel",
            "channels": scenario.channels,
            "key": ["key"],
            "sequence": "id",
            "start": datetime_of(start_ms),
        },
        "watermark": _watermark(scenario.watermark),
        "window": _window(scenario.window),
        "allowed_lateness": _duration(scenario.allowed_lateness_ms),
        "aggregates": {
            "count": "count(*)",
            "sum": "sum(value)",
            "ids": "array_sort(collect_list(id))",
        },
        "firings": True,
    }


def _duration(ms: int | None) -> str | None:
    return None if ms is None else f"{ms}ms"


def _watermark(watermark: _Watermark) -> dict[str, Any]:
    strategy, own_field = _STRATEGIES[watermark.strategy]
    fields = {
        "bound": _duration(watermark.bound_ms),
        "lag": _duration(watermark.lag_ms),
        "marker": "marker",
        "assign_timestamps": watermark.assign_timestamps,
    }
    emit: Any = "per_record"
    if watermark.emit == "periodic":
        emit = {"every": _duration(watermark.emit_interval_ms)}
    return {
        "strategy": strategy,
        **{field: v for field, v in fields.items() if field == own_field and v is not None},
        "emit": emit,
        "idleness": _duration(watermark.idleness_ms),
        "combine": watermark.combine,
    }


def _window(window: _Window) -> dict[str, Any]:
    if window.kind == "session":
        return {"session": window.gap_field or _duration(window.gap_ms)}
    every = {} if window.slide_ms is None else {"every": _duration(window.slide_ms)}
    return {
        window.kind: _duration(window.size_ms),
        "offset": _duration(window.offset_ms),
        **every,
    }


def _records(scenario: _Scenario) -> tuple[Record, ...]:
    ids = [record.id for record in scenario.records]
    if len(set(ids)) != len(ids):
        raise InputError(scenario.name, "an id stands twice", "give each record its own id")
    strangers = {r.channel for r in scenario.records} - set(scenario.channels)
    if strangers and scenario.channels != "discovered":
        problem = f"records of {sorted(strangers)}, which are not among {scenario.channels}"
        raise InputError(scenario.name, problem, "name every channel in `channels`")
    gap_field = scenario.window.gap_field
    return tuple(
        Record(
            arrival_ms=record.arrival_ms,
            ts_ms=record.ts_ms,
            record_id=str(record.id),
            channel=record.channel,
            key=(record.key,),
            sequence=record.id,
            marker=record.marker,
            gap_ms=None if gap_field is None else getattr(record, gap_field),
            payload=record.model_dump(),
        )
        for record in scenario.records
    )
