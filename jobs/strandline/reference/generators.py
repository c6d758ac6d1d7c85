"""Watermark generators: the watermark that a source partition offers, and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from strandline.errors import InputError
from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.records import Record
from strandline.spec.watermark import (
    CandidateExpression,
    Ingestion,
    LegacyAscending,
    Punctuated,
    TimeLag,
    Watermark,
)


class Generator(ABC):
    """A generator of the watermarks of one source partition. Flink: `WatermarkGenerator`.

    Attributes:
        violations: the number of records below an earlier one, if it assumes ascending times.
    """

    violations = 0

    def on_event(self, record: Record) -> int | None:
        """Process a record; the watermark in ms that it offers without a tick, or None."""
        return None

    @abstractmethod
    def on_periodic_emit(self, now_ms: int) -> int | None:
        """The watermark in ms that a tick at a processing time emits; None: no offer."""

    def is_settled(self) -> bool:
        """Whether ticks offer nothing new until the next record."""
        return True


class NoWatermarksGenerator(Generator):
    """A generator that offers nothing. Flink: `NoWatermarksGenerator`."""

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """None, on every tick."""
        return None


class MaxBased(Generator):
    """A generator that offers the largest *candidate* so far: event time minus a delay.

    Before the first candidate it offers MIN_WATERMARK. Flink: `BoundedOutOfOrdernessWatermarks`,
    `AscendingTimestampsWatermarks`.
    """

    def __init__(self, candidate: Callable[[Record], int | None]) -> None:
        """Take the candidate of each record, in ms, from a rule; None: the record has none."""
        self._candidate = candidate
        self._largest_ms = MIN_WATERMARK
        self._seen_ms = MIN_WATERMARK

    def on_event(self, record: Record) -> int | None:
        """Keep the largest candidate; the next tick offers it."""
        candidate_ms = self._candidate(record)
        if candidate_ms is not None:
            self._largest_ms = max(self._largest_ms, candidate_ms)
        return None

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """The largest candidate so far."""
        self._seen_ms = self._largest_ms
        return self._largest_ms

    def is_settled(self) -> bool:
        """Whether the last tick has offered the largest candidate."""
        return self._seen_ms == self._largest_ms


class AscendingExtractor(MaxBased):
    """A generator that offers the largest event time minus 1 ms, and handles *violations*.

    A violation is a record with a smaller event time than an earlier one; an equal event time is
    none. Flink: `AscendingTimestampExtractor`.
    """

    def __init__(self, candidate: Callable[[Record], int | None], *, fail: bool) -> None:
        """Count violations, or with `fail` raise an error at the first one."""
        super().__init__(candidate)
        self._fail = fail
        self._last_ms: int | None = None
        self.violations = 0

    def on_event(self, record: Record) -> int | None:
        """Keep the largest candidate, and handle a violation."""
        if self._last_ms is not None and record.ts_ms < self._last_ms:
            self.violations += 1
            if self._fail:
                raise InputError(
                    f"record {record.record_id}",
                    f"event time {record.ts_ms} is smaller than {self._last_ms} before it, which "
                    "on_violation: fail forbids",
                    "choose on_violation: warn, or a bound for the disorder",
                )
        self._last_ms = record.ts_ms if self._last_ms is None else max(record.ts_ms, self._last_ms)
        return super().on_event(record)


class PunctuatedGenerator(Generator):
    """A generator that offers the event time of each marked record at once.

    Flink: a `WatermarkGenerator` that emits in `onEvent`.
    """

    def on_event(self, record: Record) -> int | None:
        """The event time, in ms, of a marked record; None: it has no mark."""
        return record.ts_ms if record.marker else None

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """None: a tick offers nothing."""
        return None


class ProcessingTimeLag(Generator):
    """A generator that offers the processing time minus a lag, on every tick.

    Flink: `TimeLagWatermarkGenerator` in the documentation.
    """

    def __init__(self, lag_ms: int) -> None:
        """Stay a lag in ms behind the clock."""
        self._lag_ms = lag_ms

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """The clock minus the lag, never below MIN_WATERMARK."""
        return max(now_ms - self._lag_ms, MIN_WATERMARK)

    def is_settled(self) -> bool:
        """False: the clock advances."""
        return False


def generator_of(watermark: Watermark) -> Generator:
    """A fresh generator of a pipeline's strategy, for one source partition."""
    if isinstance(watermark, Punctuated):
        return PunctuatedGenerator()
    if isinstance(watermark, TimeLag):
        return ProcessingTimeLag(watermark.lag)
    if isinstance(watermark, Ingestion):
        return ProcessingTimeLag(1)
    if isinstance(watermark, CandidateExpression):
        return MaxBased(lambda record: record.candidate_ms)
    rule = watermark.candidate
    if rule is None:  # the strategy `none`
        return NoWatermarksGenerator()
    if isinstance(watermark, LegacyAscending):
        fail = watermark.on_violation == "fail"
        return AscendingExtractor(lambda record: rule.of(record.ts_ms), fail=fail)
    return MaxBased(lambda record: rule.of(record.ts_ms))


class IdlenessTimer:
    """Decides on ticks whether a source partition has been silent for longer than a timeout.

    At the first tick after a record the partition is active. The next tick without a new record
    starts the timer, and the partition is idle at the first such tick that is *more* than the
    timeout later. Flink: `WatermarksWithIdleness.IdlenessTimer`.
    """

    def __init__(self, timeout_ms: int) -> None:
        """Start without a record, and without a timer."""
        self._timeout_ms = timeout_ms
        self._active = False
        self._quiet_since_ms: int | None = None

    def activity(self) -> None:
        """Note a record: at the next tick the partition is active."""
        self._active = True

    def check_if_idle(self, now_ms: int) -> bool:
        """Whether the partition is idle at a tick."""
        if self._active:
            self._active, self._quiet_since_ms = False, None
            return False
        if self._quiet_since_ms is None:
            self._quiet_since_ms = now_ms
            return False
        return now_ms - self._quiet_since_ms > self._timeout_ms
