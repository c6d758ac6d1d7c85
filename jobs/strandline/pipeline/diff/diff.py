"""Compares staged with published rows: the rows to insert, update and delete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from strandline.engine.rebuild import Scope
from strandline.errors import InputError
from strandline.lake.publish.apply_diff import fit_into
from strandline.lake.publish.arrow_diff import DELETE, INSERT, UPDATE
from strandline.lake.publish.staged_diff import Compared, stage_diff
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import columns_of, files_started_in, holds, started_in
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.published_rows import no_longer_malformed
from strandline.pipeline.rebuild.covered_rows import covered, slots_that_may_go
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable


@dataclass(frozen=True)
class Change:
    """The changes of a run in one table.

    Attributes:
        rows: the rows to insert, update and delete, with `OP`; or all rows to insert, without it.
        counts: the number of rows by operation.
        whole: whether `rows` is the whole staged part, as nothing was published in its scope.
        replaces_all: whether the rows replace everything in the table, whatever its columns.
    """

    target: PublishedTable
    rows: Part
    counts: dict[str, int]
    whole: bool
    replaces_all: bool = False


_WITH_THE_KEY = {"windows", "firings", "pairs"}
"""The tables whose columns and rows depend on the pipeline's key."""


def diffs(
    ctx: Context, staged: Staged, plan: Plan, observation: Observation, *, recreate: bool = False
) -> list[Change]:
    """The changes that the staged parts make in the published tables.

    Args:
        ctx: the run.
        staged: its staged parts.
        plan: the run's plan.
        observation: the run's observation.
        recreate: whether they replace everything published.
    """
    if recreate:
        plan = replace(plan, scope=Scope(EVERYTHING))
    oldest_ms = min(staged.oldest_ms, plan.scope.windows.start_ms)
    around = defaultdict[str, tuple[TimeRange, ...]](tuple, completeness=staged.gaps.around)
    leaving = [*staged.leaving, *_no_longer_malformed(ctx, plan, observation)]
    changes = []
    for name, rows in parts_of(staged).items():
        if rows is None:
            continue
        target, part = ctx.spec.tables[name], ctx.staging.part(name, rows.schema)
        leaves = leaving if name == QUARANTINE.name else ()
        covered_rows = _Covered(ctx, target, part, plan, oldest_ms, around[name], leaves)
        changes.append(covered_rows.change(replaces_all=recreate and name in _WITH_THE_KEY))
    return changes


def _no_longer_malformed(ctx: Context, plan: Plan, observation: Observation) -> list[Part]:
    days = observation.history.days.of_windows(plan.scope.windows)
    return no_longer_malformed(ctx, plan.scope.rebuilt, days)


def tallies(changes: Sequence[Change], emptied: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The number of rows that a run inserts, updates and deletes in each table.

    `emptied`: see `no_longer_kept`.
    """
    counts = {change.target.name: change.counts for change in changes}
    emptied_counts = {name: {INSERT: 0, UPDATE: 0, DELETE: rows} for name, rows in emptied.items()}
    return counts | emptied_counts


def parts_of(staged: Staged) -> dict[str, DataFrame | None]:
    """The staged rows for each published table; None: the pipeline keeps no such rows."""
    of_windows = {"firings": staged.firings} if staged.result == "windows" else {}
    return {
        "quarantine": staged.quarantine,
        "completeness": staged.completeness,
        **of_windows,
        **({} if staged.pairs is None else {"pairs": staged.pairs}),
        staged.result: staged.results,
    }


@dataclass(frozen=True)
class _Covered:
    """The staged rows for a table, and the published rows that they are compared with.

    Attributes:
        ctx: the run.
        target: the table.
        staged: its staged rows.
        plan: the run's plan.
        oldest_ms: the start of the oldest slot with staged rows.
        around: ranges of the calendar outside the run's range in which gaps are listed again.
        leaves: further published rows to delete.
    """

    ctx: Context
    target: PublishedTable
    staged: Part
    plan: Plan
    oldest_ms: int
    around: Sequence[TimeRange]
    leaves: Sequence[Part]

    @property
    def scope(self) -> TimeRange:
        """The range of starts of the published rows to compare."""
        windows = self.plan.scope.windows
        oldest_ms = self.oldest_ms if self.target.has_older_slots else windows.start_ms
        return TimeRange(
            min([oldest_ms, *(one.start_ms for one in self.around)]),
            max([windows.end_ms, *(one.end_ms for one in self.around)]),
        )

    def change(self, *, replaces_all: bool) -> Change:
        """The changes of the table; all its rows are deleted if the staged ones replace them."""
        table = self.ctx.store.table(self.target.name)
        of_another_kind = (
            table is not None and self.target.start not in columns_of(table).names
        )  # then no row of it belongs to a range
        if replaces_all or of_another_kind:
            return _replacing_all(self.ctx, self.target, self.staged)
        return whole_part(self.target, self.staged) if table is None else self._change_of(table)

    def _change_of(self, table: DeltaTable) -> Change:
        """The changes of the table by comparison with its rows.

        Raises:
            InputError: a staged column does not fit, or changed rows have no unique key.
        """
        ctx, target, scope = self.ctx, self.target, self.scope
        of_scope = started_in(target.start, scope), files_started_in(target.start, scope)
        if not self.leaves and not holds(table, *of_scope):
            return whole_part(target, self.staged)
        published = covered(ctx, table, target, self.plan, scope, self.around)
        is_calendar = target.name == COMPLETENESS.name
        compared = Compared(
            target,
            self.staged.rows(),
            chain(published, *(leaving.rows() for leaving in self.leaves)),
            fit_into(table, target, self.staged.schema, ctx.spec.pipeline),
            keep=target.name == QUARANTINE.name,  # of what the landing table has no more
            may_go=slots_that_may_go(target, self.plan, self.around) if is_calendar else None,
        )
        done = stage_diff(ctx.staging, f"{target.name}_diff", compared)
        if done.names_rows_twice:
            raise _ambiguous(ctx.place(target.name))
        return Change(target, done.part, done.counts, whole=False)


def _ambiguous(place: str) -> InputError:
    """The error for changed published rows that the present keys do not identify uniquely."""
    return InputError(
        place,
        "several published rows are one by the pipeline's key: they were published under "
        "another key",
        "give the pipeline with its new key a new name, or replace all that it has published "
        "with --recreate",
    )


def whole_part(target: PublishedTable, staged: Part) -> Change:
    """The change that inserts a staged part as it is."""
    return Change(target, staged, {INSERT: staged.count(), UPDATE: 0, DELETE: 0}, whole=True)


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
