"""The gaps of a run, staged after its pieces: they depend on the arrivals alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from strandline.engine.calendar.gaps import Gaps, parts_to_list
from strandline.engine.calendar.slots import Calendar
from strandline.engine.kind import kind_of
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import Scope, rebuild_of_scope
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.reads import dataset_of, files_started_in, started_in
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    instant_of,
    midnight_of,
    parts_outside,
)
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.counts import accepted_by_slot
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.rebuild.piece import Piece, stage_calendar, with_ended_inputs
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness, in_ms
from strandline.tables import COMPLETENESS


@dataclass(frozen=True)
class StagedGaps:
    """The gaps that a run lists.

    Attributes:
        completeness: all staged rows of the calendar, including the gaps.
        rows: the gaps' rows; if there are very many, only the first and the last ones.
        not_in_rows: the number of further rows in the range, by state.
        count: the number of slots of the range that are gaps, listed or not.
        known: the number of these that somebody has acknowledged.
        known_in: the ranges whose gaps are acknowledged.
        around: ranges of slot starts outside the range whose gaps are listed again.
        first_accepted: the id of the first window that accepted a record; None: none has.
    """

    completeness: DataFrame
    rows: pd.DataFrame
    not_in_rows: Counter[str]
    count: int
    known: int
    known_in: Sequence[TimeRange]
    around: tuple[TimeRange, ...]
    first_accepted: int | None


def stage_gaps(
    ctx: Context,
    observation: Observation,
    plan: Plan,
    axis: Axis,
    pieces: Sequence[Piece],
    state: PipelineState,
) -> StagedGaps:
    """Stage the gaps among and around the slots of a run's pieces.

    Args:
        ctx: the run.
        observation: the run's observation.
        plan: the run's plan.
        axis: the axis of instants.
        pieces: the staged pieces.
        state: the pipeline's state, by its ledger.
    """
    known = first_accepted_before(ctx, state)
    first = _First(ctx, observation, plan, axis, state).found(known, pieces)
    clock = observation.history.crossings.without_dropped_end(plan.clock)
    gaps = Gaps(observation.history, clock, first)
    filled = frozenset[int]().union(*(piece.filled for piece in pieces))
    listed, around = list[range](), list[TimeRange]()
    if ctx.spec.quality.gaps != "allow":
        listed, around = _listed(gaps, plan, filled, pieces, known)
    parts = _Parts(ctx, plan, pieces)
    parts.stage_all(gaps, listed)
    return StagedGaps(
        completeness=parts.completeness,
        rows=parts.rows,
        not_in_rows=parts.not_in_rows,
        count=gaps.count(plan.scope.windows, filled),
        known=gaps.count_known(plan.scope.windows, filled, state.known_gaps),
        known_in=state.known_gaps,
        around=tuple(around),
        first_accepted=first,
    )


class _Parts:
    """The gaps of a run as parts of the calendar; only the first and the last part are audited."""

    def __init__(self, ctx: Context, plan: Plan, pieces: Sequence[Piece]) -> None:
        """Start after the pieces of a run."""
        self._ctx, self._plan, self._number = ctx, plan, len(pieces)
        self._shown: list[pd.DataFrame] = []
        self.completeness = pieces[-1].staged["completeness"]
        self.not_in_rows = Counter[str]()

    def stage_all(self, gaps: Gaps, listed: Sequence[range]) -> None:
        """Stage the gaps that are listed."""
        for slots in gaps.listed(listed):
            self._stage(slots)

    def _stage(self, slots: pd.DataFrame) -> None:
        """Stage gaps as a further part."""
        rows = _rows_of(slots, self._ctx)
        self.completeness = stage_calendar(self._ctx, rows, self._number)
        self._number += 1
        if len(self._shown) > 1:
            self.not_in_rows += _states_in(self._shown.pop(), self._plan.scope.windows)
        self._shown.append(with_ended_inputs(rows, self._plan))

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of the first and the last part."""
        if not self._shown:
            return pd.DataFrame(columns=["slot_start"])
        return pd.concat(self._shown, ignore_index=True)


def _rows_of(slots: pd.DataFrame, ctx: Context) -> pd.DataFrame:
    """Gaps as rows of the calendar."""
    return completeness(
        slots,
        accepted={},
        refused={},
        spec_fingerprint=ctx.spec.spec_fingerprint,
        run_id=ctx.run_id,
        may_go_unfired=ctx.spec.may_go_unfired,
        gap=True,
    )


