"""The gaps of a run, staged after its pieces: they depend on the arrivals alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.model.intervals import TimeRange, instant_of
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.gap_rows import EDGES, GapRows
from strandline.pipeline.rebuild.listed_gaps import ListedGaps
from strandline.pipeline.rebuild.piece import Piece, calendar_schema, stage_calendar
from strandline.pipeline.rebuild.slots_that_stay import with_published_values
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness, in_ms
from strandline.tables import COMPLETENESS


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
