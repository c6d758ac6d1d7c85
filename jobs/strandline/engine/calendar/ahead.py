"""The records that arrived ahead of the watermark, decided for whole parts of slots.

A record is ahead if the watermark at its arrival was at least 2 ms below the start of its part.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.model.intervals import TimeRange


@dataclass(frozen=True)
class Parts:
    """Parts of slots that hold the records of a range of event times, up to a horizon.

    Attributes:
        history: everything observed below the horizon.
        days: the arrival day of each cell.
        starts: the start, in ms, of the part that each cell lies in.
        table: a row for each part: `part_ms` (its start) and `ahead_before` (an instant; the
            records of the part that arrived before it were ahead of the watermark).
    """

    history: History
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
        return cls(history, cells["arrival_date"], starts, table)

    def of_records(self, records: DataFrame) -> DataFrame:
        """Records of the range with their PART, and its AHEAD_BEFORE."""
        axis, ts, length_ms = self.history.axis, F.col(c.TS), self.history.grid.threshold_step_ms
        columns = {
            c.PART: self.table["part_ms"],
            c.AHEAD_BEFORE: axis.column(self.table["ahead_before"]),
        }
        table = F.broadcast(small_table(records.sparkSession, columns))
        part = ts - F.pmod(ts - F.col(c.STEP), F.lit(length_ms))
        return records.withColumn(c.PART, part).join(table, c.PART)

    @property
    def behind_days(self) -> set[date]:
        """The arrival days on which a record may have arrived behind the watermark."""
        ahead = self.table.set_index("part_ms")["ahead_before"].reindex(self.starts).to_numpy()
        after = {day: self.history.axis.end_of(day) for day in self.days.unique()}
        ends = self.days.map(after).to_numpy()
        return set(self.days[np.asarray(ends > ahead, dtype=bool)])
