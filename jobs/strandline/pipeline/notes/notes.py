"""Notes of a run for a person, in addition to its figures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql.types import StructField, StructType

from strandline.engine.aggregates import aggregate_columns, not_in_two_steps
from strandline.engine.history.history import History
from strandline.engine.pairs.columns import of_side
from strandline.engine.position.grid import Grid
from strandline.engine.records.quarantine import as_quarantined
from strandline.engine.records.side_by_side import columns_side_by_side
from strandline.lake.landing.known_columns import columns_by_log
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.publications import no_further_than
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.apply_diff import fit_into
from strandline.lake.store.lake import Lake
from strandline.lake.store.object_store import PUBLISHERS, one_publisher
from strandline.lake.store.reads import columns_of, dataset_by_day
from strandline.lake.store.schema import Fit, schema_of, with_marks
from strandline.lake.store.second_columns import second_columns
from strandline.lake.store.type_widening import key_of
from strandline.model.intervals import TimeRange, text_of
from strandline.pipeline.diff.diff import no_longer_kept
from strandline.pipeline.notes.changed import (
    of_changed_days,
    of_days_to_come,
    of_less_known,
    of_repeated_loads,
    of_reverts,
)
from strandline.pipeline.notes.of_form import of_form
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.observe.observe import behind_earlier_ones
from strandline.pipeline.plan.kept import KEPT
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.layout import EditedRules
from strandline.pipeline.request.request import Request, of_overrides
from strandline.spec import PipelineSpec
from strandline.spec.expressions import left_to_the_engine
from strandline.spec.joined import PAIRS
from strandline.spec.runnable import times_of_a_window
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable
from strandline.visible import number_of


def notes_of(ctx: Context, request: Request, planned: PlannedRun) -> list[str]:
    """The notes of a planned run."""
    observation, plan, state = planned.observation, planned.plan, planned.state
    return [
        *([ctx.notice] if ctx.notice else ()),
        *of_publishers(ctx.lake),
        *plan.notes,
        *of_overrides(request.overrides, ctx.spec),
        *(() if request.overrides else of_edited_file(ctx.spec, state)),
        *of_reverts(ctx.spec, plan, state),
        *of_less_known(plan, state, ctx.landing.log.horizon_ms),
        *(of_form(ctx.spec) if ctx.dry_run else ()),
        *of_days_to_come(ctx.landing.days_to_come),
        *of_changed_days(ctx.spec, observation, plan),
        *of_repeated_loads(ctx.spec, ctx.landing.log, {*observation.new_days}),
        *_of_violations(observation),
        *_of_second_columns(ctx),
        *_of_tables_no_longer_kept(ctx),
        *_of_unknown_functions(ctx),
        *_of_another_grid(ctx, observation.history.grid, plan.scope.windows, state),
        *(_of_aggregates(ctx, observation.history) if ctx.dry_run else ()),
    ]


def of_publishers(lake: Lake) -> Iterator[str]:
    """A note where only the operators can ensure that one run publishes at a time."""
    if lake.folder is None and one_publisher():
        yield (
            "publishers: one. The pipeline has no lock on this object store, as "
            f"{PUBLISHERS} is set: let no second run of it publish at the same time"
        )


def of_edited_file(spec: PipelineSpec, state: PipelineState) -> Iterator[str]:
    """A note with the rules that were edited since the last run in force by the pipeline's file.

    There is none if they are not known (`EditedRules`).
    """
    last = state.last_by_file
    edited = None if last is None else EditedRules.of(spec, state).since(last.spec_fingerprint)
    if last is not None and edited:
        yield f"the pipeline's rules have changed since run {last.run_id}: {', '.join(edited)}"


def of_staged(staged: Staged, request: Request) -> Iterator[str]:
    """Notes that are known only after staging."""
    if not any(book.total for book in staged.books):
        advice = "; check its dates" if request.range else ""
        yield f"no record belongs to a window of the range: there is nothing to count{advice}"
    for book in staged.books:
        if book.name.startswith(KEPT) and book.total:
            yield f"{book.name}: {number_of(book.total, 'late record')} arrived since"
    yield from of_calendar(staged.calendar, staged.gaps.not_in_rows)


def of_frontier(run: Entry, before: PipelineState, known_until_ms: int | None) -> Iterator[str]:
    """A note if a run moves the frontier back: see `moved_by`.

    Args:
        run: the run, with its diff.
        before: the pipeline's state before it.
        known_until_ms: see `no_further_than`.
    """
    if run.recreated or before.frontier_ms is None:
        return
    after_ms = no_further_than(known_until_ms, before.frontier_after(run, run.completes_ms))
    if after_ms is not None and after_ms < before.frontier_ms:
        yield (
            f"processed up to goes back from {text_of(before.frontier_ms)} to {text_of(after_ms)}: "
            "rows change by an earlier data cut-off, and the next scheduled run processes the "
            "arrivals after it again"
        )


def of_calendar(calendar: pd.DataFrame, rows: int) -> Iterator[str]:
    """Notes about records in no firing when their window closed, and about gaps too many to audit.

    Args:
        calendar: the audited slots of the range.
        rows: the number of rows of gaps that are staged but not audited.
    """
    if rows:
        yield (
            f"gaps: {rows:,} of their rows are in completeness and in the number of gaps, but are "
            "too many for the expectations on completeness, which check only the first and the last"
        )
    count = int(calendar["unfired"].sum()) if "unfired" in calendar else 0
    if count:
        yield (
            f"unfired: {number_of(count, 'record')} came after the last firing of their window, "
            "and went with it: the trigger does not fire at the end"
        )


def _of_violations(observation: Observation) -> Iterator[str]:
    if many := observation.all_violations:
        broken = "the ascending order that the watermark assumes does not hold"
        yield f"{behind_earlier_ones(many)}: {broken}"


def _of_second_columns(ctx: Context) -> Iterator[str]:
    """Notes about landing columns whose present type does not fit the published column."""
    for target in (QUARANTINE, ctx.spec.tables[PAIRS]):
        table = ctx.store.table(target.name)
        if table is None:
            continue
        fit = fit_into(table, target, _source_columns(ctx, target), ctx.spec.pipeline)
        before = {key_of(field.name): field.dataType for field in schema_of(table)}
        if target.name == QUARANTINE.name:
            yield from _of_two_types(ctx, fit)
        second = second_columns(table).items()
        others = {key_of(own): of for of, every in second for own in every}
        for name, column in fit.second.items():
            if key_of(name) in others:
                yield (
                    f"{target.name}: {name} of the landing table is also the name of the second "
                    f"column of {others[key_of(name)]}: its values are in {column.name}"
                )
                continue
            was, now = (of.simpleString() for of in (before[key_of(name)], column.dataType))
            yield (
                f"{target.name}: {name} is {now} in the landing table, and was {was}: new "
                f"rows have it in {column.name}, earlier rows in {name}"
            )


def _of_two_types(ctx: Context, fit: Fit) -> Iterator[str]:
    """Notes about columns that both landing tables of a join have, in two types."""
    sides = {side: one.frame.schema for side, one in ctx.landing.inputs.items()}
    for own, column in columns_side_by_side(sides, ctx.spec).get("right", {}).items():
        if column.name != own:
            was, now = (f.dataType.simpleString() for f in (sides["left"][own], column))
            places = [fit.names.get(name, name) for name in (column.name, own)]
            yield (
                f"quarantine: {own} is {now} in the right landing table, and {was} in the left "
                f"one: rows of the right one have it in {places[0]}, those of the left one in "
                f"{places[1]}"
            )


def _source_columns(ctx: Context, target: PublishedTable) -> StructType:
    """The columns that a published table has for those of the landing."""
    in_quarantine = target.name == QUARANTINE.name
    sides = {}
    for side, one in ctx.landing.inputs.items():
        own = one.frame.schema
        of_pairs = [StructField(of_side(side, f.name), f.dataType) for f in own.fields]
        sides[side] = as_quarantined(own) if in_quarantine else StructType(of_pairs)
    columns = columns_side_by_side(sides, ctx.spec).values()
    by_name = {f.name: f for of_side in columns for f in of_side.values()}
    return with_marks(StructType([*by_name.values()]), ctx.second_of() if in_quarantine else {})


def _of_tables_no_longer_kept(ctx: Context) -> Iterator[str]:
    for name, rows in no_longer_kept(ctx).items():
        why = "firings: false, so" if name == "firings" else f"the pipeline keeps no {name} now, so"
        yield (
            f"{why} this run removes the {number_of(rows, 'row')} of the table {name}; if the "
            "pipeline keeps them again later, rebuilt ranges have them again"
        )


def _of_unknown_functions(ctx: Context) -> Iterator[str]:
    """Notes about expressions that only the engine has checked."""
    for use, why in left_to_the_engine(ctx.spec, columns_by_log(ctx.spec, ctx.landing.log)):
        yield (
            f"{use.place}: {why}: the engine accepts it; make sure that its value follows from "
            "the records alone, or else a rerun may give another"
        )


_Instants = npt.NDArray[np.int64]


def _published_slots(completeness: DeltaTable) -> Iterator[tuple[_Instants, _Instants]]:
    """The starts and the ends of published slots, in ms, a batch at a time; no rows of gaps."""
    slots = dataset_by_day(completeness, COMPLETENESS.partition, columns_of(completeness))
    one_each = ds.field("slots").is_null() if "slots" in slots.schema.names else None
    for batch in slots.to_batches(columns=["slot_start", "slot_end"], filter=one_each):
        starts, ends = (
            pc.divide(pc.cast(edge, "int64"), 1000).to_numpy(zero_copy_only=False)
            for edge in batch.columns
        )
        yield starts, ends


def _of_another_grid(
    ctx: Context, grid: Grid, within: TimeRange, state: PipelineState
) -> Iterator[str]:
    """A note about published slots outside the range that are no longer windows of it."""
    if state.timeline_rules <= {ctx.spec.timeline_fingerprint}:
        return
    table = ctx.store.table("completeness")
    if table is None:
        return
    count, edges_ms = 0, []
    for starts, ends in _published_slots(table):
        stays = ~grid.has_windows(starts, ends)
        stays &= (starts < within.start_ms) | (starts >= within.end_ms)
        if stays.any():
            count += int(stays.sum())
            edges_ms += [int(starts[stays].min()), int(ends[stays].max())]
    if count:
        first, last = text_of(min(edges_ms)), text_of(max(edges_ms))
        yield (
            f"{count:,} slots from {first} to {last} were published under other windows "
            f"and stay as they are: strandline backfill {ctx.spec.pipeline} --start {first} "
            f"--end {last} replaces them"
        )


def _of_aggregates(ctx: Context, history: History) -> Iterator[str]:
    """Notes about aggregates that need every record in each of its windows, and the way out."""
    each, most = "each of its windows", history.grid.most_windows
    if ctx.spec.fires_at_times:
        each, most = "each firing that holds it", most * (1 + times_of_a_window(ctx.spec))
    if most == 1 or ctx.spec.has_pairs_of_windows:  # those range over pairs, not records
        return
    records = ctx.landing.records()
    aggregate_columns(records, ctx.spec)  # what is not an aggregate at all has an error of its own
    for name, (problem, way_out) in not_in_two_steps(records, ctx.spec).items():
        yield (
            f"aggregates.{name}: {problem}, so panes cannot be put together and all aggregates are "
            f"computed from each record once for {each} (up to {most:,}); {way_out}"
        )
