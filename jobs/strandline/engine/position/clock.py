"""The horizon of a run, and the windows whose input has ended."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.intervals import TimeRange


@dataclass(frozen=True)
class Closure:
    """The end of the input of windows that start in a range, at an instant: MAX_WATERMARK."""

    windows: TimeRange
    at_ms: int


@dataclass(frozen=True)
class Clock:
    """The horizon of a run, before which arrivals and ticks are known, and the ended inputs."""

    horizon_ms: int
    closures: tuple[Closure, ...] = ()

    @property
    def closes_now(self) -> bool:
        """Whether some input ends at the horizon itself."""
        return any(closure.at_ms == self.horizon_ms for closure in self.closures)
