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
        violations: the number of records that broke an ascending order that the generator assumes.
    """

    violations = 0

    def on_event(self, record: Record) -> int | None:
        """Process a record; the watermark that it offers at once, or None."""
        return None

    @abstractmethod
    def on_periodic_emit(self, now_ms: int) -> int | None:
        """The offer of a probe at a processing time; None: no offer."""

    def is_settled(self) -> bool:
        """Whether probes offer nothing new until the next record."""
        return True


class NoWatermarksGenerator(Generator):
    """A generator that offers nothing. Flink: `NoWatermarksGenerator`."""

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """None."""
        return None


class MaxBased(Generator):
    """The largest candidate so far; before the first one MIN_WATERMARK, which is an offer, too.

    Flink: `BoundedOutOfOrdernessWatermarks` and its kin.
    """

    def __init__(self, candidate: Callable[[Record], int | None]) -> None:
        """A generator whose candidates come from a rule; None: a record has no candidate."""
        self._candidate = candidate
        self._largest_ms = MIN_WATERMARK
        self._seen_ms = MIN_WATERMARK

    def on_event(self, record: Record) -> int | None:
        """Keep the largest candidate; it becomes visible with the next probe."""
        candidate_ms = self._candidate(record)
        if candidate_ms is not None:
            self._largest_ms = max(self._largest_ms, candidate_ms)
        return None

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """The largest candidate so far."""
        self._seen_ms = self._largest_ms
        return self._largest_ms

    def is_settled(self) -> bool:
        """Whether the last probe has offered the largest candidate."""
        return self._seen_ms == self._largest_ms


class AscendingExtractor(MaxBased):
    """The largest event time minus one, with a handler for smaller event times that follow.

    Flink: `AscendingTimestampExtractor`; an equal event time is no violation.
    """

    def __init__(self, candidate: Callable[[Record], int | None], *, fail: bool) -> None:
        """Count violations, or fail at the first."""
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
    """The event time of a marked record, at once. Flink: `onEvent` that emits."""

    def on_event(self, record: Record) -> int | None:
        """The event time of a marked record."""
        return record.ts_ms if record.marker else None

    def on_periodic_emit(self, now_ms: int) -> int | None:
        """None: only records offer."""
        return None


class ProcessingTimeLag(Generator):
    """The processing time minus a lag, on every probe. Flink: a time-lag generator."""

    def __init__(self, lag_ms: int) -> None:
        """Stay this far behind the clock."""
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
    """Whether a source partition has been silent for longer than a timeout, checked only on ticks.

    The first tick after a record sees activity; the first quiet tick starts the timer at that tick,
    and the partition is idle at the first later quiet tick that is *more* than the timeout after
    it. Flink: `WatermarksWithIdleness.IdlenessTimer`.
    """

    def __init__(self, timeout_ms: int) -> None:
        """Start without a record, and without a timer."""
        self._timeout_ms = timeout_ms
        self._active = False
        self._quiet_since_ms: int | None = None

    def activity(self) -> None:
        """Note that a record has come: at the next tick the partition is active."""
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
