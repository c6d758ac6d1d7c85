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
from strandline.engine.calendar.timers import timer_columns
from strandline.engine.frames import PerIdentity, computed, long
from strandline.engine.past.first_records import in_probe_order
from strandline.engine.past.history import History
from strandline.engine.past.rise_days import rise_days
from strandline.engine.records.identity import identity
from strandline.engine.records.met import met_by
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.results.aggregates import Partial, columns_read, in_two_steps
from strandline.engine.scope import Rebuild
from strandline.engine.values.emissions import Emissions
from strandline.engine.values.of_days import emissions
from strandline.engine.windows import by_order, running
from strandline.engine.windows.assign import in_each_window, in_own_window, is_accepted, refused
from strandline.engine.windows.contents import count_each, count_panes, fire
from strandline.engine.windows.firings import contents_of_firings, firings
from strandline.engine.windows.first_firings import cells_of, first_firings, parted
from strandline.engine.windows.last_firing import fire_last, held_by_state
from strandline.engine.windows.order import in_order, sorted_by_place
from strandline.engine.windows.units import counted_units, single_units
from strandline.model.intervals import TimeRange, day_of, midnight_of


@dataclass(frozen=True)
class GridRebuild(Rebuild):
    """The rebuild of windows that lie on a grid."""

    def windows(self) -> DataFrame:
        """The windows of every key, the open ones included (see `fire`)."""
        spec, grid, windows = self.history.spec, self.history.grid, self._windows
        aggregates = self._aggregates()
        if spec.goes_by_order:
            return self._windows_by_order(windows, aggregates)
        if spec.last_may_lack_records:
            units = self._units(self._identity)
            return fire_last(
                self._pairs(windows), units, windows, self.history, self._of_units(aggregates)
            )
        partials = None if grid.one_window_each else self._partials
        if partials is None:
            counted = count_each(self._pairs(windows), spec, aggregates, grid)
        else:
            counted = count_panes(self._of_range(), self._panes(), windows, spec, partials, grid)
        return fire(counted, windows, spec)

    def held(self) -> DataFrame:
        """The windows that have not closed, with what their state holds."""
        spec, windows = self.history.spec, self._windows
        if spec.goes_by_order:
            ordered = self._in_order(windows, self._identity)
            left = ordered.where(by_order.is_left())
            return by_order.held(left, windows, spec, self._aggregates())
        if not spec.last_may_lack_records:
            held = self.windows()
        else:
            accepted = self._accepted(windows).withColumn(c.RECORD_ID, self._identity)
            units = single_units(accepted, self.history, self._firsts)
            held = held_by_state(units, windows, self.history, self._aggregates())
        return held.where((F.col("state") != "closed") & (F.col("records") > 0))

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
        met = self._emissions(late_days).at(late.withColumns(met_by(late)))
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
        days = {*fired, *self.history.days.of_windows(self.scope.windows)}
        if self._fires_early:
            days.update(self._rise_days)
        windows = self._window_table(self._probed)
        emitted = emissions(self.spark, self.records, self._probed, self.clock, sorted(days))
        contents = self._contents_of_firings(windows, identity)
        return firings(contents, windows, emitted, self._probed)

    def _contents_of_firings(self, windows: DataFrame, identity: Column) -> DataFrame:
        spec, aggregates = self.history.spec, self._aggregates()
        if spec.goes_by_order:
            if running.suits(spec, self._partials):
                return running.contents_of_firings(self._running(identity))
            return by_order.contents_of_firings(self._in_order(windows, identity), spec, aggregates)
        partials = None if self._cells is None else self._partials
        return contents_of_firings(
            self._units(identity), spec, self._of_units(aggregates), partials
        )

    def _units(self, identity: Column) -> DataFrame:
        """What firings are put together of; `identity` orders records of equal position."""
        accepted = self._accepted(self._windows).withColumn(c.RECORD_ID, identity)
        if self._cells is None:
            return single_units(accepted, self.history, self._firsts)
        return counted_units(accepted, self._cells, self.history, self._firsts, self._parts)

    def _of_units(self, aggregates: dict[str, Column]) -> dict[str, Column]:
        """The aggregates over units."""
        if self._cells is None or self._partials is None:
            return aggregates
        return {name: partial.whole for name, partial in self._partials.items()}

    @property
    def _fires_early(self) -> bool:
        return self.history.spec.fires_at_times

    @cached_property
    def _probed(self) -> History:
        """The history, its channels in probe order: what a firing reports depends on it."""
        return in_probe_order(self.records, self.history)

    @cached_property
    def _windows(self) -> DataFrame:
        return self._window_table(self.history)

    def _window_table(self, history: History) -> DataFrame:
        """The windows of the range, with their timers if they fire early."""
        slots = self.slots
        if history is not self.history:
            slots = replace(self.calendar, history=history).starting_in(self.scope.windows)
        timers = timer_columns(slots, history, self.clock) if self._fires_early else None
        return window_table(self.spark, slots, history.axis, timers)

    @cached_property
    def _partials(self) -> dict[str, Partial] | None:
        return in_two_steps(self.records, self.history.spec)

    @property
    def _parts(self) -> list[Column]:
        partials = (self._partials or {}).values()
        return [part.alias(name) for p in partials for name, part in p.parts.items()]

    @cached_property
    def _all_cells(self) -> DataFrame:
        return cells_of(self._accepted(self._windows), self.history, self._parts)

    @cached_property
    def _cells(self) -> DataFrame | None:
        """The records on time, counted together where the same firing holds them first.

        None: single records are wanted, as an evictor takes them out one by one, or some aggregate
        cannot be put together.
        """
        if self._partials is None or self.history.spec.evicts_by is not None:
            return None
        if self._firsts is None:
            return self._all_cells
        met = self._accepted(self._windows)
        return parted(self._all_cells, met, self._firsts, self.history, self._parts)

    @cached_property
    def _firsts(self) -> DataFrame | None:
        """Where the firings of the range's windows begin; None: none fires before its end."""
        if not self._fires_early:
            return None
        return first_firings(self._all_cells, self._windows, self.history, self._emissions_of_rises)

    def _emissions_of_rises(self) -> Emissions:
        return emissions(self.spark, self.records, self._probed, self.clock, self._rise_days)

    @cached_property
    def _rise_days(self) -> list[date]:
        """The days on which the watermark can rise while a window of the range is open."""
        events = self.history.grid.events_of(self.scope.windows)
        return rise_days(self.history, TimeRange(events.start_ms - 1, events.end_ms), self.clock)

    def _windows_by_order(self, windows: DataFrame, aggregates: dict[str, Column]) -> DataFrame:
        spec = self.history.spec
        if running.suits(spec, self._partials):
            told = self._running(self._identity)
            fired = running.last_firings(told, windows, spec, aggregates)
        else:
            ordered = self._in_order(windows, self._identity)
            fired = by_order.last_firings(ordered, windows, spec, aggregates)
        return self._with_refused(fired, windows)

    @cached_property
    def _running(self) -> PerIdentity:
        """The records that fire a window, and its last one, with all that it holds by then."""

        def at_firings(identity: Column) -> DataFrame:
            spec, aggregates = self.history.spec, self._aggregates()
            if running.counts_by_place(spec):
                placed = sorted_by_place(self._accepted(self._windows), spec, identity)
                return computed(running.at_counts(placed, spec, aggregates, identity))
            ordered = self._in_order(self._windows, identity)
            return computed(running.at_firings(ordered, spec, aggregates))

        return PerIdentity(at_firings)

    def _with_refused(self, fired: DataFrame, windows: DataFrame) -> DataFrame:
        """Rows of `as_windows`, and rows that count the pairs of what windows refused."""
        spec, grid = self.history.spec, self.history.grid
        if grid.one_window_each:
            return fired
        refused = self._pairs(windows).where(~is_accepted())
        without_content = dict.fromkeys(spec.aggregates, F.lit(None))
        missed = count_each(refused, spec, {}, grid).withColumns(without_content)
        none = long(0)
        rows = fire(missed, windows, spec).withColumns({c.ACCEPTED: none, c.UNFIRED: none})
        return fired.unionByName(rows)

    def _in_order(self, windows: DataFrame, identity: Column) -> DataFrame:
        spec = self.history.spec
        read = columns_read(self.records, spec, self.source_columns)
        return in_order(self._accepted(windows), spec, identity, read)

    @property
    def _identity(self) -> Column:
        return identity(self.history.spec, self.source_columns)

    @cached_property
    def _older_and_own(self) -> pd.DataFrame:
        return pd.concat([self.older, self.slots], ignore_index=True)

    def _accepted(self, windows: DataFrame) -> DataFrame:
        """The accepted records, once for each window that took them."""
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
