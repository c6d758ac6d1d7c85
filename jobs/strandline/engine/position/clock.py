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
    """The horizon of a run, before which arrivals and ticks are known, and the ended inputs.

    Attributes:
        horizon_ms: the horizon.
        closures: the ends of inputs. What ends at an instant is fired and closed at it, in the run
            that ends it as in every later one.
        by_channel: whether an input that ends at the horizon ends as in Flink, where each channel
            ends on its own, and windows fire as the watermark advances to what the others offer.
    """

    horizon_ms: int
    closures: tuple[Closure, ...] = ()
    by_channel: bool = False

    @property
    def closes_now(self) -> bool:
        """Whether some input ends at the horizon itself."""
        return any(closure.at_ms == self.horizon_ms for closure in self.closures)

    @property
    def ends_by_channel(self) -> bool:
        """Whether some input ends at the horizon itself, channel by channel."""
        return self.by_channel and self.closes_now
