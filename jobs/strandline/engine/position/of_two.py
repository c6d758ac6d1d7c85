"""The positions of two inputs on one axis.

At one instant, offers of records come before ticks, and each of them first for the left input.
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.position.axis import Axis
from strandline.engine.position.numbering import TICK_RANK

SIDE_SPAN = 2**28
"""The distance of the right input's ranks from the left input's; no input has so many channels."""


@dataclass(frozen=True)
class InputAxis:
    """The axis of one of two inputs, and the axis of both.

    Attributes:
        own: the axis of the input alone.
        both: the axis of both inputs.
        number: 0: left; 1: right.
    """

    own: Axis
    both: Axis
    number: int

    @classmethod
    def of_two(cls, left: Axis, right: Axis) -> tuple[InputAxis, InputAxis]:
        """The axes of two inputs."""
        both = Axis.of_both(left, right)
        return cls(left, both, 0), cls(right, both, 1)

    def seen_from(self, instant: int) -> int:
        """A position of the input's own axis, as a position on the axis of both inputs."""
        if instant >= self.own.end:
            return self.both.never - (self.own.never - instant)
        if self.both.sequenced and not self.own.sequenced:
            return self.both.first_of(instant)
        return instant

    def rank_of(self, rank: int) -> int:
        """A rank of the input's own axis, as a rank among the events of both inputs.

        Order: offers of records of the left input, of the right one, then (from TICK_RANK on) ticks
        of the left input, of the right one. If the input emits on ticks only, all its ranks are of
        ticks.
        """
        on_tick = rank >= TICK_RANK or self.own.interval_ms is not None
        group = TICK_RANK if on_tick else 0
        in_group = max(rank, 0) % SIDE_SPAN  # TICK_RANK is a multiple of SIDE_SPAN
        return group + self.number * SIDE_SPAN + in_group
