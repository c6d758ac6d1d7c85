"""The arrival days whose cells or records a query needs, from the facts of the days alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import pandas as pd

from strandline.engine.position.grid import Grid, gap_of
from strandline.engine.records.duplicates import DUPLICATE
from strandline.engine.timeline import Timeline
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    merged,
    midnight_of,
)
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class DaysToRead:
    """The arrival days below a horizon, by the event times of their records."""

    timeline: Timeline
    spec: PipelineSpec

    @property
    def grid(self) -> Grid:
        """The grid of the pipeline's windows."""
        return Grid.of(self.spec)

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """`Timeline.day_map`, with the midnight of each arrival day as `arrived_ms`."""
        map_of_days = self.timeline.day_map
        arrived = map_of_days["arrival_date"].map(midnight_of)
        return map_of_days.assign(arrived_ms=arrived.astype("int64"))

    @cached_property
    def every(self) -> list[date]:
        """The arrival days that have a well-formed record."""
        return sorted(self.day_map["arrival_date"].unique())

    @cached_property
    def with_malformed(self) -> set[date | None]:
        """The arrival days that have a malformed row; None: rows without an arrival day."""
        return {None if pd.isna(day) else day for day in self.timeline.malformed["arrival_date"]}

    @cached_property
    def with_duplicates(self) -> set[date]:
        """The arrival days with a row that repeats an earlier one."""
        bad = self.timeline.malformed
        return set(bad.loc[bad["reason"] == DUPLICATE, "arrival_date"].dropna())

    @cached_property
    def rebuilt(self) -> list[date]:
        """The days that a rebuild may read: for its records, and to find duplicates."""
        days = set(self.every)
        if self.spec.source.deduplicate is not None:
            days |= {day for day in self.with_malformed if day is not None}
        return sorted(days)

    def between(self, since_ms: int | None, until_ms: int = END_OF_INSTANTS_MS) -> pd.DataFrame:
        """The rows of `day_map` with an arrival day in a range; `since_ms` None: from the first."""
        first_ms = LEAST_INSTANT_MS if since_ms is None else since_ms
        arrived = self.day_map["arrived_ms"]
        return self.day_map[(arrived >= first_ms) & (arrived < until_ms)]

    def since(self, since_ms: int) -> list[date]:
        """The arrival days from a midnight on."""
        return sorted(self.between(since_ms)["arrival_date"].unique())

    def rows_of(self, events: TimeRange) -> pd.DataFrame:
        """The rows of `day_map` that may count records with an event time in a range."""
        inside = (self.day_map["largest_ts_ms"] >= events.start_ms) & (
            self.day_map["least_ts_ms"] < events.end_ms
        )
        return self.day_map[inside.astype(bool)]

    def of_events(self, events: TimeRange, until_ms: int = END_OF_INSTANTS_MS) -> list[date]:
        """The arrival days before an instant that may have a record with event time in a range."""
        rows = self.rows_of(events)
        return sorted(rows.loc[rows["arrived_ms"] < until_ms, "arrival_date"].unique())

    def of_windows(self, within: TimeRange) -> list[date]:
        """The arrival days that may have records of windows that start in a range."""
        return self.of_events(self.grid.events_of(within))

    def events_of(self, within: TimeRange) -> TimeRange:
        """The event times of the records of windows that start in a range."""
        if self.spec.window.merging:
            return TimeRange(self.first_reaching(within.start_ms), self.last_end(within.end_ms))
        end_ms = min(within.end_ms + self.grid.size_ms, END_OF_INSTANTS_MS)
        return TimeRange(within.start_ms, end_ms)

    def oldest_slot_of_arrivals(self, since_ms: int | None, until_ms: int) -> int:
        """The start of the oldest window of the records that arrived on the days of a range.

        `END_OF_INSTANTS_MS` if none arrived. A record between two windows counts in the one before.
        """
        arrived = self.between(since_ms, until_ms)
        if not len(arrived):
            return END_OF_INSTANTS_MS
        least_ms = int(arrived["least_ts_ms"].min())
        oldest, _ = self.grid.windows_of_panes(self.grid.panes_of(np.array([least_ms])))
        return min(self.grid.starts_of(int(oldest[0])), self.grid.newest_starts(least_ms))

    def slots_named(self, within: TimeRange) -> frozenset[int]:
        """The starts of the slots in a range that surely have a record, by the day map alone.

        They are the slots of the first and the last record of each event date on each arrival day.
        """
        ts_ms = self.day_map[["least_ts_ms", "largest_ts_ms"]].to_numpy(dtype="int64").ravel()
        starts = np.unique(self.grid.newest_starts(ts_ms))
        inside = (starts >= within.start_ms) & (starts < within.end_ms)
        return frozenset(starts[inside].tolist())

    def last_event_date(self, until_ms: int) -> date | None:
        """The last event date of records that arrived before a midnight; None: there are none."""
        known = self.between(None, until_ms)["event_date"]
        return max(known) if len(known) else None

    @property
    def events(self) -> TimeRange | None:
        """The range from the least to the largest event time; None: there is no record."""
        if not len(self.day_map):
            return None
        least, largest = self.day_map["least_ts_ms"].min(), self.day_map["largest_ts_ms"].max()
        return TimeRange(int(least), int(largest) + 1)

    def first_start_after(self, ts_ms: int) -> int:
        """The start of the first window that starts after all windows of an event time.

        For sessions, the first slot after the session of a single record of that event time.
        """
        if self.spec.window.merging:
            end_ms = self.last_end(ts_ms + 1)
            return end_ms + (self.grid.offset_ms - end_ms) % self.grid.step_ms
        return self.grid.newest_starts(ts_ms) + self.grid.span_ms

    def first_reaching(self, instant_ms: int) -> int:
        """A lower bound, in ms, of the event times of records whose own session reaches an instant.

        A record's own session is `[event time, event time + gap)`. If no such session exists, it is
        the instant itself.
        """
        gap_ms = gap_of(self.spec)
        if gap_ms is not None:
            return max(instant_ms - gap_ms, LEAST_INSTANT_MS)
        least = self.day_map.loc[self._ends >= instant_ms, "least_ts_ms"].min()
        return instant_ms if pd.isna(least) else min(instant_ms, int(least))

    def last_end(self, before_ms: int) -> int:
        """An upper bound of the ends of the own sessions of records before an instant."""
        gap_ms = gap_of(self.spec)
        if gap_ms is not None:
            return min(before_ms + gap_ms, END_OF_INSTANTS_MS)
        begun = self.day_map["least_ts_ms"].astype("int64") < before_ms
        return max([before_ms, *self._ends[begun].tolist()])

    def last_end_of_arrivals(self, until_ms: int) -> int:
        """An upper bound of the ends of the own sessions of records that arrived before an instant.

        All records of the instant's arrival day count; `LEAST_INSTANT_MS`: there are none.
        """
        gap_ms, arrived = gap_of(self.spec), self.between(None, until_ms)
        ends = self._ends[arrived.index] if gap_ms is None else arrived["largest_ts_ms"] + gap_ms
        return int(max([LEAST_INSTANT_MS, *ends]))

    @property
    def _ends(self) -> pd.Series[int]:
        """The largest session end of each row of the day map; an older timeline has no bound."""
        return self.day_map["largest_end_ms"].fillna(END_OF_INSTANTS_MS).astype("int64")


def ranges_around(starts_ms: Collection[int]) -> list[TimeRange]:
    """Ranges that cover some instants; two that lie more than a day apart are in separate ones."""
    return merged((TimeRange(start_ms, start_ms + 1) for start_ms in starts_ms), DAY_MS)
