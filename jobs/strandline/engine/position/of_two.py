"""The positions of two inputs on one axis.

At one instant, offers of records come before ticks, and each of them first for the left input.
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.position.axis import TICK_RANK, Axis

SIDE_SPAN = 2**28
"""The offset of the right input's ranks from the left one's."""


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
        """An instant of the input's own axis, on the axis of both."""
        if instant >= self.own.end:
            return self.both.never - (self.own.never - instant)
        if self.both.sequenced and not self.own.sequenced:
            return self.both.first_of(instant)
        return instant

    def rank_of(self, rank: int) -> int:
        """A rank of the input, among the events of both inputs."""
        on_tick = rank >= TICK_RANK or self.own.interval_ms is not None
        return (TICK_RANK if on_tick else 0) + self.number * SIDE_SPAN + max(rank, 0) % SIDE_SPAN
