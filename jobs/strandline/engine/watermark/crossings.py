"""Crossings: when the combined watermark reached *thresholds*, at which windows fire or close.

They are found in one of two ways. By records (`by_records`): each channel reaches the threshold
with its first record that offers it, and the last channel decides. By steps (`by_steps`), if
channels can go idle: the advances of the watermark, which depend on the advances before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from strandline.engine.idleness.state import StatusChange
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.channels import ProbeOrder

Instants = npt.NDArray[Any]
Ranks = npt.NDArray[np.int64]


class Crossings(ABC):
    """When the combined watermark of a pipeline's channels reached thresholds.

    Attributes:
        changes: when the source as a whole went idle or active.
        from_cells: whether they follow from cells, so that only thresholds of the grid are exact.
        tick_rank: the rank of the first channel's offer on a tick; 0: as of any other offer.
    """

    from_cells: ClassVar[bool] = False
    tick_rank: ClassVar[int] = 0
    changes: tuple[StatusChange, ...] = ()

    @abstractmethod
    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """For each threshold, when the combined watermark reached it, and by which channel.

        Args:
            thresholds: the thresholds, in ms.
            horizon_ms: only advances before it count.
            ended: for each threshold, whether the input ends at the horizon; None: for none.

        Returns:
            `T(b)` for each threshold b: the first instant after it was reached; `axis.never`: not
            before the horizon; `axis.end`: only by the end of the input. And the rank of that
            advance, which is the number of the channel that made it.
        """

    @abstractmethod
    def watermark_reached(self, horizon_ms: int) -> int:
        """The largest threshold of the grid that the watermark has reached at a horizon, in ms.

        MIN_WATERMARK: none. In comparisons with thresholds it is as good as the watermark itself.
        """

    @abstractmethod
    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """The days on which the watermark may advance even without an arrival."""

    def in_order(self, order: ProbeOrder) -> Crossings:
        """The same crossings, with the channels in another probe order."""
        return self

    @property
    def drops_end(self) -> bool:
        """Whether the source is idle at the horizon, and so drops an end of the input there."""
        return False

    def without_dropped_end(self, clock: Clock) -> Clock:
        """The clock, without an end of the input at its horizon if an idle source drops it."""
        if not self.drops_end:
            return clock
        before = tuple(one for one in clock.closures if one.at_ms != clock.horizon_ms)
        return replace(clock, closures=before)


@dataclass(frozen=True, kw_only=True)
class ByChannels(Crossings):
    """Crossings that depend on the order in which the channels are probed: see `Crossings`.

    Attributes:
        order: the channels in probe order.
    """

    order: ProbeOrder

    def in_order(self, order: ProbeOrder) -> Self:
        """The same crossings, with the channels in another probe order."""
        return replace(self, order=order)


def never(length: int, axis: Axis) -> Instants:
    """An array of instants that never come."""
    return np.full(length, axis.never, dtype=object if axis.sequenced else np.int64)


def known_before(seen: Instants, horizon_ms: int, axis: Axis) -> npt.NDArray[np.bool_]:
    """Whether events happen before a horizon, by the first instant after each."""
    limit = min(axis.known_below(horizon_ms), axis.end)
    return np.asarray(seen < limit, dtype=bool)


def last_to_reach(
    offers: Sequence[Instants], joined: Sequence[int], beyond: Instants, horizon_ms: int, axis: Axis
) -> tuple[Instants, Ranks]:
    """When the combined watermark reaches each threshold, and the number of the last channel.

    Args:
        offers: for each channel in probe order, when it reaches each threshold.
        joined: the instant from which each channel counts.
        beyond: the value for thresholds that are not reached before the horizon.
        horizon_ms: the horizon.
        axis: the axis of instants.
    """
    latest, number = never(len(beyond), axis), np.zeros(len(beyond), dtype=np.int64)
    if not offers:
        return latest, number
    reaches = [np.where(known_before(seen, horizon_ms, axis), seen, beyond) for seen in offers]
    next_to_join = [*joined[1 : len(offers)], axis.never]
    all_reach, is_open = reaches[0], np.ones(len(beyond), dtype=bool)
    for channel, (reached, next_joined) in enumerate(zip(reaches, next_to_join, strict=True)):
        number = np.where(is_open & (reached >= all_reach), channel, number)
        all_reach = np.maximum(all_reach, reached)
        # the watermark does not decrease as a channel joins later
        is_decided = is_open & (all_reach <= next_joined)
        latest = np.where(is_decided, all_reach, latest)
        is_open &= ~is_decided
    return latest, number
