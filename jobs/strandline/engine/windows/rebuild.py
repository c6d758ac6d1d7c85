"""The steps of a rebuild of windows on a grid: place → split by lateness → fire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.tables import newest_window_table, pane_table, window_table
from strandline.engine.frames import computed
from strandline.engine.history.history import History
from strandline.engine.records.at_arrival import arrival_probe
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.scope import Rebuild
from strandline.engine.watermark_values.emissions import Emissions
from strandline.engine.watermark_values.of_days import emissions
from strandline.engine.windows.assign import in_each_window, in_own_window, is_accepted, refused
from strandline.engine.windows.contents import by_slot, count_each, count_panes, fire
from strandline.engine.windows.firings import contents_of_firings, firings
from strandline.model.intervals import day_of, midnight_of


@dataclass(frozen=True)
class GridRebuild(Rebuild):
    """The rebuild of windows on a grid, under the default trigger."""

    def windows(self) -> DataFrame:
        """The windows of every key, the open ones included (see `fire`)."""
        return fire(self._counted, self._windows, self.history.spec)

    def in_state(self) -> DataFrame:
        """The windows that have not closed, with the content of their state."""
        return self.windows().where(F.col("state") != "closed")

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: each window is a slot."""
        return by_slot(self._counted)

    @cached_property
    def _counted(self) -> DataFrame:
        """The contents and record counts of every window of every key, computed once."""
        spec, grid, windows = self.history.spec, self.history.grid, self._windows
        aggregates = self._aggregates
        partials = None if grid.one_window_each else self._partials
        if partials is None:
            return computed(count_each(self._pairs(windows), spec, aggregates, grid))
        panes = self._panes()
        return computed(count_panes(self._of_range(), panes, windows, spec, partials, grid))

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
        at_arrival = self._emissions(late_days).at(
            late.withColumns(arrival_probe(self.history.spec))
        )
        return quarantine_late(at_arrival, self.history.spec, self.source_columns)

    def _late_days(self) -> list[date]:
        """The arrival days on which a requested record may have been refused."""
        days = set(self.calendar.late_days(self.slots))
        if (since_ms := self.scope.older_since_ms) is not None:
            of_older = self.calendar.late_days(self.older)
            days |= {day for day in of_older if midnight_of(day) >= since_ms}
        return sorted(days)

    def firings(self) -> DataFrame:
        """See `Rebuild`."""
        spec, aggregates = self.history.spec, self._aggregates
        days = {*self._fired_days, *self.history.days.of_windows(self.scope.windows)}
        accepted = self._accepted(self._windows).withColumn(c.RECORD_ID, self._identity)
        contents = contents_of_firings(accepted, spec, aggregates, self._partials)
        windows = self._window_table(self._probed)
        return firings(contents, windows, self._emissions_probed(sorted(days)), self._probed)

    @property
    def _fired_days(self) -> set[date]:
        """The days on which the watermark reaches the end of a window of the range."""
        return {day_of(int(ms)) for ms in self.slots["fire_at_ms"].dropna()}

    @cached_property
    def _probed(self) -> History:
        """The history with its channels in probe order, on which the reports of firings depend."""
        return self.history.in_probe_order(self.records)

    def _emissions_probed(self, days: list[date]) -> Emissions:
        return emissions(self.records, self._probed, self.clock, days)

    @cached_property
    def _windows(self) -> DataFrame:
        return self._window_table(self.history)

    def _window_table(self, history: History) -> DataFrame:
        """The windows of the range."""
        return window_table(self.spark, self._slots_of(history), history.axis)

    def _slots_of(self, history: History) -> pd.DataFrame:
        if history is self.history:
            return self.slots
        return replace(self.calendar, history=history).starting_in(self.scope.windows)

    def _accepted(self, windows: DataFrame) -> DataFrame:
        """The accepted records, once for each window that accepted them."""
        return self._pairs(windows).where(is_accepted())

    def _pairs(self, windows: DataFrame) -> DataFrame:
        grid, records = self.history.grid, self._of_range()
        if grid.one_window_each:
            return in_own_window(records, windows)
        return in_each_window(records, self._panes(), windows, grid.step_ms)

    def _panes(self) -> DataFrame:
        panes = self.calendar.panes_within(self.scope.windows, self.slots)
        return pane_table(self.spark, panes, self.history.axis)

    def _of_range(self) -> DataFrame:
        return self._known(self.history.days.of_windows(self.scope.windows))
