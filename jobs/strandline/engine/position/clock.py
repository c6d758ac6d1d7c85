"""The horizon (data cut-off) of a run, and the windows whose input has ended."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.intervals import TimeRange


@dataclass(frozen=True)
class Closure:
    """The end of the input (MAX_WATERMARK) of the windows that start in a range, by `--close`."""

    windows: TimeRange
    at_ms: int


@dataclass(frozen=True)
class Clock:
    """The horizon of a run, before which arrivals and ticks are known, and the ended inputs.

    Attributes:
        horizon_ms: the horizon, exclusive.
        closures: the ends of inputs. At such an end the windows of its range fire and close, in the
            run that ends the input and in every later one.
        by_channel: whether an input that ends at the horizon ends as in Flink: channel by channel,
            so that windows fire as the watermark advances to the least of the other channels'.
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
