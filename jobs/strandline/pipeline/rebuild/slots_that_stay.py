"""Slots that stay as they are published, while late records arrive for them or leave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from strandline.engine.position.grid import Grid
from strandline.lake.publish.batches import in_pieces
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import rows_in_days, started_at
from strandline.lake.store.schema import arrow_schema
from strandline.model.intervals import TimeRange, day_of, instant_of
from strandline.pipeline.plan.counts import refused_by_newest
from strandline.pipeline.plan.late_records import LateRecords
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import in_ms
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
