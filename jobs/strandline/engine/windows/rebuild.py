"""The story of a rebuild of windows on a grid: place → split by lateness → fire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.tables import newest_window_table, pane_table, window_table
from strandline.engine.past.first_records import in_probe_order
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.engine.records.identity import identity
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.results.aggregates import columns_read, in_two_steps
from strandline.engine.scope import Rebuild
from strandline.engine.values.of_days import emissions
from strandline.engine.windows import by_order
from strandline.engine.windows.assign import in_each_window, in_own_window, is_accepted, refused
from strandline.engine.windows.contents import count_each, count_panes, fire
from strandline.engine.windows.firings import contents_of_firings, firings
from strandline.engine.windows.last_firing import fire_last
from strandline.engine.windows.order import in_order
from strandline.model.intervals import day_of, midnight_of


@dataclass(frozen=True)
class GridRebuild(Rebuild):
    """The rebuild of windows that lie on a grid."""

    def windows(self) -> DataFrame:
        """The windows of every key, the open ones included (see `fire`)."""
        spec, grid = self.history.spec, self.history.grid
        windows = window_table(self.spark, self.slots, self.history.axis)
        aggregates = self._aggregates()
        if spec.goes_by_order:
            return self._windows_by_order(windows, aggregates)
        if spec.lets_records_go:
            pairs = self._pairs(windows)
            return fire_last(pairs, windows, spec, aggregates, grid, self._identity)
        partials = None if grid.one_window_each else in_two_steps(self.records, spec)
        if partials is None:
            counted = count_each(self._pairs(windows), spec, aggregates, grid)
        else:
            counted = count_panes(self._of_range(), self._panes(), windows, spec, partials, grid)
        return fire(counted, windows, spec)

    def held(self) -> DataFrame:
        """The windows that have not closed: what they hold is what they were last emitted with.

        If firings purge, those that have fired hold nothing.
        """
        if self.history.spec.goes_by_order:
            windows = window_table(self.spark, self.slots, self.history.axis)
            ordered = self._in_order(windows, self._identity)
            return by_order.held(ordered, windows, self.history.spec, self._aggregates())
        purging = F.lit(self.history.spec.fires_by.purging)
        emptied = (F.col("state") == "closed") | (purging & (F.col("state") == "fired"))
        return self.windows().where(~emptied & (F.col("records") > 0))

    def accepted_by_slot(self) -> None:
        """Nothing: each window is a slot, and tells it itself."""

    def late(self) -> DataFrame:
        """The records of the scope that no window took, as quarantine rows."""
        panes = self.calendar.panes(self._older_and_own)
        late_days = self._late_days()
        newest_windows = newest_window_table(self.spark, panes, self.history.axis)
        late = refused(self._known(late_days), newest_windows, self.calendar.least_delay(panes))
        if self.scope.older_since_ms is not None:
            late = late.where(
                (F.col(c.SLOT) >= self.scope.windows.start_ms)
                | (F.col(c.ARRIVAL) >= self.scope.older_since_ms)
            )
        probes = late.withColumns({c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)})
        met = self._emissions(late_days).at(probes)
        return quarantine_late(met, self.history.spec, self.source_columns)

    def _late_days(self) -> list[date]:
        """The arrival days on which a record that is asked for may have been refused."""
        days = set(self.calendar.late_days(self.slots))
        if (since_ms := self.scope.older_since_ms) is not None:
            of_older = self.calendar.late_days(self.older)
            days |= {day for day in of_older if midnight_of(day) >= since_ms}
        return sorted(days)

    def firings(self, identity: Column) -> DataFrame:
        """The firings of the range's windows; `identity` orders records of equal position."""
        fired = [day_of(int(ms)) for ms in self.slots["fire_at_ms"].dropna()]
        days = sorted({*fired, *self.history.days.of_windows(self.scope.windows)})
        history = in_probe_order(self.records, self.history)
        slots = replace(self.calendar, history=history).starting_in(self.scope.windows)
        windows = window_table(self.spark, slots, history.axis)
        emitted = emissions(self.spark, self.records, history, self.clock, days)
        return firings(
            self._contents_of_firings(windows, identity), windows, emitted, self.history.spec
        )

    def _contents_of_firings(self, windows: DataFrame, identity: Column) -> DataFrame:
        spec, aggregates = self.history.spec, self._aggregates()
        if not spec.goes_by_order:
            accepted = self._accepted(windows).withColumn(c.RECORD_ID, identity)
            return contents_of_firings(accepted, spec, aggregates)
        partials = in_two_steps(self.records, spec)
        ordered = self._in_order(windows, identity)
        return by_order.contents_of_firings(ordered, spec, aggregates, partials)

    def _windows_by_order(self, windows: DataFrame, aggregates: dict[str, Column]) -> DataFrame:
        spec, grid = self.history.spec, self.history.grid
        ordered = self._in_order(windows, self._identity)
        fired = by_order.last_firings(ordered, windows, spec, aggregates)
        if grid.one_window_each:
            return fired
        refused = self._pairs(windows).where(~is_accepted())
        without_content = dict.fromkeys(aggregates, F.lit(None))
        missed = count_each(refused, spec, {}, grid).withColumns(without_content)
        none = F.lit(0).cast("bigint")
        rows = fire(missed, windows, spec).withColumns({c.ACCEPTED: none, c.UNFIRED: none})
        return fired.unionByName(rows)

    def _in_order(self, windows: DataFrame, identity: Column) -> DataFrame:
        read = columns_read(self.records, self._aggregates())
        return in_order(self._accepted(windows), self.history.spec, identity, read)

    def _accepted(self, windows: DataFrame) -> DataFrame:
        """The accepted records, once for each window that took them."""
        return self._pairs(windows).where(is_accepted())

    @property
    def _identity(self) -> Column:
        return identity(self.history.spec, self.source_columns)

    @cached_property
    def _older_and_own(self) -> pd.DataFrame:
        return pd.concat([self.older, self.slots], ignore_index=True)

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
