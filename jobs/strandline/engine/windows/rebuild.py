"""The steps of a rebuild of windows on a grid: place → split by lateness → fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.tables import newest_window_table, pane_table, window_table
from strandline.engine.frames import computed
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.scope import Rebuild
from strandline.engine.windows.assign import in_each_window, in_own_window, is_accepted, refused
from strandline.engine.windows.contents import by_slot, count_each, count_panes, fire
from strandline.engine.windows.firings import contents_of_firings, firings
from strandline.model.intervals import day_of, midnight_of


@dataclass(frozen=True)
class GridRebuild(Rebuild):
    """The rebuild of windows on a grid, under the default trigger."""

    def windows(self) -> DataFrame:
        """The windows of every key, the open ones included (see `fire`)."""
        return fire(self._counted, self._windows, self._spec)

    def in_state(self) -> DataFrame:
        """The windows that have not closed, with the content of their state."""
        return self.windows().where(F.col("state") != "closed")

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: each window is a slot."""
        return by_slot(self._counted)

    @cached_property
    def _counted(self) -> DataFrame:
        """The contents and record counts of every window of every key, computed once."""
        spec, grid, aggregates = self._spec, self.history.grid, self._aggregates
        partials = None if grid.one_window_each else self._partials
        if partials is None:
            return computed(count_each(self._pairs, spec, aggregates, grid))
        records, panes, windows = self._of_range(), self._panes(), self._windows
        return computed(count_panes(records, panes, windows, spec, partials, grid))

    def late(self) -> DataFrame:
        """The records of the scope that no window accepted, as quarantine rows."""
        older_and_own = pd.concat([self.older, self.slots], ignore_index=True)
        panes = self.calendar.panes(older_and_own)
        late_days = self._late_days()
        newest_windows = newest_window_table(self.spark, panes, self.history.axis)
        late = refused(self._known(late_days), newest_windows, self.calendar.least_delay(panes))
        if self.scope.older_since_ms is not None:
            late = late.where(
                (F.col(c.SLOT) >= self.scope.windows.start_ms)
                | (F.col(c.ARRIVAL) >= self.scope.older_since_ms)
            )
        at_arrival = self._emissions(late_days).at_arrival(late, self._spec)
        return quarantine_late(at_arrival, self._spec, self.source_columns)

    def _late_days(self) -> list[date]:
        """The arrival days on which a requested record may have been refused."""
        days = set(self.calendar.late_days(self.slots))
        if (since_ms := self.scope.older_since_ms) is not None:
            of_older = self.calendar.late_days(self.older)
            days |= {day for day in of_older if midnight_of(day) >= since_ms}
        return sorted(days)

    def firings(self) -> DataFrame:
        """See `Rebuild`."""
        spec, aggregates = self._spec, self._aggregates
        days = {*self._fired_days, *self.history.days.of_windows(self.scope.windows)}
        accepted = self._accepted.withColumn(c.RECORD_ID, self._identity)
        contents = contents_of_firings(accepted, spec, aggregates, self._partials)
        return firings(contents, self._windows, self._emissions(sorted(days)), spec)

    @property
    def _fired_days(self) -> set[date]:
        """The days on which the watermark reaches the end of a window of the range."""
        return {day_of(int(ms)) for ms in self.slots["fire_at_ms"].dropna()}

    @cached_property
    def _windows(self) -> DataFrame:
        """The windows of the range."""
        return window_table(self.spark, self.slots, self.history.axis)

    @property
    def _accepted(self) -> DataFrame:
        """The accepted records, once for each window that accepted them."""
        return self._pairs.where(is_accepted())

    @property
    def _pairs(self) -> DataFrame:
        """The records, once for each of their windows in the range."""
        grid, records = self.history.grid, self._of_range()
        if grid.one_window_each:
            return in_own_window(records, self._windows)
        return in_each_window(records, self._panes(), self._windows, grid.step_ms)

    def _panes(self) -> DataFrame:
        panes = self.calendar.panes_within(self.scope.windows, self.slots)
        return pane_table(self.spark, panes, self.history.axis)

    def _of_range(self) -> DataFrame:
        return self._known(self.history.days.of_windows(self.scope.windows))
