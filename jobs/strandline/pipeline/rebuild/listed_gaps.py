"""Which gaps a run lists: around its slots, and after the first window that accepted a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.engine.calendar.gaps import Gaps, ids_outside
from strandline.engine.calendar.slots import Calendar
from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.scope import Scope
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    instant_of,
    merged,
    midnight_of,
)
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.plan.published_rows import slots_in
from strandline.pipeline.rebuild.piece import Piece
from strandline.pipeline.rebuild.slots import accepted_by_slot
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import in_ms


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
        first = _FirstAccepted(ctx, planned).found(known, pieces)
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


def first_accepted_before(ctx: Context, state: PipelineState) -> int | None:
    """The first window that accepted a record, by the last run in force with the same settings."""
    return next(
        (
            run.first_accepted_ms
            for run in reversed(state.in_force)
            if run.first_accepted_ms is not None
            and run.spec_fingerprint == ctx.spec.spec_fingerprint
        ),
        None,
    )


@dataclass(frozen=True)
class _FirstAccepted:
    """Finds the first window that accepted a record, also among windows outside the run's range."""

    ctx: Context
    planned: PlannedRun

    @property
    def history(self) -> History:
        """Everything observed below the horizon."""
        return self.planned.observation.history

    def found(self, known: int | None, pieces: Sequence[Piece]) -> int | None:
        """The id of the window; None: no window has accepted a record, or gaps are not reported.

        Args:
            known: the id that earlier runs have found; None: they have found none.
            pieces: what this run has rebuilt.
        """
        within, grid = self.planned.plan.scope.windows, self.history.grid
        ids = grid.ids_within(within)
        before = TimeRange(EVERYTHING.start_ms, within.start_ms)
        behind = TimeRange(within.end_ms, EVERYTHING.end_ms)
        if known is not None and known < ids.start:
            return known
        first = self._first_of(before) if known is None else None
        if first is None:
            first = self._first_in_range(pieces)
        if first is not None:
            return first
        return known if known is not None and known >= ids.stop else self._first_of(behind)

    def _first_in_range(self, pieces: Sequence[Piece]) -> int | None:
        """The first such window of the range, rebuilt or published before and kept."""
        grid, scope = self.history.grid, self.planned.plan.scope
        kept = (one.shared_with(scope.windows) for one in scope.kept)
        found = [_first_published(self.ctx, grid, one) for one in kept if one is not None]
        found.append(_first_in(pieces, grid, scope.windows))
        return min((first for first in found if first is not None), default=None)

    def _first_of(self, within: TimeRange) -> int | None:
        """The first such window that starts in a range: a published one, else a rebuilt one."""
        dates = self._event_dates(within)
        if not dates or self.ctx.spec.quality.gaps == "allow":
            return None
        if self.planned.state.frontier_ms is not None:
            return _first_published(self.ctx, self.history.grid, within)
        count = 1
        while dates:
            some, dates = dates[:count], dates[count:]
            first = self._first_rebuilt(TimeRange(some[0], some[-1] + DAY_MS), within)
            if first is not None:
                return first
            count *= 2
        return None

    def _event_dates(self, within: TimeRange) -> list[int]:
        """The midnights of the dates that hold event times of windows which start in a range."""
        days = self.history.days
        inside = days.rows_of(days.events_of(within))
        return sorted({midnight_of(day) for day in inside["event_date"]})

    def _first_rebuilt(self, dates: TimeRange, within: TimeRange) -> int | None:
        history, clock = self.history, self.planned.plan.clock
        sharing = history.grid.sharing(dates)
        starts = TimeRange(
            max(sharing.start_ms - history.grid.span_ms, within.start_ms),
            min(sharing.end_ms, within.end_ms),
        )
        scope = Scope(kind_of(self.ctx.spec).whole_slots(starts))
        records, columns = self.ctx.records(history), self.ctx.landing.source_columns
        rebuilt = rebuild_of_scope(records, columns, history, clock, scope)
        ids = history.grid.ids_within(starts)
        found = accepted_by_slot(rebuilt.accepted_by_slot()).items()
        accepting = (id_ for id_, accepted in found if accepted.records)
        return min((id_ for id_ in accepting if ids.start <= id_ < ids.stop), default=None)


def _first_in(pieces: Sequence[Piece], grid: Grid, within: TimeRange) -> int | None:
    """The first window of a range that has accepted a record, by the calendar of its pieces."""
    for piece in pieces:
        slots = piece.calendar
        accepted = (slots["on_time"] + slots["late_accepted"]) > 0
        starts = in_ms(slots["slot_start"])
        ids = in_ms(slots[f"slot_{grid.id_edge}"])
        inside = ids[accepted & (starts >= within.start_ms)]
        if len(inside):
            return int(inside.min())
    return None


def _first_published(ctx: Context, grid: Grid, within: TimeRange) -> int | None:
    """The first published window of a range that has accepted a record."""
    accepted = (ds.field("on_time") > 0) | (ds.field("late_accepted") > 0)
    id_ = f"slot_{grid.id_edge}"
    first = pc.min(slots_in(ctx.store, within, [id_], accepted)[id_]).as_py()
    return None if first is None else instant_of(first)
