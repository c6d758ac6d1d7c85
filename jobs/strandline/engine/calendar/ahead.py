"""Which records arrived ahead of the watermark, by parts of the calendar's slots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.model.intervals import TimeRange


@dataclass(frozen=True)
class Parts:
    """Parts of slots that hold the records of a range of event times, as of a clock.

    Attributes:
        days: the arrival day of each cell.
        starts: the start, in ms, of the part that each cell lies in.
        table: a row for each part: `part_ms` (its start) and `ahead_before` (an instant; the
            records of the part that arrived before it were ahead of the watermark).
    """

    days: pd.Series[date]
    starts: npt.NDArray[np.int64]
    table: pd.DataFrame

    @classmethod
    def of(cls, history: History, region: TimeRange, clock: Clock) -> Parts:
        """The parts that hold the records of a range of event times."""
        grid, cells = history.grid, history.cells_of(region, ("arrival_date", "least_ts_ms"))
        times = cells["least_ts_ms"].to_numpy(dtype="int64")
        starts = times - (times - grid.offset_ms) % grid.threshold_step_ms
        parts = np.unique(starts)
        seen, _ = history.crossings.reached((parts - 1).tolist(), clock.horizon_ms)
        table = pd.DataFrame({"part_ms": parts, "ahead_before": seen})
        return cls(cells["arrival_date"], starts, table)

    def behind_days(self, history: History) -> set[date]:
        """The arrival days on which a record may have arrived behind the watermark."""
        ahead = self.table.set_index("part_ms")["ahead_before"].reindex(self.starts).to_numpy()
        after = {day: history.axis.end_of(day) for day in self.days.unique()}
        ends = self.days.map(after).to_numpy()
        return set(self.days[np.asarray(ends > ahead, dtype=bool)])
