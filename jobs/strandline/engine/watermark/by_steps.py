"""When thresholds were reached, by the steps of the combined watermark.

Steps are observed where channels can go idle: there a crossing depends on the steps before it.
Where only ticks emit, each channel makes the same offer on every tick since it joined.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import numpy.typing as npt

from strandline.engine.idleness.by_clock import steps_without_idleness
from strandline.engine.idleness.kept_steps import EndlessSteps, KeptSteps, StepDays
from strandline.engine.idleness.steps import Steps
from strandline.engine.position.axis import ALL_SPLITS, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.crossings import ByChannels, Instants, Ranks
from strandline.engine.watermark.probe_order import ProbeOrder
from strandline.model.intervals import END_OF_INSTANTS_MS, midnight_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class StepCrossings(ByChannels):
    """See `Crossings`.

    Attributes:
        kept: the steps of the combined watermark.
    """

    kept: KeptSteps

    @classmethod
    def by_clock(cls, spec: PipelineSpec, axis: Axis, order: ProbeOrder) -> Self:
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
        kept = EndlessSteps(StepDays.none(), steps, axis, END_OF_INSTANTS_MS, at_end)
        return cls(kept, order=order)

    def on_days(self, days: Collection[date], horizon_ms: int) -> Steps:
        """The steps of some days before a horizon, and the last one before each of them."""
        return self.kept.before(self.kept.around(days), horizon_ms)

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`."""
        steps = self.kept.before(self.kept.reaching(thresholds), horizon_ms)
        return steps.crossings(thresholds, ended)

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`."""
        return {day for day in self.kept.dates() if midnight_of(day) < horizon_ms}

    def without_dropped_end(self, clock: Clock) -> Clock:
        """See `Crossings.without_dropped_end`."""
        if self.kept.at_end or not self.channels:
            return clock
        before = tuple(one for one in clock.closures if one.at_ms != clock.horizon_ms)
        return replace(clock, closures=before)

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`: the watermark itself."""
        return self.kept.at(horizon_ms).watermark_ms
