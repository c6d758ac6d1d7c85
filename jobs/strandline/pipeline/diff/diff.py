"""Compares staged with published rows: the rows to insert, update and delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.conditions import any_of
from strandline.engine.scope import Scope
from strandline.errors import InputError
from strandline.lake.publish.arrow_diff import DELETE, only_deleted
from strandline.lake.publish.staged_diff import Change, Compared, counts_of, stage_diff, whole_part
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import (
    columns_of,
    dataset_of,
    files_started_in,
    holds,
    rows_of,
    started_at,
    started_in,
)
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.diff.fitting import fit_of
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.plan.published_rows import LateRecords, no_longer_malformed, started_in_any
from strandline.pipeline.rebuild.gaps import StagedGaps
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.outcome import Outcome
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable

_WITH_THE_KEY = {"windows", "firings", "pairs"}
"""The tables whose columns and rows depend on the pipeline's key."""


def diffs(
    ctx: Context, staged: Staged, planned: PlannedRun, *, recreate: bool = False
) -> list[Change]:
    """The changes that the staged parts make in the published tables.

    Args:
        ctx: the run.
        staged: its staged parts.
        planned: the planned run.
        recreate: whether they replace everything published.
    """
    plan = replace(planned.plan, scope=Scope(EVERYTHING)) if recreate else planned.plan
    oldest_ms = min(staged.oldest_ms, plan.scope.windows.start_ms)
    days = planned.observation.history.days.of_windows(plan.scope.windows)
    leaving = [*staged.leaving, *no_longer_malformed(ctx, plan.scope.rebuilt, days)]
    changes = []
    for name, part in staged.parts.items():
        target = ctx.spec.tables[name]
        leaves = leaving if name == QUARANTINE.name else ()
        gaps = staged.gaps if name == COMPLETENESS.name else None
        covered_rows = _Covered(ctx, target, part, plan, oldest_ms, gaps, leaves)
        changes.append(covered_rows.change(replaces_all=recreate and name in _WITH_THE_KEY))
    return changes


