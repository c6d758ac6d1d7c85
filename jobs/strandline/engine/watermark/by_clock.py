"""When thresholds were reached, where ticks alone decide: time lag and ingestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import numpy.typing as npt

from strandline.engine.position.axis import ALL_SPLITS, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.crossings import Instants, Ranks, last_to_reach, never
from strandline.engine.watermark.probe_order import ProbeOrder
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class ClockCrossings:
    """See `Crossings`. Every channel offers the same on every tick, from when it has joined on.

    Attributes:
        spec: the pipeline.
        axis: of the instants.
        order: of the channels, the only thing that is observed.
    """

    spec: PipelineSpec
    axis: Axis
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

    @property
    def merges_at_once(self) -> bool:
        """Whether all channels are splits of one source, of which a moment's are merged at once."""
        return self.spec.watermark.combine == "splits"

    @property
    def starts_after(self) -> int:
        """Ticks after this one give a watermark: there is a channel.

        A source of splits has a main output that offers, too, and that needs no split.
        """
        if self.merges_at_once:
            return self.axis.start_ms
        return max(self.axis.start_ms, self.joined[0]) if self.joined else self.axis.never

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`."""
        beyond = never(len(thresholds), self.axis)
        if ended is not None:
            beyond[ended] = self.axis.end
        offers = self.seen_from(thresholds)
        latest, number = last_to_reach(offers, self.joined, beyond, horizon_ms, self.axis)
        if self.merges_at_once:
            number[:] = ALL_SPLITS
        return latest, number

    def seen_from(self, thresholds: Sequence[int]) -> list[Instants]:
        """`T_c(b)` of each channel at each threshold: of a discovered one after it has joined."""
        lag_ms = self.spec.watermark.lag_ms or 0
        joined = [self.starts_after] if self.merges_at_once else self.joined
        return [
            np.array(
                [self.axis.first_tick_reaching(b, lag_ms, after_ms=at) for b in thresholds],
                dtype=never(0, self.axis).dtype,
            )
            for at in joined
        ]

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`: there are no steps."""
        return set()

    def without_dropped_end(self, clock: Clock) -> Clock:
        """See `Crossings.without_dropped_end`: none is dropped."""
        return clock

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`: the watermark itself."""
        tick = self.axis.last_tick_before(horizon_ms)
        if tick <= self.starts_after:
            return MIN_WATERMARK
        return max(tick - (self.spec.watermark.lag_ms or 0), MIN_WATERMARK)
