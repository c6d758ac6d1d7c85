"""The watermark that a record lets its channel emit, and the ticks on which channels emit."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.lateness import MIN_WATERMARK


@dataclass(frozen=True, slots=True)
class Candidate:
    """The rule of a generator that emits the largest event time so far, minus a delay in ms.

    A record of event time `ts` *offers* the watermark `ts - delay`, never below MIN_WATERMARK; the
    generator emits the largest offer. Flink: `BoundedOutOfOrdernessWatermarks` (`delay = bound +
    1`), `AscendingTimestampsWatermarks` (`delay = 1`) and the legacy
    `BoundedOutOfOrdernessTimestampExtractor` (`delay = bound`). Their largest time starts at `MIN +
    delay`, so no offer underflows; an offer of MIN_WATERMARK advances nothing.
    """

    delay_ms: int

    def of(self, ts_ms: int) -> int:
        """The watermark, in ms, that a record of an event time offers."""
        return max(ts_ms - self.delay_ms, MIN_WATERMARK)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The instants of periodic emission, `start + k*interval` for k >= 1: each channel is probed.

    To probe a channel is to call its generator's `onPeriodicEmit`. A tick comes before the records
    of its very millisecond, so a record counts from the first tick strictly after its arrival.
    Flink: `AUTO_WATERMARK_INTERVAL`.
    """

    start_ms: int
    interval_ms: int

    def after(self, arrival_ms: int) -> int:
        """The first tick later than an arrival: the first at which the record counts."""
        return max(
            arrival_ms + self.interval_ms - (arrival_ms - self.start_ms) % self.interval_ms,
            self.start_ms + self.interval_ms,
        )
