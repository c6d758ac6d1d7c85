"""The watermark that a channel offers, and when it is offered."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.lateness import MIN_WATERMARK


@dataclass(frozen=True, slots=True)
class Candidate:
    """A max-based generator: a record of event time `ts` offers `ts - delay`, never below MIN.

    Flink: `BoundedOutOfOrdernessWatermarks` (`delay = bound + 1`), `AscendingTimestampsWatermarks`
    (`delay = 1`) and the legacy `BoundedOutOfOrdernessTimestampExtractor` (`delay = bound`). All
    start at `MIN + delay`, so an offer does not underflow; MIN itself offers nothing.
    """

    delay_ms: int

    def of(self, ts_ms: int) -> int:
        """The watermark that a record of this event time offers."""
        return max(ts_ms - self.delay_ms, MIN_WATERMARK)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The instants at which periodic emission probes the channels: `start + k*interval`, k >= 1.

    A tick comes before the records of its very millisecond, so a record is seen by the first
    tick strictly after its arrival. Flink: `AUTO_WATERMARK_INTERVAL`.
    """

    start_ms: int
    interval_ms: int

    def after(self, arrival_ms: int) -> int:
        """The first tick later than an arrival, and not the start: it makes the record visible."""
        return max(
            arrival_ms + self.interval_ms - (arrival_ms - self.start_ms) % self.interval_ms,
            self.start_ms + self.interval_ms,
        )
