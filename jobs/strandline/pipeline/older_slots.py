"""Older slots, which late records have touched: what runs before have published of them counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.kind import kind_of
from strandline.engine.position.grid import Grid
from strandline.lake.reads import dataset_of, files_started_in, started_in
from strandline.lake.small_diff import published_rows
from strandline.model.intervals import TimeRange, instant_of
from strandline.pipeline.context import Context
from strandline.pipeline.counts import Rows, accepted_by_window, refused_by_newest
from strandline.pipeline.published_rows import arrival_column, arrived, arrived_in
from strandline.quality.completeness import Accepted
from strandline.tables import (
    COMPLETENESS,
    QUARANTINE,
    PublishedTable,
    windows_table,
)

_REFUSAL_KEY = ["record_id", "slot_start"]
"""A record is refused once in a slot."""
_REFUSAL = [*_REFUSAL_KEY, "reason"]


def published_before(ctx: Context, older: pd.DataFrame, grid: Grid) -> dict[int, Accepted]:
    """What older windows accepted: they were final, and published, before this run."""
    if ctx.store.table(ctx.spec.result) is None:
        return {}
    id_of = "slot_end" if grid.cumulative else "slot_start"
    windows_tell = not kind_of(ctx.spec).cross_slots and ctx.spec.windows_count_all
    if windows_tell and grid.one_window_each:
        return accepted_by_window(_windows_of_slots(ctx, older), grid)
    slots = {instant_of(slot[id_of]): slot for slot in published_slots(ctx, older)}
    if not windows_tell:
        return {id_: _accepted_in(slot) for id_, slot in slots.items()}
    accepted = accepted_by_window(_windows_of_slots(ctx, older), grid)
    return accepted | {
        id_: replace(accepted.get(id_, Accepted()), missed_pairs=slot["missed_pairs"])
        for id_, slot in slots.items()
    }


def refused_in_all(
    ctx: Context,
    judged_again: TimeRange,
    grid: Grid,
    older: pd.DataFrame,
    quarantine: DataFrame,
) -> dict[tuple[int, str], int]:
    """What older slots have refused, in this run or before.

    Args:
        ctx: the run.
        judged_again: the arrivals that this run judges.
        grid: of the windows.
        older: the slots.
        quarantine: what the run has staged.
    """
    if ctx.store.table("quarantine") is None:
        return {}
    every = few_or_all(ctx, QUARANTINE.name, quarantine)
    if ctx.store.holds(QUARANTINE.name, *_starting("slot_start", older)):
        few = _few_refused(ctx, older, judged_again, every)
        every = _refused(ctx, older, judged_again, quarantine) if few is None else few
    wanted = set(older["window_id"].tolist())
    return {key: n for key, n in refused_by_newest(every, grid).items() if key[0] in wanted}


def _refused(
    ctx: Context, older: pd.DataFrame, judged_again: TimeRange, staged: DataFrame
) -> DataFrame:
    """The staged late records, and the published ones of older slots that are not judged again."""
    there = _of_slots(ctx, QUARANTINE, older)
    again = arrived_in(judged_again.start_ms, judged_again.end_ms)
    before = arrived(ctx, there, ~again).select(*_REFUSAL)
    every = before.unionByName(staged.select(*_REFUSAL))
    return every.dropDuplicates(_REFUSAL_KEY)


def _few_refused(
    ctx: Context, older: pd.DataFrame, judged_again: TimeRange, staged: Rows
) -> pa.Table | None:
    """The same without Spark; None: they are not few, or only Spark tells when they arrived."""
    table = ctx.store.table(QUARANTINE.name)
    if table is None or isinstance(staged, DataFrame):
        return None
    arrival = arrival_column(ctx, table)
    if arrival is None:
        return None
    of_slots, files = _starting("slot_start", older)
    before = published_rows(table, of_slots & ~started_in(arrival, judged_again), files)
    if before is None:
        return None
    before = before.select(_REFUSAL)
    every = pa.concat_tables([before, staged.select(_REFUSAL).cast(before.schema)])
    once = every.group_by(_REFUSAL_KEY).aggregate([("reason", "min")])
    return once.rename_columns(_REFUSAL)


def _accepted_in(slot: dict[str, Any]) -> Accepted:
    """What was accepted into a published slot, whatever windows hold of it."""
    every = slot["on_time"] + slot["late_accepted"]
    counts = (slot["late_accepted"], every, slot["missed_pairs"])
    return Accepted(every, *counts, unfired=slot.get("unfired") or 0)


def published_slots(ctx: Context, older: pd.DataFrame) -> list[dict[str, Any]]:
    """The published calendar from the first to the last of some slots."""
    table = ctx.store.table(COMPLETENESS.name)
    if table is None:
        return []
    within, files = _starting("slot_start", older)
    rows: list[dict[str, Any]] = dataset_of(table, files).to_table(filter=within).to_pylist()
    return rows


def _windows_of_slots(ctx: Context, older: pd.DataFrame) -> Rows:
    """The published windows from the first to the last of some slots; few without Spark."""
    table = ctx.store.table("windows")
    few = None if table is None else published_rows(table, *_starting("window_start", older))
    windows = windows_table(ctx.spec.source.key)
    return _of_slots(ctx, windows, older) if few is None else few


def _starting(name: str, older: pd.DataFrame) -> tuple[ds.Expression, str]:
    """Published rows from the first to the last of some slots, and the files that may hold them."""
    within = TimeRange(int(older["slot_ms"].min()), int(older["slot_ms"].max()) + 1)
    return started_in(name, within), files_started_in(name, within)


def _of_slots(ctx: Context, table: PublishedTable, older: pd.DataFrame) -> DataFrame:
    """The published rows between the first and the last of some slots."""
    there = ctx.store.frame(ctx.spark, table.name)
    least = F.timestamp_millis(F.lit(int(older["slot_ms"].min())))
    last = F.timestamp_millis(F.lit(int(older["slot_ms"].max())))
    in_days = F.col(table.partition).between(least.cast("date"), last.cast("date"))
    return there.where(in_days & F.col(table.start).between(least, last))


def few_or_all(ctx: Context, part: str, rows: DataFrame) -> Rows:
    """A staged part: without Spark, where it is small."""
    few = ctx.staging.small(part)
    return rows if few is None else few
