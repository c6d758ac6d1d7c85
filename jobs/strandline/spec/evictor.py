"""What a window lets go of as it fires; each evictor is a map whose first key is its kind."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from strandline.spec.kinds import checked_kind, kind_among
from strandline.spec.values import Distance, Expression, Lateness, SpecModel

_KINDS = ("count", "time", "delta")


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = "not a number of records; give a whole number of zero or more"
        raise ValueError(msg)
    return value


class _AnyEvictor(SpecModel):
    after: bool = False

    @property
    def goes_by_order(self) -> bool:
        """Whether what goes depends on the order in which the records stand in the window."""
        return True


class CountEvictor(_AnyEvictor):
    """`{count: 10}`: all but the last so many that have arrived."""

    count: Annotated[int, BeforeValidator(_number)]


class TimeEvictor(_AnyEvictor):
    """`{time: 5m}`: what is at least this much older than the newest event time."""

    time: Lateness

    @property
    def goes_by_order(self) -> bool:
        """It goes by event times alone."""
        return False


class DeltaEvictor(_AnyEvictor):
    """`{delta: 3.0, of: EXPRESSION}`: whose value is at least this far from the last arrival's."""

    delta: Distance
    of: Expression


Evictor = Annotated[
    Annotated[CountEvictor, Tag("count")]
    | Annotated[TimeEvictor, Tag("time")]
    | Annotated[DeltaEvictor, Tag("delta")],
    Discriminator(kind_among(_KINDS)),
]
EvictorField = Annotated[Evictor, BeforeValidator(checked_kind("evictor", _KINDS))]
