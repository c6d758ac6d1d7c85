"""Which published rows a run covers: it deletes covered rows that it does not stage again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.lake.store.reads import dataset_of, files_started_in, rows_of, started_in
from strandline.model.intervals import TimeRange
from strandline.pipeline.plan.late_records import LateRecords, started_in_any
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.request.context import Context
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable


def covered(
    ctx: Context,
    table: DeltaTable,
    target: PublishedTable,
    plan: Plan,
    scope: TimeRange,
    around: Sequence[TimeRange],
) -> Iterator[pa.Table]:
    """The published rows that are deleted unless the run stages them again.

    For older slots, these are the late records that arrived between the run's base and its horizon,
    and the calendar's rows of slots with changes.

    Args:
        ctx: the run.
        table: the opened table.
        target: its description.
        plan: the run's plan.
        scope: the range of starts of all these rows.
        around: ranges outside the run's range in which gaps are listed again.
    """
    rows = started_in(target.start, plan.scope.windows)
    older = TimeRange(scope.start_ms, plan.scope.older_end_ms)
    if target.name == COMPLETENESS.name:
        rows |= _listed_again(target, around)
        rows |= started_in_any(target.start, [one.windows for one in plan.kept])
        if plan.scope.older_since_ms is not None:
            rows |= started_in(target.start, older)
    else:
        rows &= ~started_in_any(target.start, plan.scope.kept)
    published = rows_of(dataset_of(table, files_started_in(target.start, scope)), rows)
    if target.name != QUARANTINE.name:
        return published
    return chain(published, *(late.rows(ctx, table) for late in _covered_late(plan, older)))


def slots_that_may_go(
    target: PublishedTable, plan: Plan, around: Sequence[TimeRange]
) -> ds.Expression:
    """The rows of the calendar that a run may delete.

    A slot outside the range stays, unless it has lost all its records, or is a gap around the range
    that is no longer listed.
    """
    looked_at = pa.array([ms * 1000 for ms in plan.scope.older_too], pa.timestamp("us", "UTC"))
    may_go = started_in(target.start, plan.scope.windows)
    may_go |= ds.field(target.start).isin(looked_at) | _listed_again(target, around)
    return may_go & ~started_in_any(target.start, plan.scope.kept)


def _covered_late(plan: Plan, older: TimeRange) -> Iterator[LateRecords]:
    """The late records of older slots, and of windows that stay, whose arrivals a run covers."""
    horizon_ms, since_ms = plan.clock.horizon_ms, plan.scope.older_since_ms
    if since_ms is not None:
        yield LateRecords(older, TimeRange(since_ms, horizon_ms), plan.scope.kept)
    for kept in plan.kept:
        if kept.since_ms is not None:
            yield LateRecords(kept.windows, TimeRange(kept.since_ms, horizon_ms))


def _listed_again(target: PublishedTable, around: Sequence[TimeRange]) -> ds.Expression:
    return ds.field("gap") & started_in_any(target.start, around)
