"""When thresholds were reached, where channels can go idle: the steps before decide as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import numpy.typing as npt

from strandline.engine.idleness.kept_steps import KeptSteps
from strandline.engine.idleness.steps import Steps
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.crossings import Instants, Ranks
from strandline.engine.watermark.probe_order import ProbeOrder
from strandline.model.intervals import midnight_of


@dataclass(frozen=True)
class StepCrossings:
    """See `Crossings`.

    Attributes:
        kept: the steps of the combined watermark.
        order: of the channels.
    """

    kept: KeptSteps
    order: ProbeOrder

    def in_order(self, order: ProbeOrder) -> Self:
        """See `Crossings.in_order`."""
        return replace(self, order=order)

    @property
    def channels(self) -> tuple[str, ...]:
        """See `Crossings`."""
        return self.order.channels

    @property
    def joined(self) -> list[int]:
        """See `Crossings`."""
        return self.order.joined

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
