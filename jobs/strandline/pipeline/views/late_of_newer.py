"""Late records of overlapping windows: `completeness` counts each in its newest window alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.engine.position.grid import Grid
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.reads import in_arrow
from strandline.model.intervals import DAY_MS, TimeRange, day_of, merged
from strandline.quality.completeness import in_ms
from strandline.tables import QUARANTINE

if TYPE_CHECKING:
    from strandline.lake.store.store import Store
    from strandline.spec import PipelineSpec

_MOST_RANGES = 100
"""The largest number of ranges in a condition on rows."""
_MS = pa.timestamp("ms", tz="UTC")
_Longs = npt.NDArray[Any]


@dataclass(frozen=True)
class LateOfNewer:
    """The late records in each window that are counted in a newer window.

    All windows of a late record have refused it. They are neighbours, as many as its row of
    quarantine says, so rows that an erasure or upkeep has removed do not count.

    Attributes:
        grid: the windows.
        oldest: for some late records the id of the oldest window.
        newest: the id of their newest window.
        records: their number.
    """

    grid: Grid
    oldest: _Longs
    newest: _Longs
    records: _Longs

    @classmethod
    def of(cls, spec: PipelineSpec, store: Store, days: Days) -> LateOfNewer | None:
        """The late records in the windows that start on some days; None: there is none."""
        grid = Grid.of(spec)
        if not spec.window.overlapping:
            return None
        wanted = (ds.field("reason") == "late") & (ds.field("missed_windows") > 1)
        asked = (QUARANTINE.name, ["slot_start", "missed_windows"], _reached(days, grid), wanted)
        rows = read_days(store, *asked)
        if rows is None or not len(rows):
            return None
        groups = pa.TableGroupBy(rows, ["slot_start", "missed_windows"])
        found = groups.aggregate([([], "count_all")]).to_pandas()
        newest = in_ms(found["slot_start"]).to_numpy() + (grid.size_ms if grid.cumulative else 0)
        older = found["missed_windows"].to_numpy(dtype="int64") - 1
        return cls(grid, newest - older * grid.step_ms, newest, found["count_all"].to_numpy())

    def counts(self, starts_ms: _Longs, ends_ms: _Longs) -> _Longs:
        """The number of such records in each of some windows."""
        edges = np.concatenate([self.oldest, self.newest])
        order = np.argsort(edges, kind="stable")
        so_far = np.cumsum(np.concatenate([self.records, -self.records])[order])
        ids = ends_ms if self.grid.cumulative else starts_ms
        before = np.searchsorted(edges[order], ids, side="right")
        counts: _Longs = np.concatenate([[0], so_far])[before]
        return counts

    @property
    def windows(self) -> ds.Expression:
        """The slots of the windows with such records; of many ranges also those between."""
        edges = zip(self.oldest.tolist(), self.newest.tolist(), strict=True)
        ranges = merged(TimeRange(oldest, newest) for oldest, newest in edges)
        if len(ranges) > _MOST_RANGES:
            ranges = [TimeRange(ranges[0].start_ms, ranges[-1].end_ms)]
        edge = ds.field("slot_end" if self.grid.cumulative else "slot_start")
        return reduce(
            or_,
            ((edge >= in_arrow(r.start_ms)) & (edge < in_arrow(r.end_ms)) for r in ranges),
        )


def refused_by(spec: PipelineSpec, start_ms: int, end_ms: int) -> tuple[Days, ds.Expression]:
    """The quarantine rows that a slot has refused: their days, and a condition on them."""
    day, newest = day_of(start_ms), ds.field("slot_start")
    days, at_start = Days(day, day), newest == in_arrow(start_ms)
    if not spec.window.overlapping:
        return days, at_start
    grid = Grid.of(spec)
    # a record in no window has missed none, and counts in the slot before it
    missed_ms = pc.coalesce(ds.field("missed_windows"), 1) * grid.step_ms
    if grid.cumulative:
        return days, at_start & (missed_ms > start_ms + grid.size_ms - end_ms)
    refused = newest.cast(_MS).cast(pa.int64()) - missed_ms < start_ms
    return _reached(days, grid), (newest >= in_arrow(start_ms)) & refused


def _reached(days: Days, grid: Grid) -> Days:
    """The days of the newest windows of records in windows that start on some days."""
    if days.until is None:
        return days
    reach = min(timedelta(grid.size_ms // DAY_MS + 1), date.max - days.until)
    return Days(days.since, days.until + reach)
