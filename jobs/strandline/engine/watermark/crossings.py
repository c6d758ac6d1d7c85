"""When the combined watermark reached a threshold, answered in one of two ways.

By records: each channel's first record that offers it. By steps: where channels can go idle, a
crossing depends on the steps before it, and where only ticks emit, both ways are the same.
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
        """`T(b)` for each threshold b: the first instant that sees it reached, and the channel.

        The channel is given by its number. `axis.never` where the combined watermark does not reach
        the threshold before the horizon; `axis.end` where only the `ended` input does.
        """

    @abstractmethod
    def watermark_reached(self, horizon_ms: int) -> int:
        """The largest threshold of the grid that the watermark has reached at a horizon; MIN: none.

        Equivalent to the watermark itself in comparisons with thresholds.
        """

    @abstractmethod
    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """The days with a step that no arrival of the same day need have caused."""

    def in_order(self, order: ProbeOrder) -> Crossings:
        """The same crossings, with the channels in another probe order."""
        return self

    @property
    def drops_end(self) -> bool:
        """Whether the source drops the end of its input, as it is idle at the horizon."""
        return False

    def without_dropped_end(self, clock: Clock) -> Clock:
        """The clock without the input's end at its horizon, if an idle source drops that end."""
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
        """The same, its channels in another order."""
        return replace(self, order=order)


def never(length: int, axis: Axis) -> Instants:
    """An array of instants that never come."""
    return np.full(length, axis.never, dtype=object if axis.sequenced else np.int64)


def known_before(seen: Instants, horizon_ms: int, axis: Axis) -> npt.NDArray[np.bool_]:
    """Whether each first instant belongs to something that happens before a horizon."""
    limit = min(axis.known_below(horizon_ms), axis.end)
    return np.asarray(seen < limit, dtype=bool)


def last_to_reach(
    offers: Sequence[Instants], joined: Sequence[int], beyond: Instants, horizon_ms: int, axis: Axis
) -> tuple[Instants, Ranks]:
    """When the combined watermark reaches each threshold, and the number of the last channel.

    Args:
        offers: for each channel in probe order, when it reaches each threshold.
        joined: the first instant at which each channel takes part.
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
        # a channel that joins later cannot take back what the ones before it have passed
        is_decided = is_open & (all_reach <= next_joined)
        latest = np.where(is_decided, all_reach, latest)
        is_open &= ~is_decided
    return latest, number
