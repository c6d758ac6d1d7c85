"""What a run knows: arrivals and ticks before its horizon, and which input has ended."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.intervals import TimeRange


@dataclass(frozen=True)
class Closure:
    """The input of the windows that start in a range has ended at an instant: MAX_WATERMARK."""

    windows: TimeRange
    at_ms: int


@dataclass(frozen=True)
class Clock:
    """What a run knows: arrivals and ticks before the horizon, and which input has ended."""

    horizon_ms: int
    closures: tuple[Closure, ...] = ()

    @property
    def closes_now(self) -> bool:
        """Whether some input ends at the horizon itself."""
        return any(closure.at_ms == self.horizon_ms for closure in self.closures)
