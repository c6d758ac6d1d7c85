"""The loss curve: how many records each bound and allowed lateness loses.

Whether a record is lost depends only on the sum of the two, the *total lateness*: another bound
shifts the watermark's values but not the positions of its advances.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from strandline.model.intervals import DAY_MS, HOUR_MS

_SECOND_MS = 1_000
_MINUTE_MS = 60_000
_UNITS_MS = (
    *(_SECOND_MS * many for many in (1, 5, 15, 30)),
    *(_MINUTE_MS * many for many in (1, 5, 15, 30)),
    *(HOUR_MS * many for many in (1, 2, 3, 6, 12)),
    DAY_MS,
)
"""Round lengths in ms, of which `unit_of` chooses one."""
_OFFERED_MS = (
    *(_SECOND_MS * many for many in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE_MS * many for many in (1, 2, 5, 10, 15, 20, 30, 45)),
    *(HOUR_MS * many for many in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18)),
    *(DAY_MS * many for many in (1, 2, 3, 5, 7, 10, 14, 21, 28, 60, 90)),
)
"""The total latenesses in ms of which a curve shows the multiples of its unit."""
_PARTS_OF_A_STEP = 12
_MOST_UNITS = 100_000
"""The largest number of units in a history, unless its windows are shorter than a unit."""


@dataclass(frozen=True, slots=True)
class LossCurve:
    """The number of records lost at each total lateness *on offer*, for which they are counted.

    Attributes:
        totals_ms: bound plus allowed lateness, ascending.
        lost: the number of records lost at each; it never increases.
        records: the number of all well-formed records.
    """

    totals_ms: tuple[int, ...]
    lost: tuple[int, ...]
    records: int

    def lost_at(self, total_ms: int) -> int:
        """The number of records lost at a total lateness on offer.

        Raises:
            KeyError: it is not on offer; between two totals the number is not known.
        """
        place = bisect_left(self.totals_ms, total_ms)
        if place == len(self.totals_ms) or self.totals_ms[place] != total_ms:
            raise KeyError(total_ms)
        return self.lost[place]

    def smallest(self, keep: Fraction) -> int | None:
        """The least total lateness on offer that keeps a share of the records; None: none does."""
        most_lost = self.records * (1 - keep)
        kept = (
            total
            for total, lost in zip(self.totals_ms, self.lost, strict=True)
            if lost <= most_lost
        )
        return next(kept, None)


def unit_of(step_ms: int, span_ms: int | None = None) -> int:
    """The unit in ms of a loss curve: the total latenesses on offer are its multiples.

    It is a round length that divides the step of the windows, about a twelfth of it, such as 5
    minutes for windows of an hour; longer for a long history. If no round length divides the step,
    it is the step itself.

    Args:
        step_ms: the distance of two neighbouring window starts.
        span_ms: the length of the history; None: not known.
    """
    least_ms = max(step_ms / _PARTS_OF_A_STEP, (span_ms or 0) / _MOST_UNITS)
    return next((ms for ms in _UNITS_MS if ms >= least_ms and step_ms % ms == 0), step_ms)


def totals_on_offer(unit_ms: int, own_ms: int) -> tuple[int, ...]:
    """The sums of bound and allowed lateness for which a loss curve counts the lost records, in ms.

    They are 0, round times that are multiples of a unit (of 5 minutes: 5, 10, 15, 20, 30, 45
    minutes, 1 hour, …) up to 90 units or 90 days, and `own_ms`, the pipeline's own sum.
    """
    longest_ms = 90 * max(unit_ms, DAY_MS)
    offered = {ms for ms in _OFFERED_MS if ms % unit_ms == 0 and ms <= longest_ms}
    if unit_ms not in _UNITS_MS:
        offered |= {unit_ms * many for many in (1, 2, 3, 4, 6, 8, 12, 24, 48, 90)}
    return tuple(sorted({0, *offered, own_ms}))


def curve_of(totals_ms: Sequence[int], kept_from: Sequence[int]) -> LossCurve:
    """The loss curve from the number of totals that lose each record.

    Args:
        totals_ms: on offer, ascending.
        kept_from: at index i the number of records that are lost at the first i totals and kept at
            all larger ones; so it has one number more than there are totals.
    """
    records = sum(kept_from)
    lost = tuple(sum(kept_from[place + 1 :]) for place in range(len(totals_ms)))
    return LossCurve(tuple(totals_ms), lost, records)
