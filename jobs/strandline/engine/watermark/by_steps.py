"""When thresholds were reached, by the steps (advances) of the combined watermark.

Steps are observed and stored where channels can go idle. Where the watermark follows the clock
alone, they are computed: on each tick every channel that has joined emits the same watermark. Of a
long history only the steps of the days that a query needs are read: the watermark only increases,
so its value at the end of each day shows on which day a threshold was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.idleness.by_clock import steps_without_idleness
from strandline.engine.idleness.source import WatermarkSource
from strandline.engine.idleness.state import SourceState, StatusChange
from strandline.engine.idleness.steps import STEP_COLUMNS, Steps
from strandline.engine.position.axis import ALL_SPLITS, TICK_RANK, Axis
from strandline.engine.timeline import concatenated
from strandline.engine.watermark.channels import ProbeOrder
from strandline.engine.watermark.crossings import ByChannels, Instants, Ranks
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    day_of,
    last_day_before,
    midnight_before,
    midnight_of,
)
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec

SOURCE_DAY_COLUMNS = ("arrival_date", "until_ms", "watermark_ms")
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StepDays:
    """The days whose steps are stored.

    Attributes:
        days: ascending: `arrival_date`, `until_ms` (ticks before it have run by the end of the day)
            and `watermark_ms` (the combined watermark then).
        read: gives the steps of some of the days; columns `STEP_COLUMNS`.
    """

    days: pd.DataFrame
    read: Callable[[Collection[date]], pd.DataFrame]

    @classmethod
    def none(cls) -> StepDays:
        """No day, for a watermark without stored steps."""
        nothing = pd.DataFrame(columns=[*STEP_COLUMNS])
        return cls(pd.DataFrame(columns=[*SOURCE_DAY_COLUMNS]), lambda days: nothing)


@dataclass(frozen=True)
class StepCrossings(ByChannels):
    """The advances of the combined watermark before a horizon, read as needed: see `Crossings`.

    Attributes:
        kept: the days whose steps are stored.
        later: the steps after these days, in memory.
        axis: the axis of instants.
        horizon_ms: the horizon.
        at_end: (rank, watermark) of the advances that the end of the input would cause.
        changes: when the source as a whole went idle or active.
    """

    tick_rank = TICK_RANK
    kept: StepDays
    later: pd.DataFrame
    axis: Axis
    horizon_ms: int
    at_end: tuple[tuple[int, int], ...] = ()
    changes: tuple[StatusChange, ...] = ()

    @property
    def drops_end(self) -> bool:
        """See `Crossings`."""
        return not self.at_end and bool(self.order.channels)

    def on_days(self, days: Collection[date], horizon_ms: int) -> Steps:
        """The steps of some days before a horizon, and the last one before each of them."""
        chosen: set[int] = set()
        for day in days:
            start_ms = midnight_of(day)
            # a watermark emitted at a day's last instant counts from the next midnight on
            first = int(np.searchsorted(self._until, start_ms, side="left"))
            end = int(np.searchsorted(self._until, start_ms + DAY_MS, side="left")) + 1
            chosen.update(range(first, min(end, len(self._until))))
            if first:
                chosen.add(int(self._last_advance[first - 1]))
        return self._before(horizon_ms, self.kept.days.iloc[sorted(chosen)])

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`: by the steps of the days on which thresholds were reached."""
        days, asked = self.kept.days[:0], [one for one in thresholds if one < MAX_WATERMARK]
        if asked:
            # a day's steps are higher than the watermark at the end of the day before
            first = np.searchsorted(self._after, min(asked), side="left")
            end = np.searchsorted(self._after, max(asked), side="left") + 1
            days = self.kept.days[first:end]
        return self._before(horizon_ms, days).crossings(thresholds, ended)

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`: the watermark itself."""
        return self.on_days([last_day_before(horizon_ms)], horizon_ms).watermark_ms

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`."""
        spans = [
            (int(start), int(until))
            for start, until, advanced in zip(
                self._starts, self._until, self._advanced, strict=True
            )
            if advanced
        ]
        if len(self.later):
            first, last = self.later["seen_from"].iloc[0], self.later["until"].iloc[-1]
            spans.append((self.axis.arrival_of(int(first)), self.axis.arrival_of(int(last)) + 1))
        return {
            day_of(midnight_ms)
            for start_ms, until_ms in spans
            for midnight_ms in range(midnight_before(start_ms), until_ms, DAY_MS)
            if midnight_ms < horizon_ms
        }

    def _before(self, horizon_ms: int, days: pd.DataFrame) -> Steps:
        """The steps before a horizon: of some of the kept days, and after all kept days."""
        dates = days["arrival_date"].tolist()
        kept = [self.kept.read(dates)] if dates else []
        steps = Steps(concatenated(*kept, self.later), self.axis, self.horizon_ms, self.at_end)
        return steps if horizon_ms >= self.horizon_ms else steps.before(horizon_ms)

    @cached_property
    def _after(self) -> Longs:
        """The combined watermark at the end of each kept day, in ms, ascending."""
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
    def _advanced(self) -> npt.NDArray[np.bool_]:
        """Whether the watermark advanced on each day; on the first day it may have."""
        return np.append(True, self._after[1:] > self._after[:-1])[: len(self._after)]

    @cached_property
    def _last_advance(self) -> Longs:
        """For each stored day, the index of the last day up to it with a watermark advance."""
        numbers = np.where(self._advanced, np.arange(len(self._advanced)), 0)
        return np.maximum.accumulate(numbers) if len(numbers) else numbers


@dataclass(frozen=True)
class ClockCrossings(StepCrossings):
    """The crossings of a watermark that follows the clock alone: a few runs of ticks for all times.

    `at_end` has the advances that the end of the input would cause, at any horizon.
    """

    tick_rank = 0  # nothing but ticks offers

    @classmethod
    def of(cls, spec: PipelineSpec, axis: Axis, order: ProbeOrder) -> Self:
        """The crossings of a watermark that follows the clock, with channels that never go idle.

        A source of splits has a main output that offers, too, even without a split.

        Raises:
            TypeError: the watermark does not follow the clock.
        """
        ticks, lag_ms = axis.ticks, spec.watermark.lag_ms
        if ticks is None or lag_ms is None:
            msg = f"{spec.watermark.strategy} does not go by ticks"
            raise TypeError(msg)
        is_source = spec.watermark.combine == "splits"
        joined = [axis.start_ms] if is_source else order.joined
        last_ms = axis.last_tick_before(END_OF_INSTANTS_MS)
        steps = steps_without_idleness(joined, ticks, lag_ms, last_ms)
        if is_source:
            steps["rank"] = ALL_SPLITS
        last_rank = ALL_SPLITS if is_source else len(joined) - 1
        at_end = ((last_rank, MAX_WATERMARK),) if joined else ()
        return cls(StepDays.none(), steps, axis, END_OF_INSTANTS_MS, at_end, order=order)

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """An empty set: the steps of all days are known without their arrivals."""
        return set()

    def _before(self, horizon_ms: int, days: pd.DataFrame) -> Steps:
        return replace(super()._before(horizon_ms, days), at_end=self.at_end)


@dataclass(frozen=True)
class KnownSteps:
    """The steps of the days that are already observed, and the state of the source after them.

    `changes`: when the source as a whole went idle or active on these days; stored only if there is
    a second input.
    """

    steps: StepDays
    carried: SourceState
    changes: tuple[StatusChange, ...] = ()

    @classmethod
    def none(cls, source: WatermarkSource) -> KnownSteps:
        """The initial state of a source: no steps are known."""
        return cls(StepDays.none(), source.at_the_start())
