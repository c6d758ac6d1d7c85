"""Pipelines whose records are the results of another pipeline's windows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from strandline.spec.source import key_of
from strandline.spec.values import Expression, Name, PipelineName, SpecModel
from strandline.spec.windowed import WindowedSpec


class Upstream(SpecModel):
    """Another pipeline's results as a source; every `Expression` is one of its columns or SQL.

    A result's event time is the last millisecond of its window, its arrival the instant of its
    firing, and the watermark is the other pipeline's own.

    Attributes:
        pipeline: the other pipeline.
        table: `windows`, the last firing of each; or `firings`, every one.
        key: as for any source; [] is one window for all.
    """

    pipeline: PipelineName
    table: Literal["windows", "firings"] = "windows"
    key: Annotated[dict[Name, Expression], BeforeValidator(key_of)] = Field(default_factory=dict)


class ChainedSpec(WindowedSpec):
    """Windows over the results of another pipeline's windows."""

    source: Upstream
