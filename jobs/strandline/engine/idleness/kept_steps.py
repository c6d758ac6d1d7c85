"""The watermark's steps over a long history, read only for the days that a question needs.

Watermarks increase strictly, so the watermark at the end of each day shows on which day a threshold
was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.idleness.state import SourceState, StatusChange
from strandline.engine.idleness.steps import STEP_COLUMNS, Steps
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.model.intervals import DAY_MS, day_of, midnight_before, midnight_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec

SOURCE_DAY_COLUMNS = ("arrival_date", "until_ms", "watermark_ms")
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StepDays:
    """The days whose steps are kept.

    Attributes:
        days: ascending: `arrival_date`, `until_ms` (ticks before it have run by the end of the day)
            and `watermark_ms` (the combined watermark then).
        read: gives the steps of some of the days; columns `STEP_COLUMNS`.
    """

    days: pd.DataFrame
    read: Callable[[Collection[date]], pd.DataFrame]

    @classmethod
    def none(cls) -> StepDays:
        """No day is kept."""
        nothing = pd.DataFrame(columns=[*STEP_COLUMNS])
        return cls(pd.DataFrame(columns=[*SOURCE_DAY_COLUMNS]), lambda days: nothing)


@dataclass(frozen=True)
class KeptSteps:
    """The advances of the combined watermark before a horizon, read as they are asked for.

    Attributes:
        kept: the days whose steps are kept.
        later: the steps after these days, in memory.
        axis: the axis of instants.
        horizon_ms: the horizon.
        at_end: (rank, watermark) of the advances that the end of the input would cause.
        changes: when the source as a whole went idle or active.
    """

    kept: StepDays
    later: pd.DataFrame
    axis: Axis
    horizon_ms: int
    at_end: tuple[tuple[int, int], ...] = ()
    changes: tuple[StatusChange, ...] = ()

    @property
    def tick_rank(self) -> int:
        """The rank of the first channel's offer on a tick."""
        return TICK_RANK

    def reaching(self, thresholds: Sequence[int]) -> Steps:
        """All steps of the days on which the watermark reached a threshold."""
        asked = [threshold for threshold in thresholds if threshold < MAX_WATERMARK]
        if not asked:
            return self._steps(self.kept.days[:0])
        # a day's steps lie above the watermark before it
        first = np.searchsorted(self._after, min(asked), side="left")
        end = np.searchsorted(self._after, max(asked), side="left") + 1
        return self._steps(self.kept.days[first:end])

    def around(self, days: Collection[date]) -> Steps:
        """All steps of some days, and the last one before each of them."""
        chosen: set[int] = set()
        for day in days:
            start_ms = midnight_of(day)
            # what a day's last instant emits at once is seen from the next midnight on
            first = int(np.searchsorted(self._until, start_ms, side="left"))
            end = int(np.searchsorted(self._until, start_ms + DAY_MS, side="left")) + 1
            chosen.update(range(first, min(end, len(self._until))))
            if first:
                chosen.add(int(self._last_advance[first - 1]))
        return self._steps(self.kept.days.iloc[sorted(chosen)])

    def at(self, horizon_ms: int) -> Steps:
        """The last steps before a horizon."""
        return self.before(self.around([day_of(horizon_ms - 1)]), horizon_ms)

    def before(self, steps: Steps, horizon_ms: int) -> Steps:
        """The steps among some that happened before a horizon."""
        return steps if horizon_ms >= self.horizon_ms else steps.before(horizon_ms)

    def dates(self) -> set[date]:
        """The dates on which a step may lie."""
        spans = [
            (int(start), int(until))
            for start, until, rose in zip(self._starts, self._until, self._rose, strict=True)
            if rose
        ]
        if len(self.later):
            first, last = self.later["seen_from"].iloc[0], self.later["until"].iloc[-1]
            spans.append((self.axis.arrival_of(int(first)), self.axis.arrival_of(int(last)) + 1))
        return {
            day_of(midnight_ms)
            for start_ms, until_ms in spans
            for midnight_ms in range(midnight_before(start_ms), until_ms, DAY_MS)
        }

    def _steps(self, days: pd.DataFrame) -> Steps:
        there = days["arrival_date"].tolist()
        parts = [self.kept.read(there)] if there else []
        parts = [part for part in (*parts, self.later) if len(part)]
        table = pd.concat(parts, ignore_index=True) if parts else self.later
        return Steps(table, self.axis, self.horizon_ms, self.at_end)

    @cached_property
    def _after(self) -> Longs:
        """The watermark at the end of each day."""
        return self.kept.days["watermark_ms"].to_numpy(dtype="int64")

    @cached_property
    def _until(self) -> Longs:
        return self.kept.days["until_ms"].to_numpy(dtype="int64")

    @cached_property
    def _starts(self) -> list[int]:
        """The start of each day's range of steps; it includes the silent days before the day."""
        days: list[Any] = self.kept.days["arrival_date"].tolist()
        if not days:
            return []
        return [min(midnight_of(days[0]), self.axis.start_ms), *self._until[:-1].tolist()]

    @cached_property
    def _rose(self) -> npt.NDArray[np.bool_]:
        """Whether the watermark advanced on each day; on the first day it may have."""
        return np.append(True, self._after[1:] > self._after[:-1])[: len(self._after)]

    @cached_property
    def _last_advance(self) -> Longs:
        """The last day, up to each day, on which the watermark advanced."""
        numbers = np.where(self._rose, np.arange(len(self._rose)), 0)
        return np.maximum.accumulate(numbers) if len(numbers) else numbers


@dataclass(frozen=True)
class EndlessSteps(KeptSteps):
    """The steps of a watermark that follows the clock alone: known for all times, in a few rows.

    `at_end` has the advances that the end of the input would cause, at any horizon.
    """

    @property
    def tick_rank(self) -> int:
        """See `KeptSteps`: nothing but ticks offers."""
        return 0

    def before(self, steps: Steps, horizon_ms: int) -> Steps:
        """See `KeptSteps`."""
        return replace(steps.before(horizon_ms), at_end=self.at_end)

    def dates(self) -> set[date]:
        """An empty set: a step may lie on every day."""
        return set()


@dataclass(frozen=True)
class KnownSteps:
    """The steps of the days that are already known, and the state of the source after them.

    `changes`: when the source as a whole went idle or active on these days; kept only where there
    is a second input.
    """

    steps: StepDays
    carried: SourceState
    changes: tuple[StatusChange, ...] = ()

    @classmethod
    def none(cls, spec: PipelineSpec, axis: Axis) -> KnownSteps:
        """The initial state: no steps are known."""
        return cls(StepDays.none(), SourceState.at_the_start(spec, axis))
