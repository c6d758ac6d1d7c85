"""The axis of a pipeline's instants with its clock: when the watermark's ticks come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.engine.position.grid import WIDEST_MS
from strandline.engine.position.numbering import Numbering
from strandline.model.intervals import LEAST_INSTANT_MS
from strandline.model.watermarks import Ticks
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis(Numbering):
    """The axis of instants of one pipeline: their numbers, and the ticks between them.

    Attributes:
        start_ms: when the job's clock started.
        tick_ms: the interval of ticks that do not emit; None: ticks emit.
    """

    start_ms: int
    tick_ms: int | None = None

    @classmethod
    def of(cls, spec: PipelineSpec, start_ms: int) -> Axis:
        """The axis of a pipeline whose clock started at `start_ms`."""
        if isinstance(spec, ResultsSpec):  # the watermark is the other pipeline's
            return cls.of(spec.upstream, start_ms)
        if isinstance(spec, TwoSourcesSpec):
            return cls.of_both(cls.of(spec.left, start_ms), cls.of(spec.right, start_ms))
        numbering = Numbering.of_spec(spec)
        return cls(
            start_ms=start_ms,
            interval_ms=numbering.interval_ms,
            sequenced=numbering.sequenced,
            tick_ms=min(spec.watermark.interval_ms or 0, WIDEST_MS),
        )

    @classmethod
    def of_both(cls, left: Axis, right: Axis) -> Axis:
        """The axis of two inputs together; a sequence counts if it does for one of them."""
        return cls(
            start_ms=min(left.start_ms, right.start_ms),
            interval_ms=None,
            sequenced=left.sequenced or right.sequenced,
            tick_ms=0,
        )

    @property
    def ticks(self) -> Ticks | None:
        """The ticks of periodic emission; None: there are none."""
        interval_ms = self.interval_ms if self.tick_ms is None else self.tick_ms
        return Ticks(self.start_ms, interval_ms) if interval_ms else None

    def all_seen_from(self, instants: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The first instant that sees an event, for the instants of an array: `seen_from`."""
        reached = instants < self.end
        seen = np.full_like(instants, self.never)
        if self.interval_ms is None:
            seen[reached] = instants[reached] + 1
        elif self.interval_ms:
            late = instants[reached]
            tick = late + self.interval_ms - (late - self.start_ms) % self.interval_ms
            seen[reached] = np.maximum(tick, self.start_ms + self.interval_ms)
        return seen

    def last_tick_before(self, instant_ms: int) -> int:
        """The last tick strictly before an instant; before every arrival if there is none yet."""
        ticks = self.ticks
        if ticks is None:
            return LEAST_INSTANT_MS - 1
        tick = instant_ms - 1 - (instant_ms - 1 - self.start_ms) % ticks.interval_ms
        return tick if tick > self.start_ms else LEAST_INSTANT_MS - 1

    def horizon_after(self, last_arrival_ms: int) -> int:
        """The horizon of a run by hand: just after the first tick that follows the last arrival."""
        ticks = self.ticks
        return (ticks.after(last_arrival_ms) if ticks else last_arrival_ms) + 1
