"""Pipelines of two sources, each with its own channels and watermarks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from strandline.spec import described
from strandline.spec.common import CommonSpec
from strandline.spec.pipeline import PipelineSpec, refuse_names_in_use
from strandline.spec.source import Source
from strandline.spec.values import Empty, SpecModel, checked_kind, parse_duration, refuse_at
from strandline.spec.watermark import Watermark
from strandline.spec.window import Session
from strandline.spec.windowed import WindowedSpec

_KINDS = ("interval", "window", "cogroup")
SIDES = ("left", "right")
"""The names of the sides, in the order of Flink's inputs 1 and 2."""


class Side(Source):
    """One of the two sources: a landing table, with the watermarks of its channels."""

    watermark: Watermark


class Sources(SpecModel):
    """`{left: …, right: …}`: both sources, whose keys have the same names in the same order."""

    left: Side
    right: Side

    @model_validator(mode="after")
    def _sides_match(self) -> Sources:
        if list(self.left.key) != list(self.right.key):
            problem = (
                f"not the key of the left source, {list(self.left.key)}; give both the same names"
            )
            refuse_at("right.key", list(self.right.key), problem)
        if (self.left.sequence is None) != (self.right.sequence is None):
            missing = "left" if self.left.sequence is None else "right"
            problem = "missing, and the other source has one; give both, or neither"
            refuse_at(f"{missing}.sequence", None, problem)
        for name, side in (("left", self.left), ("right", self.right)):
            if side.retired:
                problem = "not for a source that is joined; leave it out"
                refuse_at(f"{name}.retired", list(side.retired), problem)
        return self


def _bounds(value: Any) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        msg = "not two bounds; write [-5m, 10m]: right is from 5m before left to 10m after it"
        raise ValueError(msg)
    lower_ms, upper_ms = (parse_duration(bound) for bound in value)
    if lower_ms > upper_ms:
        msg = "the wrong way round; give the lower bound first"
        raise ValueError(msg)
    return lower_ms, upper_ms


class Interval(SpecModel):
    """`{interval: [LOWER, UPPER]}`: left.ts + lower <= right.ts <= left.ts + upper."""

    interval: Annotated[
        tuple[int, int], BeforeValidator(_bounds), WithJsonSchema(described.TWO_BOUNDS)
    ]
    lower_inclusive: bool = True
    upper_inclusive: bool = True

    @property
    def lower_ms(self) -> int:
        """The smallest right.ts - left.ts of a pair, in ms."""
        return self.interval[0] + (not self.lower_inclusive)

    @property
    def upper_ms(self) -> int:
        """The largest right.ts - left.ts of a pair, in ms."""
        return self.interval[1] - (not self.upper_inclusive)


class OverWindows(SpecModel):
    """`{window: {}}` or `{cogroup: {}}`: a join per window of all pairs, or of both sides' records.

    In a cogroup one side may be empty.
    """

    window: Empty | None = None
    cogroup: Empty | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> OverWindows:
        if (self.window is None) == (self.cogroup is None):
            refuse_at("cogroup", self.cogroup, "one of two kinds; write either window or cogroup")
        return self


_checked = BeforeValidator(checked_kind("join", _KINDS))


class IntervalJoinSpec(CommonSpec):
    """Pairs of records whose event times lie within bounds of each other."""

    sources: Sources
    join: Annotated[Interval, _checked]


class WindowJoinSpec(WindowedSpec):
    """Windows over the records of two sources."""

    sources: Sources
    join: Annotated[OverWindows, _checked]

    @model_validator(mode="after")
    def _result_columns_are_distinct(self) -> WindowJoinSpec:
        refuse_names_in_use(self.sources.left.key, self.aggregates, self.returns)
        return self


JoinSpec = IntervalJoinSpec | WindowJoinSpec
_LONGEST_GAP_MS = 300_000


def side_of(spec: JoinSpec, name: str) -> PipelineSpec:
    """One side of a join as a pipeline, which is how its records are read and observed.

    For an interval join its windows are sessions, so that a record is late by its event time
    alone. Their gap is the resolution of the stored watermark: the length of the interval, at most
    five minutes. A record at the watermark itself is not late, so a slot closes one millisecond
    after it fires.
    """
    side: Side = getattr(spec.sources, name)
    windows: dict[str, Any] = {}
    if isinstance(spec, IntervalJoinSpec):
        span_ms = spec.join.upper_ms - spec.join.lower_ms
        windows["window"] = Session(session=f"{max(1, min(span_ms, _LONGEST_GAP_MS))}ms")
        windows["allowed_lateness"] = 1
    source = Source.model_construct(**{part: getattr(side, part) for part in Source.model_fields})
    own = type(spec).model_fields.keys() - {"sources", "join"}
    fields = {name: getattr(spec, name) for name in own}
    return PipelineSpec.model_construct(
        **fields, **windows, source=source, watermark=side.watermark
    )
