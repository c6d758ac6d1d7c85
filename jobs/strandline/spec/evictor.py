"""The kinds of evictors, which remove records from a window when it fires.

Each is a map whose first key is its kind.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema

from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.spec import described
from strandline.spec.values import (
    Distance,
    Expression,
    Lateness,
    SpecModel,
    checked_kind,
    kind_among,
    records_from,
)

_KINDS = ("count", "time", "delta")
kind_of = kind_among(_KINDS)


class _AnyEvictor(SpecModel):
    goes_by_order: ClassVar[bool] = True
    """Whether the evicted records depend on the order of the records in the window."""

    after: bool = False


class CountEvictor(_AnyEvictor):
    """`{count: 10}`: evicts all records but the last ten by arrival."""

    count: Annotated[int, BeforeValidator(records_from(0)), WithJsonSchema(described.at_least(0))]


class TimeEvictor(_AnyEvictor):
    """`{time: 5m}`: evicts records at least this much older than the newest event time."""

    goes_by_order: ClassVar[bool] = False

    time: Lateness

    @property
    def reach_ms(self) -> int:
        """`time`, limited to the range of event times so that no sum overflows."""
        return min(self.time, END_OF_INSTANTS_MS - LEAST_INSTANT_MS)


class DeltaEvictor(_AnyEvictor):
    """`{delta: 3.0, of: EXPRESSION}`: evicts records whose value differs by `delta` or more.

    It is compared with the value of the record that arrived last. NaN differs from no value.
    """

    delta: Distance
    of: Expression


Evictor = Annotated[
    Annotated[CountEvictor, Tag("count")]
    | Annotated[TimeEvictor, Tag("time")]
    | Annotated[DeltaEvictor, Tag("delta")],
    Discriminator(kind_of),
]
EvictorField = Annotated[Evictor, BeforeValidator(checked_kind("evictor", _KINDS))]
