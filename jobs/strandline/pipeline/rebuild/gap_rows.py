"""Published rows of gaps among which a run computes something; the parts of them that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.engine.position.grid import Grid, Longs
from strandline.lake.store.reads import (
    columns_of,
    dataset_of,
    files_started_in,
    in_arrow,
    rows_of,
    started_in,
)
from strandline.lake.store.schema import arrow_schema
from strandline.lake.store.store import Store
from strandline.model.intervals import (
    EVERYTHING,
    TimeRange,
    datetime_of,
    merged,
    parts_between,
    text_of,
)
from strandline.tables import COMPLETENESS

EDGES = arrow_schema({name: COMPLETENESS.columns[name] for name in ("slot_start", "slot_end")})
"""The columns that identify a slot."""
_MANY = pc.field("slots") > 1
"""The rows that stand for many gaps."""


@dataclass(frozen=True)
class GapRows:
    """The published rows of gaps among which a run computes something.

    Attributes:
        grid: the grid of the windows.
        computed: what the run computes, as ids of windows: ranges in order, apart.
        rows: the rows for many gaps with such a window, and, outside the run's range, the single
            gaps that are one.
    """

    grid: Grid
    computed: Sequence[TimeRange]
    rows: pa.Table

    @classmethod
    def among(
        cls, computed: Iterable[range], store: Store, grid: Grid, within: TimeRange
    ) -> GapRows:
        """The rows of a pipeline.

        Args:
            computed: the windows that a run computes, as ids, in any order.
            store: the pipeline's tables.
            grid: the grid of the windows.
            within: the run's range.
        """
        apart = merged(TimeRange(ids.start, ids.stop) for ids in computed if ids)
        table = store.table(COMPLETENESS.name)
        if table is None or not apart:
            return cls(grid, apart, EDGES.empty_table())
        last, start = apart[-1].end_ms - grid.step_ms, COMPLETENESS.start
        first_ms = max(grid.starts_of(apart[0].start_ms), EVERYTHING.start_ms)
        asked = TimeRange(first_ms, grid.starts_of(last) + grid.span_ms)
        rows = started_in(start, asked) & ~started_in(start, within)
        files = files_started_in(start, asked)
        if "slots" in columns_of(table).names:  # else of an earlier version of the program
            reach_in = pc.field("slot_end") > in_arrow(first_ms)
            rows |= _MANY & reach_in & (pc.field(start) < in_arrow(asked.end_ms))
            files += f" OR (slots > 1 AND slot_end > '{text_of(first_ms)}')"
        found = rows_of(dataset_of(table, files), pc.field("gap") & rows)
        wanted = (some.filter(pa.array(_are_among(apart, grid, some))) for some in found)
        return cls(grid, apart, pa.concat_tables(wanted))

    def stay(self, ranges: Sequence[range], run_id: str) -> Iterator[dict[str, Any]]:
        """The parts of the rows for many gaps that stay: the run does not compute them.

        Each keeps the state, the times and the rules of its row.

        Args:
            ranges: the windows whose gaps stay as they are published, as ids, apart.
            run_id: the run's id.
        """
        if "slots" not in self.rows.column_names:
            return
        grid, many = self.grid, self.rows.filter(_MANY)
        first, last = _ids_of(grid, many)
        within = [TimeRange(ids.start, ids.stop) for ids in ranges]
        for row, *ids in zip(many.to_pylist(), first, last + grid.step_ms, strict=True):
            every = parts_between(TimeRange(*map(int, ids)), self.computed)
            for part in (part for one in every for part in one.parts_in(within)):
                start = datetime_of(grid.starts_of(part.start_ms))
                slots = (part.end_ms - part.start_ms) // grid.step_ms
                yield row | {
                    "slot_date": start.date(),
                    "slot_start": start,
                    "slot_end": datetime_of(grid.ends_of(part.end_ms - grid.step_ms)),
                    "slots": slots if slots > 1 else None,
                    "run_id": run_id,
                }


def _are_among(apart: Sequence[TimeRange], grid: Grid, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each row of gaps has one of some windows, which are given by their ids."""
    starts = np.array([one.start_ms for one in apart], dtype=np.int64)
    stops = np.array([one.end_ms for one in apart], dtype=np.int64)
    first, last = _ids_of(grid, rows)
    behind = np.searchsorted(stops, first, side="right")
    return (behind < len(apart)) & (starts[np.minimum(behind, len(apart) - 1)] <= last)


def _ids_of(grid: Grid, rows: pa.Table) -> tuple[Longs, Longs]:
    """The ids of the first and the last gap of each row.

    A row of another grid, published before an edit of the file, is one window, where it starts.
    """
    starts, ends = (rows[name].cast(pa.int64()).to_numpy() // 1000 for name in EDGES.names)
    slots = np.ones_like(starts)
    if "slots" in rows.column_names:
        slots = pc.fill_null(rows["slots"], 1).to_numpy()
    first, last, on_grid = grid.run_of(starts, ends, slots)
    alone = grid.newest_ids(grid.newest_starts(starts))
    return np.where(on_grid, first, alone), np.where(on_grid, last, alone)
