"""The gaps of a run, staged after its pieces, and the published rows of gaps that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

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
    instant_of,
    merged,
    parts_between,
    text_of,
)
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.listed_gaps import ListedGaps
from strandline.pipeline.rebuild.piece import Piece, calendar_schema, stage_calendar
from strandline.pipeline.rebuild.slots import with_published_values
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness, in_ms
from strandline.tables import COMPLETENESS

EDGES = arrow_schema({name: COMPLETENESS.columns[name] for name in ("slot_start", "slot_end")})
"""The columns that identify a slot."""
_MANY = pc.field("slots") > 1
"""The rows that stand for many gaps."""


@dataclass(frozen=True)
class StagedGaps:
    """The gaps that a run lists.

    Attributes:
        rows: the gaps' rows; if there are very many, only the first and the last ones.
        not_in_rows: the number of further rows in the range.
        count: the number of slots of the range that are gaps, listed or not.
        known: the number of these that somebody has acknowledged.
        known_in: the ranges whose gaps are acknowledged.
        edges: the edges of the rows of gaps outside the range that the run lists or replaces.
        first_accepted: the id of the first window that accepted a record; None: none has.
    """

    rows: pd.DataFrame
    not_in_rows: int
    count: int
    known: int
    known_in: Sequence[TimeRange]
    edges: pa.Table
    first_accepted: int | None

    @property
    def again(self) -> ds.Expression:
        """The rows of gaps outside the range that the run lists or replaces."""
        start, end = (ds.field(name).isin(self.edges[name]) for name in EDGES.names)
        return ds.field("gap") & start & end

    def around(self, within: TimeRange) -> TimeRange:
        """A range, widened by the starts of these gaps."""
        first, last = pc.min_max(self.edges[COMPLETENESS.start]).as_py().values()
        if first is None:
            return within
        return TimeRange(
            min(within.start_ms, instant_of(first)), max(within.end_ms, instant_of(last) + 1)
        )


def stage_gaps(ctx: Context, planned: PlannedRun, pieces: Sequence[Piece]) -> StagedGaps:
    """Stage the gaps among and around the slots of a run's staged pieces."""
    run = ListedGaps.of(ctx, planned, pieces)
    gaps, within = run.gaps, planned.plan.scope.windows
    published = GapRows.among(run.computed, ctx.store, gaps.history.grid, within)
    stay = pa.Table.from_pylist([*published.stay(run.stay, ctx.run_id)], calendar_schema(ctx))
    if len(stay):
        stage_calendar(ctx, stay, len(pieces))
    listed = gaps.listed(run.listed)
    rows, not_in_rows, outside = _stage_rows(ctx, within, listed, len(pieces) + 1)
    count, known = gaps.counts(within, run.filled, planned.state.known_gaps)
    edges = [some.select(EDGES.names).cast(EDGES) for some in (published.rows, stay, *outside)]
    return StagedGaps(
        rows=rows,
        not_in_rows=not_in_rows,
        count=count,
        known=known,
        known_in=planned.state.known_gaps,
        edges=pa.concat_tables(edges),
        first_accepted=gaps.first,
    )


def _stage_rows(
    ctx: Context, within: TimeRange, parts: Iterable[pd.DataFrame], begin: int
) -> tuple[pd.DataFrame, int, list[pa.Table]]:
    """Stage gaps part by part, the first as piece `begin`.

    Returns the rows of the first and the last part, which alone are audited, the number of the
    further rows in the range, and the edges of all rows outside the range.
    """
    shown, not_in_rows, outside = list[pd.DataFrame](), 0, list[pa.Table]()
    for number, slots in enumerate(parts, begin):
        rows = completeness(slots, ctx.spec, run_id=ctx.run_id, accepted={}, refused={}, gap=True)
        rows = _by_their_rules(rows, ctx, within)
        stage_calendar(ctx, rows, number)
        beside = rows[~_are_in(rows, within)]
        outside.append(pa.Table.from_pandas(beside, EDGES, preserve_index=False))
        if len(shown) > 1:
            not_in_rows += int(_are_in(shown.pop(), within).sum())
        shown.append(rows)
    if not shown:
        return pd.DataFrame(columns=["slot_start"]), not_in_rows, outside
    return pd.concat(shown, ignore_index=True), not_in_rows, outside


def _by_their_rules(rows: pd.DataFrame, ctx: Context, within: TimeRange) -> pd.DataFrame:
    """Gaps as other rules have closed them; in the range, as the present rules do."""
    present = ctx.spec.spec_fingerprint
    if all(run.spec_fingerprint == present for run in ctx.ledger.state().published):
        return rows
    kept = with_published_values(ctx, rows[~_are_in(rows, within)])
    kept = kept[kept["spec_fingerprint"] != present]  # a part that stayed has its row's times
    return pd.concat(some for some in (rows.drop(kept.index), kept) if len(some)).sort_index()


def _are_in(rows: pd.DataFrame, within: TimeRange) -> pd.Series[bool]:
    """Whether rows of the calendar start in a range."""
    starts = in_ms(rows["slot_start"])
    return (starts >= within.start_ms) & (starts < within.end_ms)


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
