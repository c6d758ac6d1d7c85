"""What a window lets go of as it fires; each evictor is a map whose first key is its kind."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema

from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.spec import described
from strandline.spec.kinds import checked_kind, kind_among
from strandline.spec.values import Distance, Expression, Lateness, SpecModel, records_from

_KINDS = ("count", "time", "delta")


class _AnyEvictor(SpecModel):
    after: bool = False

    @property
    def goes_by_order(self) -> bool:
        """Whether what goes depends on the order in which the records stand in the window."""
        return True


class CountEvictor(_AnyEvictor):
    """`{count: 10}`: all but the last so many that have arrived."""

    count: Annotated[int, BeforeValidator(records_from(0)), WithJsonSchema(described.at_least(0))]


class TimeEvictor(_AnyEvictor):
    """`{time: 5m}`: what is at least this much older than the newest event time."""

    time: Lateness

    @property
    def goes_by_order(self) -> bool:
        """It goes by event times alone."""
        return False

    @property
    def reach_ms(self) -> int:
        """`time`; no longer than event times lie apart, so that no sum overflows."""
        return min(self.time, END_OF_INSTANTS_MS - LEAST_INSTANT_MS)


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
