"""Slots of a run's calendar: counts of their records, and slots that stay as they are published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from strandline.engine import columns as c
from strandline.engine.position.grid import Grid
from strandline.lake.publish.batches import ROWS, in_pieces, sums_by
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import in_arrow, rows_in_days, started_at
from strandline.lake.store.schema import arrow_schema
from strandline.model.intervals import TimeRange, day_of, instant_of
from strandline.pipeline.plan.published_rows import LateRecords
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import Accepted, in_ms
from strandline.tables import COMPLETENESS, QUARANTINE

REASONS = ("late", "no_window")
"""The reasons of records that belong to a slot; the calendar has a count of each."""
OF_REFUSALS = (*REASONS, "run_id")
"""The columns of a slot that change as records are refused."""
_OF_CLOSING = ("state", "fired_at", "closed_at", "spec_fingerprint")
"""The columns of a slot that say how it was closed."""
_REFUSAL_KEY = ["record_id", "slot_start"]
_REFUSAL = [*_REFUSAL_KEY, "reason"]
_TYPES = arrow_schema({name: QUARANTINE.columns[name] for name in _REFUSAL})
_REFUSED_BY = ["slot_start", "reason"]
"""The columns of quarantine that `refused_by_newest` reads."""
_ALL = pc.scalar(True)


def accepted_by_slot(counted: DataFrame) -> dict[int, Accepted]:
    """The record counts of each slot (`Rebuild.accepted_by_slot`), by the id of its window."""
    counts = (row.asDict() for row in counted.na.fill(0).collect())
    return {int(row.pop(c.SLOT)): Accepted(**row) for row in counts}


def refused_by_newest(quarantine: Iterable[pa.Table], grid: Grid) -> dict[tuple[int, str], int]:
    """The number of records that no window accepted, by start of the newest window and reason."""
    groups = sums_by(quarantine, _REFUSED_BY)
    starts_ms = pc.divide(groups["slot_start"].cast(pa.int64()), 1000).to_pylist()
    counts = (groups[name].to_pylist() for name in ("reason", ROWS))
    by_slot = zip(starts_ms, *counts, strict=True)
    return {(grid.newest_ids(int(ms)), reason): int(count) for ms, reason, count in by_slot}


def late_in(
    quarantine: Part, since_ms: int | None, wanted: ds.Expression = _ALL
) -> Iterator[pa.Table]:
    """The staged late records of slots that start at or after an instant, with `_REFUSED_BY`.

    `since_ms`: the instant; None: all.
    """
    if since_ms is not None:
        wanted &= ds.field(QUARANTINE.start) >= in_arrow(since_ms)
    return quarantine.rows(wanted, _REFUSED_BY)


def refused_in_all(
    ctx: Context, evaluated_again: TimeRange, grid: Grid, older: pd.DataFrame, staged: Part
) -> Counter[tuple[int, str]]:
    """The number of records refused by older slots, in this run or before; each counts once.

    Args:
        ctx: the run.
        evaluated_again: the range of arrivals that this run evaluates.
        grid: the grid of the windows.
        older: the slots.
        staged: the late records that the run has staged.
    """
    table = ctx.store.table(QUARANTINE.name)
    if table is None:
        return Counter()
    before = LateRecords(_span_of(older), evaluated_again, outside=True).rows(ctx, table, _REFUSAL)
    every = staged.rows(columns=_REFUSAL)
    if (first := next(before, None)) is not None:
        every = _each_once(chain(every, [first], before))
    refused = refused_by_newest(every, grid)
    wanted = set(older["window_id"].tolist())
    return Counter({key: n for key, n in refused.items() if key[0] in wanted})


def _each_once(refusals: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of refused records without repetitions, in pieces that fit into memory.

    A record may be in quarantine and staged again.
    """
    pieces = in_pieces([(rows.cast(_TYPES) for rows in refusals)], _REFUSAL_KEY)
    for (rows,) in pieces:
        once = rows.group_by(_REFUSAL_KEY).aggregate([("reason", "min")])
        yield once.rename_columns(_REFUSAL)


def with_published_values(
    ctx: Context, rows: pd.DataFrame, computed: Collection[str] = OF_REFUSALS
) -> pd.DataFrame:
    """Rows of the calendar with the values of their published slots.

    Neither a later record nor an edit of the rules opens a closed slot again: its windows stay as
    they are published. A gap, now or then, takes only how it was closed.

    Args:
        ctx: the run.
        rows: the rows; a slot that is not published stays as it is.
        computed: the columns that the run computes.
    """
    starts, ends = (in_ms(rows[name]).tolist() for name in ("slot_start", "slot_end"))
    published = published_slots(ctx, starts)
    values = {name: rows[name].tolist() for name in rows.columns}
    of_records = [name for name in values if name not in (*computed, *_OF_CLOSING)]
    for number, edges in enumerate(zip(starts, ends, strict=True)):
        slot = published.get(edges, {})
        taken = [] if slot.get("gap") or values["gap"][number] else of_records
        if slot.get("state") == "closed":
            taken = [*taken, *_OF_CLOSING]
        for name in taken:
            if slot.get(name) is not None:  # a table of an earlier version may lack a column
                values[name][number] = slot[name]
    columns = {name: pd.Series(of, rows.index, rows[name].dtype) for name, of in values.items()}
    return pd.DataFrame(columns)


def published_slots(
    ctx: Context, starts_ms: Collection[int]
) -> dict[tuple[int, int], dict[str, Any]]:
    """The published rows of slots that start at some instants, by start and end in ms."""
    table = ctx.store.table(COMPLETENESS.name)
    if table is None:
        return {}
    on_days = rows_in_days(table, COMPLETENESS.partition, {*map(day_of, starts_ms)})
    wanted = started_at(COMPLETENESS.start, starts_ms)
    return {
        (instant_of(slot["slot_start"]), instant_of(slot["slot_end"])): slot
        for rows in on_days
        for slot in rows.filter(wanted).to_pylist()
    }


def _span_of(older: pd.DataFrame) -> TimeRange:
    """The range from the start of the first slot up to and including the start of the last one."""
    return TimeRange(int(older["slot_ms"].min()), int(older["slot_ms"].max()) + 1)
