"""Late records of overlapping windows: `completeness` counts each in its newest window alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.conditions import any_of
from strandline.engine.position.grid import Grid
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.reads import in_arrow
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    merged,
)
from strandline.quality.completeness import in_ms
from strandline.tables import QUARANTINE

if TYPE_CHECKING:
    from strandline.lake.store.store import Store
    from strandline.pipeline.views.read_pipeline import ReadPipeline
    from strandline.spec import PipelineSpec

_MOST_RANGES = 100
"""The largest number of ranges in a condition on rows."""
_MS = pa.timestamp("ms", tz="UTC")
_Longs = npt.NDArray[Any]


@dataclass(frozen=True)
class LateOfNewer:
    """The late records in each window that are counted in a newer window.

    All windows of a late record have refused it. They are neighbours, as many as its row of
    quarantine says. An erasure or upkeep may have removed rows: then these windows are not known.

    Attributes:
        grid: the windows.
        oldest: for some late records the id of the oldest window.
        newest: the id of their newest window.
        records: their number.
        lacking: the ids of newest windows of which rows have been removed, in ascending order.
    """

    grid: Grid
    oldest: _Longs
    newest: _Longs
    records: _Longs
    lacking: _Longs

    @classmethod
    def of(cls, read: ReadPipeline, days: Days) -> LateOfNewer | None:
        """The late records in the windows that start on some days; None: there is none."""
        grid, store = Grid.of(read.spec), read.store
        if not read.spec.window.overlapping or grid.most_windows == 1:
            return None
        reached = _reached(days, grid)
        late = _late_rows(store, reached)
        if late is None:
            return None
        lacking = grid.newest_ids(_lacking(store, reached, late).to_numpy())
        older = late[late["missed_windows"] > 1]
        if older.empty and not len(lacking):
            return None
        newest = grid.newest_ids(older["start_ms"].to_numpy())
        oldest = newest - (older["missed_windows"].to_numpy() - 1) * grid.step_ms
        return cls(grid, oldest, newest, older["records"].to_numpy(), lacking)

    def counts(self, starts_ms: _Longs, ends_ms: _Longs) -> _Longs:
        """The number of such records in each of some windows."""
        edges = np.concatenate([self.oldest, self.newest])
        order = np.argsort(edges, kind="stable")
        so_far = np.cumsum(np.concatenate([self.records, -self.records])[order])
        before = np.searchsorted(edges[order], self.grid.ids_of(starts_ms, ends_ms), side="right")
        counts: _Longs = np.concatenate([[0], so_far])[before]
        return counts

    def are_least(self, starts_ms: _Longs, ends_ms: _Longs) -> npt.NDArray[np.bool_]:
        """Whether each of some windows may have more such records, whose rows are removed."""
        ids = self.grid.ids_of(starts_ms, ends_ms)
        following = np.append(self.lacking, END_OF_INSTANTS_MS + self._reach_ms)
        nearest = following[np.searchsorted(self.lacking, ids, side="right")]
        are_least: npt.NDArray[np.bool_] = nearest - ids <= self._reach_ms
        return are_least

    @property
    def _reach_ms(self) -> int:
        """The longest time between the ids of two windows of a record."""
        return (self.grid.most_windows - 1) * self.grid.step_ms

    @property
    def windows(self) -> ds.Expression:
        """A filter for the slots of these windows; of many ranges, also for the slots between."""
        edges = [*zip(self.oldest.tolist(), self.newest.tolist(), strict=True)]
        edges += [
            (max(newest - self._reach_ms, LEAST_INSTANT_MS), newest)
            for newest in self.lacking.tolist()
        ]
        ranges = merged(TimeRange(oldest, newest) for oldest, newest in edges)
        if len(ranges) > _MOST_RANGES:
            ranges = [TimeRange(ranges[0].start_ms, ranges[-1].end_ms)]
        edge = ds.field(f"slot_{self.grid.id_edge}")
        inside = ((edge >= in_arrow(r.start_ms)) & (edge < in_arrow(r.end_ms)) for r in ranges)
        return any_of(inside, ds.scalar(False))


def _late_rows(store: Store, days: Days) -> pd.DataFrame | None:
    """The number of quarantined late `records` by `start_ms` of their newest slot, and by windows.

    None: there is no quarantine.
    """
    columns = ["slot_start", "missed_windows"]
    rows = read_days(store, QUARANTINE.name, columns, days, ds.field("reason") == "late")
    if rows is None:
        return None
    counts: pd.DataFrame = sums_by([rows], columns).to_pandas()
    found = counts.rename(columns={ROWS: "records"})
    found["start_ms"] = in_ms(found["slot_start"])
    return found.astype({"missed_windows": "int64"})


def _lacking(store: Store, days: Days, late: pd.DataFrame) -> pd.Index[int]:
    """The starts of the slots for which `completeness` counts more late records than quarantine.

    Quarantined rows may have been erased, or removed because of their age. `late`: the rows of
    `_late_rows`.
    """
    rows = read_days(store, "completeness", ["slot_start", "late"], days, ds.field("late") > 0)
    if rows is None:
        return pd.Index([], dtype="int64")
    slots = rows.to_pandas()
    counted = slots["late"].groupby(in_ms(slots["slot_start"])).sum()
    more = counted.sub(late.groupby("start_ms")["records"].sum(), fill_value=0)
    starts: pd.Index[int] = more[more > 0].index.sort_values()
    return starts


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