def _states_in(rows: pd.DataFrame, within: TimeRange) -> Counter[str]:
    """The number of the calendar's rows that start in a range, by state."""
    starts = in_ms(rows["slot_start"])
    inside = (starts >= within.start_ms) & (starts < within.end_ms)
    return Counter(rows.loc[inside, "state"].tolist())


def _listed(
    gaps: Gaps, plan: Plan, filled: frozenset[int], pieces: Sequence[Piece], known: int | None
) -> tuple[list[range], list[TimeRange]]:
    """The runs of gaps to list, and the ranges of slots outside the range among them.

    `filled`: the slots of the range with records; `known`: the first slot that had accepted a
    record before the run, None: there was none.
    """
    ids, stay = gaps.history.grid.ids_within(plan.scope.windows), plan.gaps_that_stay
    rows = {*gaps.around(ids, filled)}
    for window in {window for piece in pieces for window in piece.touched}:
        only = range(window, window + ids.step, ids.step)
        rows |= {*gaps.around(only, {window} if gaps.has_record(window) else ())}
    around = list[TimeRange]()
    if known is not None and gaps.first is not None and known != gaps.first:
        # slots between the first one that accepted a record before and the first one now have
        # become gaps, or are gaps no longer
        moved = range(min(known, gaps.first), max(known, gaps.first) + ids.step, ids.step)
        rows |= {*gaps.around(moved, _with_records(gaps, moved))}
        around += parts_outside([gaps.starts_of(moved)], stay)
    stays = [gaps.history.grid.ids_within(within) for within in stay]
    parts = [part for row in rows for part in parts_to_list(row, stays)]
    around += [
        gaps.starts_of(part)
        for part in parts
        if not (ids.start <= part.start and part.stop <= ids.stop)
    ]
    return sorted(parts, key=lambda part: part.start), around


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
class _First:
    """Finds the first window that accepted a record, also among windows outside the run's range."""

    ctx: Context
    observation: Observation
    plan: Plan
    axis: Axis
    state: PipelineState

    def found(self, known: int | None, pieces: Sequence[Piece]) -> int | None:
        """The id of the window; None: no window has accepted a record, or gaps are not reported.

        Args:
            known: the id that earlier runs have found; None: they have found none.
            pieces: what this run has rebuilt.
        """
        within, grid = self.plan.scope.windows, self.observation.history.grid
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
        grid, scope = self.observation.history.grid, self.plan.scope
        kept = (one.shared_with(scope.windows) for one in scope.kept)
        found = [_first_published(self.ctx, grid, one) for one in kept if one is not None]
        found.append(_first_in(pieces, grid, scope.windows))
        return min((first for first in found if first is not None), default=None)

    def _first_of(self, within: TimeRange) -> int | None:
        """The first such window that starts in a range: a published one, else a rebuilt one."""
        dates = self._event_dates(within)
        if not dates or self.ctx.spec.quality.gaps == "allow":
            return None
        if self.state.frontier_ms is not None:
            return _first_published(self.ctx, self.observation.history.grid, within)
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
        days = self.observation.history.days
        inside = days.rows_of(days.events_of(within))
        return sorted({midnight_of(day) for day in inside["event_date"]})

    def _first_rebuilt(self, dates: TimeRange, within: TimeRange) -> int | None:
        history, landing = self.observation.history, self.ctx.landing
        sharing = history.grid.sharing(dates)
        starts = TimeRange(
            max(sharing.start_ms - history.grid.span_ms, within.start_ms),
            min(sharing.end_ms, within.end_ms),
        )
        scope = Scope(kind_of(self.ctx.spec).whole_slots(starts))
        records = landing.records(self.axis, history.days.rebuilt)
        columns = landing.source_columns
        rebuilt = rebuild_of_scope(records, columns, history, self.plan.clock, scope)
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
        ids = in_ms(slots["slot_end"]) if grid.cumulative else starts
        inside = ids[accepted & (starts >= within.start_ms)]
        if len(inside):
            return int(inside.min())
    return None


def _first_published(ctx: Context, grid: Grid, within: TimeRange) -> int | None:
    """The first published window of a range that has accepted a record."""
    table = ctx.store.table(COMPLETENESS.name)
    if table is None:
        return None
    accepted = (ds.field("on_time") > 0) | (ds.field("late_accepted") > 0)
    rows = dataset_of(table, files_started_in("slot_start", within)).to_table(
        columns=["slot_start", "slot_end"], filter=accepted & started_in("slot_start", within)
    )
    first = pc.min(rows["slot_end" if grid.cumulative else "slot_start"]).as_py()
    return None if first is None else instant_of(first)
