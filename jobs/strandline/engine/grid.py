"""The thresholds that a pipeline asks of its watermarks: window ends, with lateness and without."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS
from strandline.model.lateness import cleanup_time
from strandline.model.windows import TumblingWindows
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Tumbling

_WIDEST_MS = 400_000_000_000_000
"""More than the years 0001 to 9999: such a window always leaves them, and no sum overflows."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The windows of a pipeline and the thresholds at which they fire and close."""

    windows: TumblingWindows
    allowed_lateness_ms: int

    @classmethod
    def of(cls, spec: PipelineSpec) -> Grid:
        """The grid of a pipeline."""
        if not isinstance(spec.window, Tumbling):
            msg = f"no grid for {type(spec.window).__name__} windows"
            raise TypeError(msg)
        size_ms = min(spec.window.tumbling, _WIDEST_MS)
        return cls(TumblingWindows(size_ms, spec.window.offset % size_ms), spec.allowed_lateness)

    @property
    def residues(self) -> tuple[int, ...]:
        """The thresholds modulo the step: of firing and, where it is another one, of closing."""
        step = self.windows.step_ms
        fire = (self.windows.offset_ms + self.windows.size_ms - 1) % step
        return tuple(dict.fromkeys((fire, (fire + self.allowed_lateness_ms) % step)))

    def parts(self, delay_ms: int) -> tuple[int, ...]:
        """How far into a slot an event time reaches another threshold, if candidates lag so far."""
        step = self.windows.step_ms
        cuts = {(residue + delay_ms - self.windows.offset_ms) % step for residue in self.residues}
        return tuple(sorted(cuts - {0}))

    @property
    def crosses_midnights(self) -> bool:
        """Whether a slot can hold records of two dates."""
        return bool(DAY_MS % self.windows.step_ms or self.windows.offset_ms % self.windows.step_ms)

    def fire_threshold(self, start_ms: int) -> int:
        """The watermark that fires the window of this start."""
        return start_ms + self.windows.size_ms - 1

    def close_threshold(self, start_ms: int) -> int:
        """The watermark that drops the window of this start; MAX_WATERMARK: none before the end."""
        return cleanup_time(
            self.fire_threshold(start_ms), allowed_lateness_ms=self.allowed_lateness_ms
        )

    def first_not_final(self, watermark_ms: int) -> int:
        """The first window start whose state a watermark leaves standing: its close > watermark.

        Never before the first instant there is: of earlier windows nothing can be final.
        """
        earliest_ms = watermark_ms - self.allowed_lateness_ms - self.windows.size_ms + 2
        return self.windows.ceil_start(max(earliest_ms, LEAST_INSTANT_MS))
