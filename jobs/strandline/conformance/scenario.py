"""A scenario of the goldens as a pipeline's spec and its records."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from strandline.conformance.golden import (
    AnyScenario,
    GoldenScenario,
    GoldenTwoInputs,
    first_mistake,
)
from strandline.conformance.pipelines import (
    EVICTORS,
    JOINS,
    STRATEGIES,
    TRIGGERS,
    WINDOWS,
    chained_of,
    pipeline_of,
)
from strandline.errors import InputError
from strandline.reference.records import Record
from strandline.spec import AnySpec, parse_any
from strandline.spec.chained import ChainedSpec


class Unsupported(Exception):
    """A scenario has features that pipelines or the engine do not support."""

    def __init__(self, *features: str) -> None:
        """Keep the features by name."""
        self.features = features
        super().__init__(", ".join(features))


@dataclass(frozen=True)
class Scenario:
    """A scenario, ready to run.

    Attributes:
        name: its name in the goldens.
        spec: its pipeline; the columns have the names of the golden's record fields.
        records: its records; `payload` has `id`, `value` and the other given fields.
        start_ms: the start of the job's clock.
        end_of_input: whether the input ends after the last record.
    """

    name: str
    spec: AnySpec
    records: tuple[Record, ...]
    start_ms: int
    end_of_input: bool

    @property
    def horizon_ms(self) -> int:
        """The instant just after the last arrival: there is no later record and no later tick."""
        return max((r.arrival_ms for r in self.records), default=self.start_ms) + 1


@dataclass(frozen=True)
class ChainedScenario(Scenario):
    """A scenario with second windows over its results; `then` is their pipeline."""

    then: ChainedSpec


def read_scenario(content: Mapping[str, Any]) -> Scenario:
    """The scenario of a golden.

    Raises:
        Unsupported: pipelines do not support one of its features.
        InputError: a field is missing, of the wrong type or impossible.
    """
    name = str(content.get("name"))
    shape = GoldenTwoInputs if {"join", "inputs"} & content.keys() else GoldenScenario
    foreign = _foreign_features(content, shape)
    if foreign:
        raise Unsupported(*foreign)
    try:
        parsed = shape.model_validate(content)
    except ValidationError as error:
        raise InputError(name, first_mistake(error), "see the format of the goldens") from None
    scenario = Scenario(
        name=name,
        spec=parse_any(pipeline_of(parsed), origin=name),
        records=_records(parsed),
        start_ms=parsed.clock_start_ms,
        end_of_input=parsed.end_of_input == "max_watermark",
    )
    if isinstance(parsed, GoldenTwoInputs) or parsed.then is None:
        return scenario
    then = parse_any(chained_of(parsed.then), origin=f"{name}: then")
    return ChainedScenario(**vars(scenario), then=cast("ChainedSpec", then))


def _foreign_features(content: Mapping[str, Any], shape: type[AnyScenario]) -> list[str]:
    """The features that pipeline files do not have."""
    features = []
    for (name, field), known in _KINDS.items():
        for part in _parts(content):
            value = part.get(name)
            kind = value.get(field) if isinstance(value, dict) else None
            if kind is not None and kind not in known:
                features.append(f"{name}.{field}: {kind}")
    return features + [f"scenario.{field}" for field in content if field not in shape.model_fields]


_KINDS: Mapping[tuple[str, str], Container[str]] = {
    ("join", "kind"): JOINS,
    ("trigger", "kind"): TRIGGERS,
    ("evictor", "kind"): EVICTORS,
    ("window", "kind"): WINDOWS,
    ("watermark", "strategy"): STRATEGIES,
}
"""The kinds that pipeline files have, by the key of a scenario's part and the key of its kind."""


def _parts(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The scenario, its inputs and its second windows: the parts with windows or watermarks."""
    inputs = content.get("inputs")
    sides = inputs.values() if isinstance(inputs, dict) else []
    return [part for part in (content, content.get("then"), *sides) if isinstance(part, dict)]


def _records(scenario: GoldenScenario | GoldenTwoInputs) -> tuple[Record, ...]:
    ids = [record.id for record in scenario.records]
    if len(set(ids)) != len(ids):
        raise InputError(scenario.name, "two records have one id", "give each record its own id")
    _check_channels(scenario)
    gap_field = None if scenario.window is None else scenario.window.gap_field
    return tuple(
        Record(
            arrival_ms=record.arrival_ms,
            ts_ms=record.ts_ms,
            record_id=str(record.id),
            channel=record.channel,
            input=record.input or "",
            key=(record.key,),
            sequence=record.id,
            marker=record.marker,
            gap_ms=None if gap_field is None else getattr(record, gap_field),
            trigger_value=record.value,
            evictor_value=record.value,
            payload=record.model_dump(),
        )
        for record in scenario.records
    )


def _check_channels(scenario: GoldenScenario | GoldenTwoInputs) -> None:
    """Refuse records of an input or a channel that the scenario does not have."""
    channels: dict[str | None, Any] = {}
    if isinstance(scenario, GoldenScenario):
        channels[None] = scenario.channels
    else:
        channels |= {"left": scenario.inputs.left.channels, "right": scenario.inputs.right.channels}
    for record in scenario.records:
        if record.input not in channels:
            problem = f"record {record.id} is of input {record.input}, which is none of its inputs"
            raise InputError(scenario.name, problem, "see the format of the goldens")
    for name, declared in channels.items():
        own = {record.channel for record in scenario.records if record.input == name}
        if declared != "discovered" and own - set(declared):
            problem = f"records of {sorted(own - set(declared))}, which are not among {declared}"
            raise InputError(scenario.name, problem, "name every channel in `channels`")
