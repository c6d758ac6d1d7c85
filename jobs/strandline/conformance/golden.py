"""The JSON format of scenarios; the goldens' README explains its fields."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class GoldenWindow(_Part):
    """The value of a scenario's key `window`."""

    kind: str
    size_ms: int | None = None
    slide_ms: int | None = None
    offset_ms: int = 0
    gap_ms: int | None = None
    gap_field: Literal["gap_ms", "value"] | None = None


class GoldenWatermark(_Part):
    """The value of the key `watermark` of a scenario, or of one of its inputs."""

    strategy: str
    emit: Literal["periodic", "per_record"]
    emit_interval_ms: int | None = None
    bound_ms: int | None = None
    lag_ms: int | None = None
    assign_timestamps: bool | None = None
    idleness_ms: int | None = None
    combine: Literal["valve", "splits"] = "valve"


class GoldenTrigger(_Part):
    """The value of a scenario's key `trigger`."""

    kind: str
    interval_ms: int | None = None
    n: int | None = None
    threshold: float | None = None
    purging: bool = False


class GoldenEvictor(_Part):
    """The value of a scenario's key `evictor`."""

    kind: str
    n: int | None = None
    ms: int | None = None
    threshold: float | None = None
    after: bool = False


class GoldenInput(_Part):
    """One of two `inputs`."""

    watermark: GoldenWatermark
    channels: Literal["discovered"] | list[str]


class GoldenInputs(_Part):
    """The value of a scenario's key `inputs`."""

    left: GoldenInput
    right: GoldenInput


class GoldenJoin(_Part):
    """The value of a scenario's key `join`."""

    kind: str
    lower_ms: int | None = None
    upper_ms: int | None = None
    lower_inclusive: bool = True
    upper_inclusive: bool = True


class GoldenThen(_Part):
    """`then`: the second windows."""

    window: GoldenWindow
    allowed_lateness_ms: int = Field(ge=0)
    key: Literal["same", "all"]


class GoldenRecord(_Part):
    """One of the `records`."""

    id: int
    arrival_ms: int
    ts_ms: int
    channel: str
    key: str
    value: int
    marker: bool = False
    gap_ms: int | None = None
    input: Literal["left", "right"] | None = None


class AnyScenario(_Part):
    """The fields of every scenario."""

    name: str
    clock_start_ms: int
    end_of_input: Literal["hold", "max_watermark"]
    records: list[GoldenRecord]
    output: dict[str, Any] | None = None


class GoldenScenario(AnyScenario):
    """A scenario of one input."""

    window: GoldenWindow
    allowed_lateness_ms: int = Field(ge=0)
    watermark: GoldenWatermark
    channels: Literal["discovered"] | list[str]
    trigger: GoldenTrigger | None = None
    evictor: GoldenEvictor | None = None
    then: GoldenThen | None = None


class GoldenTwoInputs(AnyScenario):
    """A scenario of two inputs."""

    join: GoldenJoin
    inputs: GoldenInputs
    window: GoldenWindow | None = None
    allowed_lateness_ms: int = Field(ge=0, default=0)
    trigger: GoldenTrigger | None = None
    evictor: GoldenEvictor | None = None


def first_mistake(error: ValidationError) -> str:
    """The first mistake in a JSON value: its path and the problem."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
