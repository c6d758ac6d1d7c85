"""The gaps of a run, staged after its pieces: they depend on the arrivals alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from strandline.engine.calendar.gaps import MOST_LISTED, Gaps, parts_to_list
from strandline.engine.calendar.slots import Calendar
from strandline.model.intervals import TimeRange, parts_outside
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.first_accepted import FirstAccepted, first_accepted_before
from strandline.pipeline.rebuild.piece import Piece, stage_calendar
from strandline.pipeline.rebuild.slots_that_stay import with_published_values
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness, in_ms


@dataclass(frozen=True)
class StagedGaps:
    """The gaps that a run lists.

    Attributes:
        rows: the gaps' rows; if there are very many, only the first and the last ones.
        not_in_rows: the number of further rows in the range.
        count: the number of slots of the range that are gaps, listed or not.
        known: the number of these that somebody has acknowledged.
        known_in: the ranges whose gaps are acknowledged.
        around: ranges of slot starts outside the range whose gaps are listed again.
        begun_in: the starts of other slots outside the range: a row for many gaps that begins with
            such a slot is listed again, too.
        first_accepted: the id of the first window that accepted a record; None: none has.
    """

    rows: pd.DataFrame
    not_in_rows: int
    count: int
    known: int
    known_in: Sequence[TimeRange]
    around: tuple[TimeRange, ...]
    begun_in: tuple[int, ...]
    first_accepted: int | None


def stage_gaps(ctx: Context, planned: PlannedRun, pieces: Sequence[Piece]) -> StagedGaps:
    """Stage the gaps among and around the slots of a run's staged pieces."""
    history, plan, state = planned.observation.history, planned.plan, planned.state
    known = first_accepted_before(ctx, state)
    first = FirstAccepted(ctx, planned).found(known, pieces)
    gaps = Gaps(history, history.crossings.without_dropped_end(plan.clock), first)
    filled = frozenset[int]().union(*(piece.filled for piece in pieces))
    touched, listed, around = frozenset[int](), list[range](), list[TimeRange]()
    if ctx.spec.quality.gaps != "allow":
        touched = touched.union(*(piece.touched for piece in pieces))
        listed, around = _listed(gaps, plan, filled, touched, known)
    rows, not_in_rows = _stage_rows(ctx, plan.scope.windows, gaps.listed(listed), len(pieces))
    count, known_count = gaps.counts(plan.scope.windows, filled, state.known_gaps)
    return StagedGaps(
        rows=rows,
        not_in_rows=not_in_rows,
        count=count,
        known=known_count,
        known_in=state.known_gaps,
        around=tuple(around),
        begun_in=tuple({history.grid.starts_of(window) for window in touched}),
        first_accepted=first,
    )


def _stage_rows(
    ctx: Context, within: TimeRange, parts: Iterable[pd.DataFrame], begin: int
) -> tuple[pd.DataFrame, int]:
    """Stage gaps part by part, the first as piece `begin`.

    Returns the rows of the first and the last part, which alone are audited, and the number of the
    further rows in the range.
    """
    shown, not_in_rows = list[pd.DataFrame](), 0
    for number, slots in enumerate(parts, begin):
        rows = completeness(slots, ctx.spec, run_id=ctx.run_id, accepted={}, refused={}, gap=True)
        rows = _by_their_rules(rows, ctx, within)
        stage_calendar(ctx, rows, number)
        if len(shown) > 1:
            not_in_rows += int(_are_in(shown.pop(), within).sum())
        shown.append(rows)
    if not shown:
        return pd.DataFrame(columns=["slot_start"]), not_in_rows
    return pd.concat(shown, ignore_index=True), not_in_rows


def _by_their_rules(rows: pd.DataFrame, ctx: Context, within: TimeRange) -> pd.DataFrame:
    """Gaps as the rules of their time have closed them; in the range, as the present rules do."""
    present, outside = ctx.spec.spec_fingerprint, ~_are_in(rows, within)
    if all(run.spec_fingerprint == present for run in ctx.ledger.state().published):
        return rows
    parts = [rows[~outside], with_published_values(ctx, rows[outside])]
    return pd.concat([part for part in parts if len(part)]).sort_index()


def _are_in(rows: pd.DataFrame, within: TimeRange) -> pd.Series[bool]:
    """Whether rows of the calendar start in a range."""
    starts = in_ms(rows["slot_start"])
    return (starts >= within.start_ms) & (starts < within.end_ms)


def _listed(
    gaps: Gaps, plan: Plan, filled: frozenset[int], touched: frozenset[int], known: int | None
) -> tuple[list[range], list[TimeRange]]:
    """The runs of gaps in the range, around it, and around the touched slots, in order, as ids.

    And the ranges outside the range where they replace published rows (`StagedGaps.around`).

    Args:
        gaps: the gaps of the history.
        plan: the run's plan.
        filled: the slots of the range with records.
        touched: the older slots that have got, or lost, records.
        known: the first slot that had accepted a record before the run; None: there was none.
    """
    grid, stay = gaps.history.grid, plan.gaps_that_stay
    ids = grid.ids_within(plan.scope.windows)
    rows, around = {*gaps.around(ids, filled), *_beside(gaps, touched)}, list[TimeRange]()
    if known is not None and gaps.first is not None and known != gaps.first:
        # slots between the first one that accepted a record before and the first one now have
        # become gaps, or are gaps no longer
        moved = range(min(known, gaps.first), max(known, gaps.first) + ids.step, ids.step)
        rows |= {*gaps.around(moved, _with_records(gaps, moved))}
        around += parts_outside([gaps.starts_of(moved)], stay)
    stays = [grid.ids_within(within) for within in stay]
    parts = [part for row in rows for part in parts_to_list(row, stays)]
    outside = [part for part in parts if not (ids.start <= part.start and part.stop <= ids.stop)]
    return sorted(parts, key=lambda part: part.start), [*around, *_starts_of_rows(gaps, outside)]


def _beside(gaps: Gaps, touched: Collection[int]) -> Iterator[range]:
    """The runs of gaps that border on, or consist of, some slots that are not neighbours."""
    grid = gaps.history.grid
    for window in touched:
        only = range(window, window + grid.step_ms, grid.step_ms)
        yield from gaps.around(only, {window} if gaps.has_record(window) else ())
    if grid.cumulative and grid.most_windows > MOST_LISTED:
        # several rows for many gaps may begin with windows of one start
        for start_ms in {grid.starts_of(window) for window in touched}:
            of_start = grid.ids_within(TimeRange(start_ms, start_ms + 1))
            yield from gaps.around(of_start, _with_records(gaps, of_start))


def _starts_of_rows(gaps: Gaps, parts: Iterable[range]) -> Iterator[TimeRange]:
    """Where the rows of runs of gaps start: each gap that is listed by itself is a range."""
    single = set[int]()
    for part in parts:
        if len(part) > MOST_LISTED:
            yield gaps.starts_of(part)
        else:
            single.update(map(gaps.history.grid.starts_of, part))
    yield from (TimeRange(start_ms, start_ms + 1) for start_ms in single)


def _with_records(gaps: Gaps, ids: range) -> frozenset[int]:
    """The slots with records among some neighbouring slots."""
    calendar = Calendar.of(gaps.history, gaps.clock, [gaps.starts_of(ids)])
    return frozenset(calendar.windows["window_id"].astype("int64").tolist())
