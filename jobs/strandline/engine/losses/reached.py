"""When a watermark with bound 0 closes each window, for each total lateness on offer.

A total lateness is the bound plus the allowed lateness. A window closes when the watermark with
bound 0 reaches its last millisecond plus the total. One narrow aggregation of the landing table
suffices; `losses` then counts the records that each total loses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected
from strandline.engine.history.history import History
from strandline.engine.history.observed import observed_history
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import candidate_of, floor
from strandline.engine.timeline import CellQuery, Observed
from strandline.engine.watermark.cells import observe
from strandline.errors import InputError
from strandline.model.intervals import END_OF_INSTANTS_MS, EVERYTHING, LEAST_INSTANT_MS, TimeRange
from strandline.model.watermarks import Candidate
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import EventTime
from strandline.spec.window import Sliding

MOST_CELLS = 4_000_000
"""The largest number of cells on the driver; for a longer history, a shorter range can be given."""


@dataclass(frozen=True)
class Offer:
    """The total latenesses on offer for a pipeline, and the range of windows to evaluate.

    Attributes:
        spec: the pipeline, with windows on a grid without gaps.
        within: the range of window starts.
        unit_ms: every total, except the pipeline's own, is a multiple of it.
        totals_ms: bound plus allowed lateness, ascending.
    """

    spec: PipelineSpec
    within: TimeRange
    unit_ms: int
    totals_ms: tuple[int, ...]

    @property
    def grid(self) -> Grid:
        """The grid of the pipeline's windows."""
        return Grid.of(self.spec)

    @property
    def without_bound(self) -> PipelineSpec:
        """The pipeline with bound 0, with the thresholds of the totals on offer.

        Its windows begin wherever one of the pipeline's may, and end wherever a total may put a
        threshold, so that all records of a cell have one newest window; the total in force is its
        allowed lateness.
        """
        unit_ms, grid = self.unit_ms, self.grid
        size_ms, offset_ms = unit_ms + grid.size_ms % unit_ms, grid.offset_ms % unit_ms
        plain: dict[str, Any] = {
            "trigger": EventTime(),
            "evictor": None,
            "process": None,
            "returns": {},
        }
        window = Sliding.model_construct(sliding=size_ms, every=unit_ms, offset=offset_ms)
        lateness = {"allowed_lateness": self.spec.total_lateness_ms}
        return self.spec.without_bound.model_copy(update={"window": window} | lateness | plain)

    @property
    def event_times(self) -> TimeRange:
        """The event times of the records whose newest window starts in the range."""
        end_ms = self.within.end_ms + self.grid.reach_ms
        return TimeRange(self.within.start_ms, _inside(end_ms))

    @property
    def watermarks(self) -> TimeRange:
        """The event times of the records that make the watermark reach thresholds of the range.

        Earlier records reach none of its thresholds, later ones reach all of them.
        """
        latest_ms = self.event_times.end_ms + self.totals_ms[-1] + 2
        return TimeRange(_inside(self.within.start_ms - self.unit_ms - 1), _inside(latest_ms))


@dataclass(frozen=True)
class Reached:
    """When a watermark with bound 0 closes windows, for each total lateness on offer.

    Attributes:
        slots_ms: the starts of the windows that have a record, ascending.
        seen_from: for each window and each total, the first instant whose records are lost.
        happened_ms: the millisecond of the close; NaN: not before the horizon.
    """

    slots_ms: npt.NDArray[np.int64]
    seen_from: npt.NDArray[Any]
    happened_ms: npt.NDArray[np.float64]


def observe_without_bound(records: DataFrame, offer: Offer, axis: Axis, horizon_ms: int) -> History:
    """The history of a watermark with bound 0, as far as it decides about a range.

    Args:
        records: the pipeline's landing as `read_records` reads it, all arrival days, duplicates
            marked, known at the horizon.
        offer: the totals and the windows.
        axis: the axis of instants.
        horizon_ms: arrivals and ticks before it are known.

    Raises:
        InputError: there are more cells than the driver may hold.
    """
    spec = offer.without_bound
    offered = records.withColumn(c.CANDIDATE, _candidate(spec))
    counted = observe(_placed(offered, offer), spec, axis, with_activity=False)
    found = collected(counted.limit(MOST_CELLS + 1))
    if len(found) > MOST_CELLS:
        raise InputError(
            f"{spec.pipeline}: --start/--end",
            f"more than {MOST_CELLS:,} parts of windows and channels to look at",
            "give a shorter range",
        )
    return observed_history(offered, spec, axis, horizon_ms, Observed(found))


def reached(history: History, offer: Offer, horizon_ms: int) -> Reached:
    """When a watermark with bound 0 closes each window of the range, for each total lateness."""
    slots_ms = _slots(history, offer)
    totals_ms = np.asarray(offer.totals_ms, dtype=np.int64)
    thresholds = (slots_ms + offer.grid.size_ms - 1)[:, None] + totals_ms[None, :]
    distinct, place = np.unique(thresholds, return_inverse=True)
    seen, ranks = history.crossings.reached(distinct.tolist(), horizon_ms)
    axis = history.axis
    happened = axis.event_ms(seen, ranks).astype("float64")
    happened[np.asarray(seen >= axis.end, dtype=bool)] = np.nan
    place = place.reshape(thresholds.shape)
    return Reached(slots_ms, seen[place], happened[place])


def _slots(history: History, offer: Offer) -> npt.NDArray[np.int64]:
    """The starts of the windows of the range that are the newest of a record."""
    days = history.days.of_events(offer.event_times)
    cells = history.timeline.cells(CellQuery(days, columns=("least_ts_ms", "largest_ts_ms")))
    ts_ms = np.unique(cells.to_numpy(dtype="int64").ravel())
    starts = np.unique(offer.grid.newest_starts(ts_ms))
    within = offer.within
    chosen: npt.NDArray[np.int64] = starts[(starts >= within.start_ms) & (starts < within.end_ms)]
    return chosen


def _candidate(spec: PipelineSpec) -> Column:
    """The candidate of each record for a watermark with bound 0."""
    watermark = spec.watermark
    if watermark.candidate is not None:
        return candidate_of(watermark.candidate, F.col(c.TS))
    if watermark.lag_ms is not None and watermark.interval_ms is None:
        return candidate_of(Candidate(watermark.lag_ms), F.col(c.ARRIVAL))
    return F.col(c.CANDIDATE)


def _placed(records: DataFrame, offer: Offer) -> DataFrame:
    """The records in windows of one unit, with event times and candidates clipped to the range."""
    grid, times = Grid.of(offer.without_bound), offer.watermarks

    def cut(name: str) -> Column:
        least, largest = (F.lit(ms).cast("bigint") for ms in (times.start_ms, times.end_ms))
        inside = F.greatest(F.least(F.col(name), largest), least)
        return F.when(F.col(name).isNotNull(), inside)

    if offer.within != EVERYTHING:
        records = records.withColumns({name: cut(name) for name in (c.TS, c.CANDIDATE)})
    return records.withColumn(c.STEP, floor(F.col(c.TS), grid.step_ms, grid.offset_ms))


def _inside(instant_ms: int) -> int:
    """An instant, clipped to the years 0001 to 9999."""
    return min(max(instant_ms, LEAST_INSTANT_MS), END_OF_INSTANTS_MS - 1)
