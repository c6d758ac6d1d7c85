"""The kinds of windows, each written as a map whose first key is its kind."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag, model_validator

from strandline.model.windows import CumulativeWindows, SlidingWindows, TumblingWindows
from strandline.spec.values import Duration, Expression, Length, SpecModel, refuse_at

_KINDS = ("tumbling", "sliding", "session", "cumulative")
_LIKE_A_DURATION = re.compile(r"\s*-?\d[\d.]*\s*[A-Za-z]*\s*")


class Tumbling(SpecModel):
    """`{tumbling: SIZE, offset: OFFSET}`; Flink wants |offset| < size."""

    tumbling: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _offset_is_inside(self) -> Tumbling:
        if abs(self.offset) >= self.tumbling:
            problem = "not smaller than the size; give one between -size and size"
            refuse_at("offset", f"{self.offset}ms", problem)
        return self

    @property
    def assigner(self) -> TumblingWindows:
        """The rule that assigns records to these windows."""
        return TumblingWindows(self.tumbling, self.offset)


class Sliding(SpecModel):
    """`{sliding: SIZE, every: SLIDE, offset: OFFSET}`; Flink wants |offset| < slide."""

    sliding: Length
    every: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _offset_is_inside(self) -> Sliding:
        if abs(self.offset) >= self.every:
            problem = "not smaller than the slide; give one between -slide and slide"
            refuse_at("offset", f"{self.offset}ms", problem)
        return self

    @property
    def assigner(self) -> SlidingWindows:
        """The rule that assigns records to these windows."""
        return SlidingWindows(self.sliding, self.every, self.offset)


def _gap_kind(value: Any) -> str:
    written = not isinstance(value, str) or _LIKE_A_DURATION.fullmatch(value)
    return "duration" if written else "expression"


class Session(SpecModel):
    """`{session: GAP}`: a duration, or an expression giving one in ms."""

    session: Annotated[
        Annotated[Length, Tag("duration")] | Annotated[Expression, Tag("expression")],
        Discriminator(_gap_kind),
    ]

    @property
    def gap_ms(self) -> int | None:
        """The gap in ms; None: each record has its own."""
        return self.session if isinstance(self.session, int) else None


class Cumulative(SpecModel):
    """`{cumulative: MAX_SIZE, step: STEP, offset: OFFSET}`."""

    cumulative: Length
    step: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _steps_fill_the_size(self) -> Cumulative:
        if self.cumulative % self.step:
            problem = "not a multiple of the step; give a whole number of steps"
            refuse_at("cumulative", f"{self.cumulative}ms", problem)
        return self

    @property
    def assigner(self) -> CumulativeWindows:
        """The rule that assigns records to these windows."""
        return CumulativeWindows(self.cumulative, self.step, self.offset)


def _kind(value: Any) -> str | None:
    keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return next((kind for kind in _KINDS if kind in keys), None)


def _checked(value: Any) -> Any:
    if _kind(value) is None:
        msg = f"not a kind of window; the first key is one of {', '.join(_KINDS)}"
        raise ValueError(msg)
    return value


Window = Annotated[
    Annotated[Tumbling, Tag("tumbling")]
    | Annotated[Sliding, Tag("sliding")]
    | Annotated[Session, Tag("session")]
    | Annotated[Cumulative, Tag("cumulative")],
    Discriminator(_kind),
]
WindowField = Annotated[Window, BeforeValidator(_checked)]
