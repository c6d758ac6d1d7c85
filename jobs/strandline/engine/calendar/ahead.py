"""Where records are ahead of the watermark: by the parts of the calendar's slots that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, midnight_of


@dataclass(frozen=True)
class Parts:
    """The parts of slots that hold records of some event times, as of a clock.

    Attributes:
        days: the arrival day of each cell.
        starts: the start of the part that each cell lies in.
        table: `part_ms`, the start of each part; `ahead_before`: before which instant a record of
            it has come before the watermark had reached its time.
    """

    days: pd.Series[date]
    starts: npt.NDArray[np.int64]
    table: pd.DataFrame

    @classmethod
    def of(cls, history: History, region: TimeRange, clock: Clock) -> Parts:
        """The parts that hold the records of some event times."""
        grid, slots = history.grid, region
        if region != EVERYTHING:
            first_ms = int(grid.newest_starts(np.array([region.start_ms]))[0])
            slots = TimeRange(first_ms, region.end_ms)
        days, asked = history.days.of_events(region), ("arrival_date", "least_ts_ms")
        cells = history.timeline.cells(days, slots=slots, columns=asked)
        times = cells["least_ts_ms"].to_numpy(dtype="int64")
        starts = times - (times - grid.offset_ms) % grid.threshold_step_ms
        parts = np.unique(starts)
        seen, _ = history.crossings.reached((parts - 1).tolist(), clock.horizon_ms)
        table = pd.DataFrame({"part_ms": parts, "ahead_before": seen})
        return cls(cells["arrival_date"], starts, table)

    def behind_days(self, history: History) -> set[date]:
        """The arrival days on which a record may not be ahead of the watermark."""
        ahead = self.table.set_index("part_ms")["ahead_before"].reindex(self.starts).to_numpy()
        after = {
            day: history.axis.first_of(midnight_of(day) + DAY_MS) for day in self.days.unique()
        }
        ends = self.days.map(after).to_numpy()
        return set(self.days[np.asarray(ends > ahead, dtype=bool)])


def rise_days(history: History, within: TimeRange, clock: Clock) -> list[date]:
    """The days on which the watermark can reach a value of a range."""
    axis, grid, crossings = history.axis, history.grid, history.crossings
    last_ms = within.end_ms + grid.threshold_step_ms
    edges = grid.edges_around(TimeRange(within.start_ms, last_ms))
    (first, last), _ = crossings.reached(edges, clock.horizon_ms)
    days = {*history.days.every, *crossings.days_of_steps(clock.horizon_ms)}
    if axis.ticks is not None:
        ticks = [axis.ticks.after(midnight_of(day) + DAY_MS - 1) for day in days]
        days |= {day_of(tick) for tick in ticks if tick < clock.horizon_ms}
    rising = {
        day
        for day in days
        if axis.first_of(midnight_of(day)) <= last
        and axis.first_of(midnight_of(day) + DAY_MS) >= first
    }
    if clock.closes_now:  # as the channels end one by one, it rises to what the others offer
        rising.add(day_of(clock.horizon_ms - 1))
    return sorted(rising)
