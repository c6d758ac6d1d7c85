"""When the combined watermark of two inputs reached a threshold.

The combined watermark is the minimum over the inputs that are not idle, the maximum if both are,
and never decreases. So it reaches a threshold as soon as both inputs have reached it, or one input
has while the other is idle. The advances of the two inputs need not be merged.

The *place* of an event is one number for its position among the events of both inputs.

Flink: `CombinedWatermarkStatus`, with `AbstractStreamOperator#processWatermark1` and `2`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.engine.position.axis import Axis, InputAxis
from strandline.engine.watermark.crossings import Crossings, Instants, Ranks

_RANKS = 2**32


@dataclass(frozen=True)
class InputCrossings:
    """The crossings of one of two inputs.

    Attributes:
        crossings: the crossings of the input alone.
        axis: the axis of the input, and the axis of both inputs.
    """

    crossings: Crossings
    axis: InputAxis

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None,
    ) -> npt.NDArray[Any]:
        """The place at which the input's watermark reaches each threshold."""
        seen, ranks = self.crossings.reached(thresholds, horizon_ms, ended)
        return _array(map(self.place, seen.tolist(), ranks.tolist()))

    def idle_from(self, places: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The first place at or after each given place at which this input is idle."""
        starts, ends = self._idle
        if not len(starts):
            return np.full_like(places, _never(self.axis.both))
        nth = np.searchsorted(ends, places)
        begins: npt.NDArray[Any] = np.append(starts, _never(self.axis.both))[nth]
        first: npt.NDArray[Any] = np.maximum(places, begins)
        return first

    @cached_property
    def _idle(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The places at which the input goes idle, and at which it becomes active."""
        places = [self.place(one.seen_from, one.rank) for one in self.crossings.changes]
        changes = list(zip(places, self.crossings.changes, strict=True))
        starts = [at for at, one in changes if one.idle]
        ends = [at for at, one in changes if not one.idle]
        return _array(starts), _array([*ends, _never(self.axis.both)][: len(starts)])

    def place(self, instant: int, rank: int) -> int:
        """The place of an event of this input, by its position on the input's own axis."""
        return self.axis.seen_from(instant) * _RANKS + self.axis.rank_of(rank)


@dataclass(frozen=True)
class CrossingsOfTwo(Crossings):
    """When the combined watermark of two inputs reached thresholds.

    Attributes:
        inputs: each input, by its name.
    """

    inputs: Mapping[str, InputCrossings]

    @property
    def axis(self) -> Axis:
        """The axis of both inputs."""
        return self.inputs["left"].axis.both

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`: the days of either input."""
        inputs = self.inputs.values()
        return set().union(*(one.crossings.days_of_steps(horizon_ms) for one in inputs))

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`: by bisection between the values of both inputs."""
        inputs = self.inputs.values()
        reached, past = sorted(one.crossings.watermark_reached(horizon_ms) for one in inputs)
        past += 1
        if not any(one.crossings.changes for one in inputs):
            return reached
        while past - reached > 1:
            asked = (reached + past) // 2
            seen, _ = self.reached([asked], horizon_ms)
            reached, past = (asked, past) if seen[0] < self.axis.end else (reached, asked)
        return reached

    @property
    def drops_end(self) -> bool:
        """See `Crossings`: both inputs drop it."""
        return all(one.crossings.drops_end for one in self.inputs.values())

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`; for the ranks, see `InputAxis.rank_of`."""
        one, other = self.inputs.values()
        reached, by_other = (of.reached(thresholds, horizon_ms, ended) for of in (one, other))
        both = np.maximum(reached, by_other)
        one_idle = np.minimum(one.idle_from(by_other), other.idle_from(reached))
        places = np.minimum(both, one_idle)
        seen, ranks = places // _RANKS, (places % _RANKS).astype(np.int64)
        too_late = ~self.axis.happened_before(horizon_ms, seen, ranks)
        seen[too_late & (seen < self.axis.end).astype(bool)] = self.axis.never
        return seen if self.axis.sequenced else seen.astype(np.int64), ranks


def _never(axis: Axis) -> int:
    return axis.never * _RANKS


def _array(places: Any) -> npt.NDArray[Any]:
    """Places as an array of integers of any size."""
    return np.array(list(places), dtype=object)
