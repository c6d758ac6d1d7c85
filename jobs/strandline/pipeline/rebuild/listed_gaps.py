"""Which gaps a run lists: in its range, around it, and around the slots outside that it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from strandline.engine.calendar.gaps import Gaps, ids_outside
from strandline.engine.calendar.slots import Calendar
from strandline.model.intervals import EVERYTHING, merged
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.first_accepted import FirstAccepted, first_accepted_before
from strandline.pipeline.rebuild.piece import Piece
from strandline.pipeline.request.context import Context


@dataclass(frozen=True)
class ListedGaps:
    """The gaps that a run lists, and the other slots that it computes, as ids of windows.

    Attributes:
        gaps: the gaps of the history.
        plan: the run's plan.
        pieces: its staged pieces.
        known: the first slot that had accepted a record before the run; None: there was none.
        lists: whether it lists gaps; else all outside its range stay.
    """

    gaps: Gaps
    plan: Plan
    pieces: Sequence[Piece]
    known: int | None
    lists: bool

    @classmethod
    def of(cls, ctx: Context, planned: PlannedRun, pieces: Sequence[Piece]) -> ListedGaps:
        """The gaps of a planned run, after its pieces are staged."""
        history, plan = planned.observation.history, planned.plan
        known = first_accepted_before(ctx, planned.state)
        first = FirstAccepted(ctx, planned).found(known, pieces)
        gaps = Gaps(history, history.crossings.without_dropped_end(plan.clock), first)
        return cls(gaps, plan, pieces, known, lists=ctx.spec.quality.gaps != "allow")

    @cached_property
    def filled(self) -> frozenset[int]:
        """The slots of the range with records."""
        return frozenset[int]().union(*(piece.filled for piece in self.pieces))

    @cached_property
    def stay(self) -> list[range]:
        """The slots whose gaps stay as they are published, apart."""
        others = [] if self.lists else EVERYTHING.outside(self.plan.scope.windows)
        grid = self.gaps.history.grid
        return [*map(grid.ids_within, merged([*self.plan.gaps_that_stay, *others]))]

    @cached_property
    def listed(self) -> list[range]:
        """The runs of gaps in the range, around it, and around the touched slots, in order."""
        if not self.lists:
            return []
        gaps, within = self.gaps, self.gaps.history.grid.ids_within(self.plan.scope.windows)
        runs = {*gaps.around(within, self.filled)}
        for one in self._touched:
            runs.update(gaps.around(one, one if gaps.has_record(one.start) else ()))
        for one in self._moved:
            runs.update(gaps.around(one, _with_records(gaps, one)))
        parts = (part for row in runs for part in ids_outside(row, self.stay))
        return sorted(parts, key=lambda part: part.start)

    @property
    def computed(self) -> Iterator[range]:
        """The slots of which the run knows whether they are gaps."""
        yield from map(self.gaps.history.grid.ids_within, self.plan.scope.rebuilt)
        yield from self._touched
        yield from self.listed
        for moved in self._moved:
            yield from ids_outside(moved, self.stay)

    @property
    def _touched(self) -> Iterator[range]:
        """The older and the kept slots that have got, or lost, records: each by itself."""
        step = self.gaps.history.grid.step_ms
        for window in frozenset[int]().union(*(piece.touched for piece in self.pieces)):
            yield range(window, window + step, step)

    @property
    def _moved(self) -> Iterator[range]:
        """The slots between the calendar's former first slot and the present one, both included.

        It begins with the first slot that has accepted a record, which another run may change.
        """
        known, first, step = self.known, self.gaps.first, self.gaps.history.grid.step_ms
        if self.lists and known is not None and first is not None and known != first:
            yield range(min(known, first), max(known, first) + step, step)


def _with_records(gaps: Gaps, ids: range) -> frozenset[int]:
    """The slots with records among some neighbouring slots."""
    calendar = Calendar.of(gaps.history, gaps.clock, [gaps.starts_of(ids)])
    return frozenset(calendar.windows["window_id"].astype("int64").tolist())
