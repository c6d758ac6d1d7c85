"""The key `watermark`: the watermark strategy of a channel, its emission, and the combination."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag

from strandline.model.watermarks import Candidate
from strandline.spec.values import Expression, Lateness, Length, SpecModel, refuse_at


class Periodic(SpecModel):
    """Periodic emission with an interval in milliseconds; zero switches it off, as in Flink."""

    every: Lateness


def _emit(value: Any) -> Any:
    if value == "per_record" or isinstance(value, dict | Periodic):
        return value
    msg = "not an emission; write per_record or {every: 200ms}"
    raise ValueError(msg)


def _emission_kind(value: Any) -> str:
    return "per_record" if value == "per_record" else "periodic"


_Emission = Annotated[
    Annotated[Literal["per_record"], Tag("per_record")] | Annotated[Periodic, Tag("periodic")],
    Discriminator(_emission_kind),
]


class _Generator(SpecModel):
    """Attributes of every strategy.

    Attributes:
        emit: the emission of the watermark: `per_record`, or periodic, `{every: 200ms}`.
        idleness: the time without records after which a channel is idle and holds nothing back.
        combine: whether channels combine as inputs of the operator (`valve`), or as splits of one
            source (`splits`).
        bound: the largest expected delay of event times, as Flink's bounded out-of-orderness.
        lag: the distance of the watermark to processing time.
        marker: a condition for the records that carry a watermark.
        candidate: an expression for the watermark of a record: a timestamp, or null for none.
        assign_timestamps: whether the event time of a record is its arrival time.
        on_violation: the handling of records out of order.
    """

    bound_field: ClassVar[str | None] = None
    """The name of the field with the bound or lag; None if the strategy has neither."""
    behind_ms: ClassVar[int | None] = None
    """Its distance to the largest event time, without the bound; None: it does not follow it."""

    emit: Annotated[_Emission, BeforeValidator(_emit)] = Field(
        default_factory=lambda: Periodic.model_validate({"every": "200ms"})
    )
    idleness: Length | None = None
    combine: Literal["valve", "splits"] = "valve"

    @property
    def bound_ms(self) -> int | None:
        """The bound or lag in ms; None if the strategy has neither."""
        return None if self.bound_field is None else getattr(self, self.bound_field)

    @property
    def without_bound(self) -> Self:
        """The strategy with a bound or lag of zero: its watermark is higher by the bound or lag."""
        if self.bound_field is None:
            return self
        return self.model_copy(update={self.bound_field: 0})

    @property
    def interval_ms(self) -> int | None:
        """The emission interval in ms; 0: it never emits; None: it emits per record."""
        return None if self.emit == "per_record" else self.emit.every

    @property
    def idleness_in_effect(self) -> bool:
        """Whether channels can go idle: idleness is checked by periodic emission alone."""
        return self.idleness is not None and bool(self.interval_ms)

    @property
    def candidate(self) -> Candidate | None:
        """The watermark as a function of the largest event time; None for other generators.

        With a distance of 1 ms a record whose time equals the largest one is not late.
        """
        return None if self.behind_ms is None else Candidate((self.bound_ms or 0) + self.behind_ms)

    @property
    def lag_ms(self) -> int | None:
        """The lag to processing time in ms; None if the strategy does not use processing time."""
        return None

    @property
    def goes_by_the_clock(self) -> bool:
        """Whether the watermark depends on processing time only, and not on records."""
        return self.lag_ms is not None and bool(self.interval_ms)

    @property
    def arrival_is_event_time(self) -> bool:
        """Whether the event time of each record is its arrival time."""
        return False

    @property
    def emission_interval_ms(self) -> int | None:
        """The interval in ms at which records' watermarks are emitted; 0: never; None: at once."""
        return self.interval_ms

    @property
    def violation_handler(self) -> Literal["warn", "fail"] | None:
        """The handling of records that violate ascending order; None if they are not counted."""
        return None


class BoundedOutOfOrderness(_Generator):
    """Max event time − bound − 1. Flink: `BoundedOutOfOrdernessWatermarks`."""

    bound_field: ClassVar[str | None] = "bound"
    behind_ms: ClassVar[int | None] = 1

    strategy: Literal["bounded_out_of_orderness"]
    bound: Lateness


class LegacyBoundedOutOfOrderness(_Generator):
    """Max event time − bound. Flink: `BoundedOutOfOrdernessTimestampExtractor`."""

    bound_field: ClassVar[str | None] = "bound"
    behind_ms: ClassVar[int | None] = 0

    strategy: Literal["legacy_bounded_out_of_orderness"]
    bound: Lateness


class Ascending(_Generator):
    """Max event time − 1. Flink: `AscendingTimestampsWatermarks`."""

    behind_ms: ClassVar[int | None] = 1

    strategy: Literal["ascending"]


class LegacyAscending(_Generator):
    """Max event time − 1, with a handler for violations. Flink: `AscendingTimestampExtractor`.

    A violation does not change the watermark.
    """

    behind_ms: ClassVar[int | None] = 1

    strategy: Literal["legacy_ascending"]
    on_violation: Literal["warn", "fail", "ignore"] = "warn"

    @property
    def violation_handler(self) -> Literal["warn", "fail"] | None:
        """Flink: `LoggingHandler`, `FailingHandler`, `IgnoringHandler`."""
        return None if self.on_violation == "ignore" else self.on_violation


class Punctuated(_Generator):
    """The event time of each marked record, emitted at once."""

    strategy: Literal["punctuated"]
    marker: Expression

    @property
    def emission_interval_ms(self) -> None:
        """None: it emits at once, whatever the interval is."""
        return


class TimeLag(_Generator):
    """Processing time − lag, at every emission."""

    bound_field: ClassVar[str | None] = "lag"

    strategy: Literal["time_lag"]
    lag: Lateness

    @property
    def lag_ms(self) -> int:
        """The lag."""
        return self.lag


class Ingestion(_Generator):
    """Processing time − 1; the event time of a record is its arrival, unless set otherwise."""

    strategy: Literal["ingestion"]
    assign_timestamps: bool = True

    @property
    def arrival_is_event_time(self) -> bool:
        """True, unless set otherwise."""
        return self.assign_timestamps

    @property
    def lag_ms(self) -> int:
        """One millisecond: a record of the current millisecond is not late."""
        return 1


class CandidateExpression(_Generator):
    """The watermark of a record by an expression; null for none."""

    strategy: Literal["expression"]
    candidate_: Expression = Field(alias="candidate")


class NoWatermarks(_Generator):
    """No watermark before the end of the input. Flink: `NoWatermarksGenerator`."""

    strategy: Literal["none"]


_STRATEGIES = (
    "bounded_out_of_orderness",
    "legacy_bounded_out_of_orderness",
    "ascending",
    "legacy_ascending",
    "punctuated",
    "time_lag",
    "ingestion",
    "expression",
    "none",
)


def _known_strategy(value: Any) -> Any:
    if isinstance(value, dict) and value.get("strategy") not in _STRATEGIES:
        what = "not a strategy" if "strategy" in value else "missing"
        problem = f"{what}; choose one of {', '.join(_STRATEGIES)}"
        refuse_at("strategy", value.get("strategy"), problem)
    return value


_AnyStrategy = Annotated[
    BoundedOutOfOrderness
    | LegacyBoundedOutOfOrderness
    | Ascending
    | LegacyAscending
    | Punctuated
    | TimeLag
    | Ingestion
    | CandidateExpression
    | NoWatermarks,
    Field(discriminator="strategy"),
]
Watermark = Annotated[_AnyStrategy, BeforeValidator(_known_strategy)]
