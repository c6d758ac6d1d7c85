"""Older slots, which late records have touched: what runs before have published of them counts."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.kind import kind_of
from strandline.engine.position.grid import Grid
from strandline.lake.small_diff import published_rows
from strandline.lake.store import started_in
from strandline.model.intervals import TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.counts import Rows, accepted_by_slot, accepted_by_window, refused_by_home
from strandline.pipeline.plan import Plan
from strandline.pipeline.published_rows import arrived, arrived_in
from strandline.quality.completeness import Accepted
from strandline.tables import COMPLETENESS, QUARANTINE, PublishedTable, windows_table


def published_before(ctx: Context, older: pd.DataFrame, grid: Grid) -> dict[int, Accepted]:
    """What older windows accepted: they were final, and published, before this run."""
    if ctx.store.table("windows") is None:
        return {}
    if kind_of(ctx.spec).cross_slots:
        slots = _of_slots(ctx, COMPLETENESS, older)
        every = F.col("on_time") + F.col("late_accepted")
        return accepted_by_slot(slots.select(F.unix_millis("slot_start"), every, "late_accepted"))
    accepted = accepted_by_window(_windows_of_slots(ctx, older), grid)
    if grid.one_window_each:
        return accepted
    slots = _of_slots(ctx, COMPLETENESS, older)
    missed = slots.select(
        F.unix_millis("slot_end" if grid.cumulative else "slot_start"), "missed_pairs"
    )
    return accepted | {
        int(row[0]): replace(accepted.get(int(row[0]), Accepted()), missed_pairs=int(row[1]))
        for row in missed.collect()
    }


def refused_in_all(
    ctx: Context, plan: Plan, grid: Grid, older: pd.DataFrame, quarantine: DataFrame
) -> dict[tuple[int, str], int]:
    """What older slots have refused, in this run or before."""
    since_ms, horizon_ms = plan.scope.older_since_ms, plan.clock.horizon_ms
    wanted = set(older["window_id"].tolist())
    if ctx.store.table("quarantine") is None or since_ms is None:
        return {}
    if not ctx.store.holds(QUARANTINE.name, started_in("slot_start", _from_first_to_last(older))):
        every = few_or_all(ctx, QUARANTINE.name, quarantine)
        return {key: n for key, n in refused_by_home(every, grid).items() if key[0] in wanted}
    names = ["record_id", "slot_start", "reason"]
    # what arrived since is judged again, and staged if it is late
    there = _of_slots(ctx, QUARANTINE, older)
    before = arrived(ctx, there, ~arrived_in(since_ms, horizon_ms)).select(*names)
    every = before.unionByName(quarantine.select(*names)).dropDuplicates(
        ["record_id", "slot_start"]
    )
    return {key: n for key, n in refused_by_home(every, grid).items() if key[0] in wanted}


def _windows_of_slots(ctx: Context, older: pd.DataFrame) -> Rows:
    """The published windows from the first to the last of some slots; few without Spark."""
    table = ctx.store.table("windows")
    within = started_in("window_start", _from_first_to_last(older))
    few = None if table is None else published_rows(table, within)
    windows = windows_table(ctx.spec.source.key)
    return _of_slots(ctx, windows, older) if few is None else few


def _from_first_to_last(slots: pd.DataFrame) -> TimeRange:
    return TimeRange(int(slots["slot_ms"].min()), int(slots["slot_ms"].max()) + 1)


def _of_slots(ctx: Context, table: PublishedTable, older: pd.DataFrame) -> DataFrame:
    """The published rows between the first and the last of some slots."""
    there = ctx.spark.read.format("delta").load(ctx.store.uri(table.name))
    least = F.timestamp_millis(F.lit(int(older["slot_ms"].min())))
    last = F.timestamp_millis(F.lit(int(older["slot_ms"].max())))
    in_days = F.col(table.partition).between(least.cast("date"), last.cast("date"))
    return there.where(in_days & F.col(table.start).between(least, last))


def few_or_all(ctx: Context, part: str, rows: DataFrame) -> Rows:
    """A staged part: without Spark, where it is small."""
    few = ctx.staging.small(part)
    return rows if few is None else few
