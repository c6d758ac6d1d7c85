"""Rows of `completeness` on some days; of a row for many gaps, the gaps on these days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.engine.position.grid import Grid
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.reads import columns_of, dataset_of
from strandline.lake.store.store import Store
from strandline.model.intervals import TimeRange, datetime_of, instant_of
from strandline.spec.pipeline import PipelineSpec

_EDGES = ("slot_start", "slot_end", "slots")
MANY = ds.field("slots") > 1
"""The rows that stand for many gaps."""


def rows_on(
    spec: PipelineSpec,
    store: Store,
    columns: Sequence[str],
    days: Days,
    *,
    wanted: ds.Expression | None = None,
    part_ms: int | None = None,
) -> pa.Table | None:
    """The calendar's rows on some days; None if the table does not exist.

    Args:
        spec: the pipeline.
        store: its tables.
        columns: the columns to read; `slots` and the edges of slots are read in any case.
        days: the days of the slots' starts.
        wanted: a further condition on the rows; None: none.
        part_ms: see `gaps_on`.
    """
    names = [*dict.fromkeys((*columns, *_EDGES))]
    rows = read_days(store, "completeness", names, days, wanted)
    if rows is None or "slots" not in rows.column_names:
        return rows
    single = rows.filter(pc.fill_null(pc.less_equal(rows["slots"], 1), fill_value=True))
    gaps = gaps_on(spec, store, rows.column_names, days.within, part_ms)
    return pa.concat_tables([gaps, single])


def gaps_on(
    spec: PipelineSpec,
    store: Store,
    columns: Sequence[str],
    within: TimeRange,
    part_ms: int | None = None,
) -> pa.Table:
    """The parts in a range of rows that stand for many gaps, in ascending order.

    Such a row is stored on the day of its first gap, and may reach over many days. Only files with
    such rows are opened, by the statistics in the table's log.

    Args:
        spec: the pipeline.
        store: its tables.
        columns: the columns to read beside the edges of slots, and `slots`: the number of gaps.
        within: the range of the gaps' starts.
        part_ms: the length of the stretches of time into which rows are divided, by the starts of
            their gaps, or of the last steps of cumulative windows; None: not divided.

    Example: of a row for all hours of March, the days of 30 and 31 March have a part of 48 gaps.
    """
    table = store.table("completeness")
    existing = [] if table is None else columns_of(table).names
    names = [name for name in dict.fromkeys((*columns, *_EDGES)) if name in existing]
    if table is None or "slots" not in existing:
        return pa.table({name: [] for name in (*names, "slots")})
    rows = dataset_of(table, "slots > 1").to_table(names, filter=MANY).sort_by("slot_start")
    grid = Grid.of(spec)
    parts = [
        row | part.edges
        for row in rows.to_pylist()
        for part in parts_of(grid, row, within, part_ms)
    ]
    return pa.Table.from_pylist(parts, schema=rows.schema)


@dataclass(frozen=True)
class GapsInARow:
    """Gaps that follow each other, of one row.

    Attributes:
        start_ms: the start of the first one.
        last_start_ms: the start of the last one.
        end_ms: the end of the last one.
        slots: how many there are.
    """

    start_ms: int
    last_start_ms: int
    end_ms: int
    slots: int

    @property
    def edges(self) -> dict[str, Any]:
        """The columns that say which gaps these are."""
        start, end = datetime_of(self.start_ms), datetime_of(self.end_ms)
        return {"slot_start": start, "slot_end": end, "slots": self.slots}


def parts_of(
    grid: Grid, row: Mapping[str, Any], within: TimeRange, part_ms: int | None = None
) -> Iterator[GapsInARow]:
    """The parts of a row that start in a range, in ascending order.

    A row that the grid does not have is left whole, at its start: before an edit of the file it was
    published with other windows.

    Example: a row of half days is whole under a file of days, and counts on its first day.
    """
    edges_ms = instant_of(row["slot_start"]), instant_of(row["slot_end"])
    first, last, on_grid = grid.run_of(*edges_ms, row["slots"])
    if not on_grid:
        yield from _whole(row, within)
        return
    starts = TimeRange(grid.starts_of(first), grid.starts_of(last) + 1).shared_with(within)
    if starts is None:
        return
    found = grid.ids_within(starts)
    shared = range(max(first, found.start), min(last + 1, found.stop), grid.step_ms)
    for part in _divided(grid, shared, part_ms):
        edges = grid.starts_of(part[0]), grid.starts_of(part[-1]), grid.ends_of(part[-1])
        yield GapsInARow(*edges, len(part))


def _whole(row: Mapping[str, Any], within: TimeRange) -> Iterator[GapsInARow]:
    start_ms = instant_of(row["slot_start"])
    if start_ms in within:
        yield GapsInARow(start_ms, start_ms, instant_of(row["slot_end"]), row["slots"])


def _divided(grid: Grid, ids: range, part_ms: int | None) -> Iterator[range]:
    """Ids of windows, divided where one passes a multiple of a length; None: not divided.

    Cumulative windows, whose ids are ends, go by their last steps, and are divided by their starts.
    """
    ahead_ms = grid.step_ms if grid.cumulative else 0
    while ids:
        first_ms, next_ms = ids[0] - ahead_ms, ids.stop - ahead_ms
        if part_ms is not None:
            next_ms = (first_ms // part_ms + 1) * part_ms
            if grid.cumulative:
                next_ms = min(next_ms, grid.starts_of(ids[0]) + grid.span_ms)
        count = -(-(next_ms - first_ms) // ids.step)
        yield ids[:count]
        ids = ids[count:]
