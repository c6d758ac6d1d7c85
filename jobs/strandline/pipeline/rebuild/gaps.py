"""The gaps of a run, staged after its pieces: they depend on the arrivals alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame

from strandline.engine.calendar.gaps import Gaps, parts_to_list
from strandline.engine.calendar.slots import Calendar
from strandline.engine.position.axis import Axis
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import (
    TimeRange,
    parts_outside,
)
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.rebuild.first_accepted import FirstAccepted, first_accepted_before
from strandline.pipeline.rebuild.piece import Piece, stage_calendar, with_ended_inputs
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness, in_ms


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
    first = FirstAccepted(ctx, observation, plan, axis, state).found(known, pieces)
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