def tallies(changes: Sequence[Change], emptied: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The number of rows that a run inserts, updates and deletes in each table.

    `emptied`: see `no_longer_kept`.
    """
    counts = {change.target.name: change.counts for change in changes}
    return counts | {name: only_deleted(rows) for name, rows in emptied.items()}


def outside(changes: Sequence[Change], runs: Sequence[Outcome]) -> Sequence[Change]:
    """The changes without the rows that some runs by hand have changed before.

    These are the windows and slots that start in their ranges, and the gaps around the ranges. The
    part of a row for many gaps that such a run leaves does not exist yet: that the next one deletes
    it is not shown.
    """
    if not runs:
        return changes
    ranges = [run.range for run in runs if run.range]
    around = [run.gaps_around for run in runs if run.gaps_around is not None]
    found = []
    for change in changes:
        start = change.target.start
        changed = started_in_any(start, ranges)
        if change.target.name == COMPLETENESS.name:
            changed = any_of([changed, *around], changed)
        wanted = ~changed | ds.field(start).is_null()
        rows = replace(change.rows, wanted=wanted)
        found.append(replace(change, rows=rows, counts=counts_of(rows)))
    return found


@dataclass(frozen=True)
class _Covered:
    """The staged rows for a table, and the published rows that they are compared with.

    Attributes:
        ctx: the run.
        target: the table.
        staged: its staged rows.
        plan: the run's plan.
        oldest_ms: the start of the oldest slot with staged rows.
        gaps: the gaps that the run lists, if the table is the calendar; None: another table.
        leaves: further published rows to delete.
    """

    ctx: Context
    target: PublishedTable
    staged: Part
    plan: Plan
    oldest_ms: int
    gaps: StagedGaps | None
    leaves: Sequence[Part]

    @property
    def scope(self) -> TimeRange:
        """The range of starts of the published rows to compare."""
        windows = self.plan.scope.windows
        oldest_ms = self.oldest_ms if self.target.has_older_slots else windows.start_ms
        starts = TimeRange(oldest_ms, windows.end_ms)
        return starts if self.gaps is None else self.gaps.around(starts)

    def change(self, *, replaces_all: bool) -> Change:
        """The changes of the table; all its rows are deleted if the staged ones replace them."""
        table = self.ctx.store.table(self.target.name)
        of_another_kind = (
            table is not None and self.target.start not in columns_of(table).names
        )  # then no row of it belongs to a range
        if replaces_all or of_another_kind:
            return _replacing_all(self.ctx, self.target, self.staged)
        if table is None:
            return whole_part(self.target, self.staged)
        return self._change_of(table)

    def _change_of(self, table: DeltaTable) -> Change:
        """The changes of the table by comparison with its rows.

        Raises:
            InputError: a staged column does not fit, or changed rows have no unique key.
        """
        ctx, target, scope = self.ctx, self.target, self.scope
        of_scope = started_in(target.start, scope), files_started_in(target.start, scope)
        if not self.leaves and not holds(table, *of_scope):
            return whole_part(target, self.staged)
        compared = Compared(
            target,
            self.staged.rows(),
            chain(self._published(table), *(leaving.rows() for leaving in self.leaves)),
            fit_of(ctx, table, target, self.staged.schema),
            keep=target.name == QUARANTINE.name,  # of what the landing table has no more
            may_go=self._slots_that_may_go if target.name == COMPLETENESS.name else None,
        )
        change = stage_diff(ctx.staging, f"{target.name}_diff", compared)
        if change.names_rows_twice:
            raise _ambiguous(ctx.place(target.name))
        return change

    def _published(self, table: DeltaTable) -> Iterator[pa.Table]:
        """The published rows that are deleted unless the run stages them again.

        For older slots, these are the late records that arrived between the run's base and its
        horizon, and the calendar's rows of slots with changes.
        """
        start, plan = self.target.start, self.plan
        rows = started_in(start, plan.scope.windows)
        if self.target.name == COMPLETENESS.name:
            rows |= self._listed_again | started_in_any(start, [one.windows for one in plan.kept])
            if plan.scope.older_since_ms is not None:
                rows |= started_in(start, self._older)
        else:
            rows &= ~started_in_any(start, plan.scope.kept)
        published = rows_of(dataset_of(table, files_started_in(start, self.scope)), rows)
        if self.target.name != QUARANTINE.name:
            return published
        return chain(published, *(late.rows(self.ctx, table) for late in self._late))

    @property
    def _late(self) -> Iterator[LateRecords]:
        """The late records of older slots, and of windows that stay, whose arrivals it covers."""
        plan = self.plan
        horizon_ms, since_ms = plan.clock.horizon_ms, plan.scope.older_since_ms
        if since_ms is not None:
            yield LateRecords(self._older, TimeRange(since_ms, horizon_ms), plan.scope.kept)
        for kept in plan.kept:
            if kept.since_ms is not None:
                yield LateRecords(kept.windows, TimeRange(kept.since_ms, horizon_ms))

    @property
    def _older(self) -> TimeRange:
        """The range of starts of older slots."""
        return TimeRange(self.scope.start_ms, self.plan.scope.older_end_ms)

    @property
    def _slots_that_may_go(self) -> ds.Expression:
        """The rows of the calendar that the run may delete.

        A slot outside the range stays, unless it has lost all its records, or is a gap around the
        range that is no longer listed.
        """
        start, scope = self.target.start, self.plan.scope
        may_go = started_in(start, scope.windows) | started_at(start, scope.older_too)
        return (may_go & ~started_in_any(start, scope.kept)) | self._listed_again

    @property
    def _listed_again(self) -> ds.Expression:
        """The rows of gaps outside the range that the run lists again."""
        return ds.scalar(False) if self.gaps is None else self.gaps.again


def _ambiguous(place: str) -> InputError:
    """The error for changed published rows that the present keys do not identify uniquely."""
    return InputError(
        place,
        "several published rows are one by the pipeline's key: they were published under "
        "another key",
        "give the pipeline with its new key a new name, or replace all that it has published "
        "with --recreate",
    )


def _replacing_all(ctx: Context, target: PublishedTable, staged: Part) -> Change:
    """The change that replaces everything in a table by a staged part."""
    change = whole_part(target, staged)
    counts = {**change.counts, DELETE: ctx.store.rows(target.name)}
    return replace(change, counts=counts, replaces_all=True)


def no_longer_kept(ctx: Context) -> dict[str, int]:
    """The number of rows of tables that the pipeline no longer keeps; publishing deletes them.

    Returns:
        The number of rows by table, without empty tables.
    """
    others = sorted(_WITH_THE_KEY - ctx.spec.keeps)
    published = {name: ctx.store.rows(name) for name in others}
    return {name: rows for name, rows in published.items() if rows}
