"""The watermark generator of a channel, when it emits, and how channels combine."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag

from strandline.model.watermarks import Candidate
from strandline.spec.values import Expression, Lateness, Length, SpecModel, refuse_at


class Periodic(SpecModel):
    """Emission on ticks, every so many milliseconds; zero is Flink's "off"."""

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
        emit: when the watermark becomes visible: `per_record`, or on ticks, `{every: 200ms}`.
        idleness: a channel without records for so long holds nothing back.
        combine: whether channels combine as inputs of the operator (`valve`), or as splits of one
            source.
        bound: how far event times may be out of order.
        lag: how far the watermark lags behind processing time.
        marker: a condition: the records that carry a watermark.
        candidate: the watermark that a record offers, a timestamp or null.
        assign_timestamps: whether the event time of a record is its arrival.
        on_violation: what is done about records that are out of order.
    """

    bound_field: ClassVar[str | None] = None
    """The field that says how far the watermark lags by choice; None: there is none."""

    emit: Annotated[_Emission, BeforeValidator(_emit)] = Field(
        default_factory=lambda: Periodic.model_validate({"every": "200ms"})
    )
    idleness: Length | None = None
    combine: Literal["valve", "splits"] = "valve"

    @property
    def bound_ms(self) -> int | None:
        """The bound, or the lag behind processing time, in ms; None: the strategy has neither."""
        return None if self.bound_field is None else getattr(self, self.bound_field)

    @property
    def without_bound(self) -> Self:
        """The same with a bound, or lag, of zero: its watermark is higher by just so much."""
        if self.bound_field is None:
            return self
        return self.model_copy(update={self.bound_field: 0})

    @property
    def interval_ms(self) -> int | None:
        """The emission interval in ms; 0: never; None: per record."""
        return None if self.emit == "per_record" else self.emit.every

    @property
    def idleness_in_effect(self) -> bool:
        """Whether channels can go idle at all: only periodic emission judges idleness."""
        return self.idleness is not None and bool(self.interval_ms)

    @property
    def candidate(self) -> Candidate | None:
        """The rule of a generator that goes by the largest event time, None for the others."""
        return None

    @property
    def lag_ms(self) -> int | None:
        """How far the watermark lags behind processing time, where it goes by that."""
        return None

    @property
    def goes_by_the_clock(self) -> bool:
        """Whether ticks alone decide what is offered, and records nothing."""
        return self.lag_ms is not None and bool(self.interval_ms)

    @property
    def emission_interval_ms(self) -> int | None:
        """The interval at which what records offer becomes visible; 0: never; None: at once."""
        return self.interval_ms

    @property
    def violation_handler(self) -> Literal["warn", "fail"] | None:
        """What is done about records that break an assumed order; None: they are not counted."""
        return None


class BoundedOutOfOrderness(_Generator):
    """Max event time − bound − 1. Flink: `BoundedOutOfOrdernessWatermarks`."""

    bound_field: ClassVar[str | None] = "bound"

    strategy: Literal["bounded_out_of_orderness"]
    bound: Lateness

    @property
    def candidate(self) -> Candidate:
        """The bound and one millisecond behind the largest event time."""
        return Candidate(self.bound + 1)


class LegacyBoundedOutOfOrderness(_Generator):
    """Max event time − bound. Flink: `BoundedOutOfOrdernessTimestampExtractor`."""

    bound_field: ClassVar[str | None] = "bound"

    strategy: Literal["legacy_bounded_out_of_orderness"]
    bound: Lateness

    @property
    def candidate(self) -> Candidate:
        """The bound behind the largest event time, without the one millisecond."""
        return Candidate(self.bound)


class Ascending(_Generator):
    """Max event time − 1. Flink: `AscendingTimestampsWatermarks`."""

    strategy: Literal["ascending"]

    @property
    def candidate(self) -> Candidate:
        """One millisecond behind the largest event time: an equal one is not late."""
        return Candidate(1)


class LegacyAscending(_Generator):
    """Max event time − 1, with a handler for violations. Flink: `AscendingTimestampExtractor`."""

    strategy: Literal["legacy_ascending"]
    on_violation: Literal["warn", "fail", "ignore"] = "warn"

    @property
    def candidate(self) -> Candidate:
        """As for ascending: a violation moves nothing."""
        return Candidate(1)

    @property
    def violation_handler(self) -> Literal["warn", "fail"] | None:
        """Flink: `LoggingHandler`, `FailingHandler`, `IgnoringHandler`."""
        return None if self.on_violation == "ignore" else self.on_violation


class Punctuated(_Generator):
    """The event time of each marked record, at once."""

    strategy: Literal["punctuated"]
    marker: Expression

    @property
    def emission_interval_ms(self) -> None:
        """At once, whatever the interval of the ticks."""
        return


class TimeLag(_Generator):
    """Processing time − lag, on every probe."""

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
    def lag_ms(self) -> int:
        """One millisecond: a record of this very millisecond is not late."""
        return 1


class CandidateExpression(_Generator):
    """The candidate watermark of a record by an expression; null offers nothing."""

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
