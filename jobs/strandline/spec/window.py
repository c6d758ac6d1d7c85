"""The kinds of windows, each written as a map whose first key is its kind."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from strandline.model.windows import CumulativeWindows, SlidingWindows, TumblingWindows
from strandline.spec import described
from strandline.spec.values import (
    Count,
    Duration,
    Empty,
    Expression,
    Length,
    SpecModel,
    checked_kind,
    kind_among,
    refuse_at,
    written,
)

_KINDS = ("tumbling", "sliding", "session", "cumulative", "global", "count")
_LIKE_A_DURATION = re.compile(r"\s*-?\d[\d.]*\s*[A-Za-z]*\s*")


class WindowRule(SpecModel):
    """A kind of windows.

    Attributes:
        merging: whether windows of a key that overlap are merged. Flink: `MergingWindowAssigner`.
        all_time: whether a key has a single window for all event times.
        overlapping: whether a record may be in several windows.
    """

    merging: ClassVar[bool] = False
    all_time: ClassVar[bool] = False
    overlapping: ClassVar[bool] = False

    @property
    def least_length_ms(self) -> int:
        """The length of a window in ms; for sessions, the length of one with a single record.

        It is 0 if it is not known, as for gaps by record, or there is none.
        """
        return 0

    @property
    def gap_of_record(self) -> str | None:
        """The expression for the session gap of each record; None if there is none."""
        return None

    @property
    def leaves_gaps(self) -> bool:
        """Whether there are event times in no window, as with a slide longer than the size."""
        return False


def _require_smaller(offset_ms: int, length_ms: int, name: str) -> None:
    """Refuse an offset that is not smaller than the size, or the slide, of windows."""
    if abs(offset_ms) >= length_ms:
        problem = f"not smaller than the {name}; give one between -{name} and {name}"
        refuse_at("offset", written(offset_ms), problem)


class Tumbling(WindowRule):
    """`{tumbling: SIZE, offset: OFFSET}`; Flink wants |offset| < size."""

    tumbling: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _offset_is_inside(self) -> Tumbling:
        _require_smaller(self.offset, self.tumbling, "size")
        return self

    @property
    def least_length_ms(self) -> int:
        """See `WindowRule`."""
        return self.tumbling

    @property
    def assigner(self) -> TumblingWindows:
        """The rule that assigns records to these windows."""
        return TumblingWindows(self.tumbling, self.offset)


class Sliding(WindowRule):
    """`{sliding: SIZE, every: SLIDE, offset: OFFSET}`; Flink wants |offset| < slide."""

    overlapping: ClassVar[bool] = True

    sliding: Length
    every: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _offset_is_inside(self) -> Sliding:
        _require_smaller(self.offset, self.every, "slide")
        return self

    @property
    def least_length_ms(self) -> int:
        """See `WindowRule`."""
        return self.sliding

    @property
    def leaves_gaps(self) -> bool:
        """See `WindowRule`."""
        return self.every > self.sliding

    @property
    def assigner(self) -> SlidingWindows:
        """The rule that assigns records to these windows."""
        return SlidingWindows(self.sliding, self.every, self.offset)


def _gap_kind(value: Any) -> str:
    written = not isinstance(value, str) or _LIKE_A_DURATION.fullmatch(value)
    return "duration" if written else "expression"


class Session(WindowRule):
    """`{session: GAP}`: a duration, or an expression giving one in ms."""

    merging: ClassVar[bool] = True

    session: Annotated[
        Annotated[Length, Tag("duration")] | Annotated[Expression, Tag("expression")],
        Discriminator(_gap_kind),
        WithJsonSchema(described.EXPRESSION),
    ]

    @property
    def gap_ms(self) -> int | None:
        """The gap in ms; None if each record has its own."""
        return self.session if isinstance(self.session, int) else None

    @property
    def gap_of_record(self) -> str | None:
        """See `WindowRule`."""
        return self.session if isinstance(self.session, str) else None

    @property
    def least_length_ms(self) -> int:
        """See `WindowRule`."""
        return self.gap_ms or 0


class Cumulative(WindowRule):
    """`{cumulative: MAX_SIZE, step: STEP, offset: OFFSET}`."""

    overlapping: ClassVar[bool] = True

    cumulative: Length
    step: Length
    offset: Duration = 0

    @model_validator(mode="after")
    def _steps_fill_the_size(self) -> Cumulative:
        if self.cumulative % self.step:
            problem = "not a multiple of the step; give a whole number of steps"
            refuse_at("cumulative", written(self.cumulative), problem)
        return self

    @property
    def least_length_ms(self) -> int:
        """See `WindowRule`."""
        return self.cumulative

    @property
    def assigner(self) -> CumulativeWindows:
        """The rule that assigns records to these windows."""
        return CumulativeWindows(self.cumulative, self.step, self.offset)


class Global(WindowRule):
    """`{global: {}}`: one window for all records of a key. Flink: `GlobalWindows`."""

    all_time: ClassVar[bool] = True

    global_: Empty = Field(alias="global")


class CountWindow(WindowRule):
    """`{count: N, every: SLIDE}`: the last N records of a key, fired at every SLIDE-th record.

    Without `every`, each record is in exactly one window. Flink: `countWindow`.
    """

    all_time: ClassVar[bool] = True

    count: Count
    every: Count | None = None


GridWindow = Tumbling | Sliding | Cumulative
"""Windows whose starts are on a grid; they have an `assigner`."""
WindowOfAllTime = Global | CountWindow
"""Windows of which a key has only one, for all event times."""
Window = Annotated[
    Annotated[Tumbling, Tag("tumbling")]
    | Annotated[Sliding, Tag("sliding")]
    | Annotated[Session, Tag("session")]
    | Annotated[Cumulative, Tag("cumulative")]
    | Annotated[Global, Tag("global")]
    | Annotated[CountWindow, Tag("count")],
    Discriminator(kind_among(_KINDS)),
]
WindowField = Annotated[Window, BeforeValidator(checked_kind("window", _KINDS))]
