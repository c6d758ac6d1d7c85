"""The kinds of triggers, which decide when a window fires.

Each is a map whose first key is its kind.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Discriminator, Tag

from strandline.spec.values import Count as AtLeastOne
from strandline.spec.values import (
    Distance,
    Empty,
    Expression,
    Length,
    SpecModel,
    checked_kind,
    kind_among,
)

_KINDS = ("event_time", "continuous", "count", "delta", "never", "end_of_input")


class _AnyTrigger(SpecModel):
    fires_early: ClassVar[bool] = False
    """Whether a window may fire before the watermark has reached its end."""
    fires_at_end: ClassVar[bool] = True
    """Whether a window fires with all its records when the watermark reaches its end."""

    purging: bool = False


class EventTime(_AnyTrigger):
    """`{event_time: {}}`: fires at the window's end, and again with each late accepted record."""

    event_time: Empty = Empty()


class Continuous(_AnyTrigger):
    """`{continuous: 10m}`: fires at every multiple of an interval, and at the window's end."""

    fires_early: ClassVar[bool] = True

    continuous: Length


class Count(_AnyTrigger):
    """`{count: 100}`: fires at every hundredth record, and never at the window's end."""

    fires_early: ClassVar[bool] = True
    fires_at_end: ClassVar[bool] = False

    count: AtLeastOne


class Delta(_AnyTrigger):
    """`{delta: 5.0, of: EXPRESSION}`: fires at a value further than this from the last that fired.

    It compares with the window's first record until one has fired. It never fires at the end.
    """

    fires_early: ClassVar[bool] = True
    fires_at_end: ClassVar[bool] = False

    delta: Distance
    of: Expression


class Never(_AnyTrigger):
    """`{never: {}}`: fires no window; the default of a global window, as in Flink."""

    fires_at_end: ClassVar[bool] = False

    never: Empty = Empty()


class EndOfInput(_AnyTrigger):
    """`{end_of_input: {}}`: a global window fires when the input has ended."""

    end_of_input: Empty = Empty()


Trigger = Annotated[
    Annotated[EventTime, Tag("event_time")]
    | Annotated[Continuous, Tag("continuous")]
    | Annotated[Count, Tag("count")]
    | Annotated[Delta, Tag("delta")]
    | Annotated[Never, Tag("never")]
    | Annotated[EndOfInput, Tag("end_of_input")],
    Discriminator(kind_among(_KINDS)),
]
TriggerField = Annotated[Trigger, BeforeValidator(checked_kind("trigger", _KINDS))]
