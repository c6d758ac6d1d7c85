"""The records that decide about a range, condensed: records with the same outcome are one row."""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.ahead import Parts
from strandline.engine.calendar.tables import part_table
from strandline.engine.frames import computed
from strandline.engine.history.advance_days import advance_days
from strandline.engine.position.clock import Closure
from strandline.engine.scope import Rebuild
from strandline.engine.sessions.condense import digest, in_rows, row_key, with_watermarks
from strandline.engine.sessions.firings import (
    fired,
    fired_once,
    fires_once,
    in_order,
    units_in_firings,
    units_of,
)
from strandline.engine.sessions.merge import levels_of, sessions_of, starts_in
from strandline.engine.sessions.reach import read_far_enough
from strandline.engine.sessions.runs import numbered_by_run, one_row_per_run
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.spec.pipeline import PipelineSpec

FEW = 1_000_000
"""The largest number of rows that are broadcast to every task; more are shuffled."""


@dataclass(frozen=True)
class SessionRows(Rebuild, ABC):
    """The rows, the units and the firings of a range's sessions, computed on first use."""

    @property
    def _spec(self) -> PipelineSpec:
        return self.history.spec

    @property
    def needs_whole_chains(self) -> bool:
        """Whether all connected records before the range are read, too."""
        return False

    def _known(self, days: Collection[date]) -> DataFrame:
        """The records of the scope.

        Records with event times that are kept belong to no other session.
        """
        known = super()._known(days)
        for within in self.scope.kept:
            known = known.where(~starts_in(F.col(c.TS), within))
        return known

    def _parts_of(self, region: TimeRange) -> Parts:
        """The parts of slots with records of some event times, or of a larger range."""
        for known, parts in self._parts.items():
            if known.start_ms <= region.start_ms and region.end_ms <= known.end_ms:
                return parts
        return self._parts.setdefault(region, Parts.of(self.history, region, self.clock))

    @cached_property
    def _parts(self) -> dict[TimeRange, Parts]:
        return {}

    @property
    def _ended(self) -> list[Closure]:
        """The ranges whose input had ended before the horizon, in that order."""
        horizon_ms = self.clock.horizon_ms
        before = [closure for closure in self.clock.closures if closure.at_ms < horizon_ms]
        return sorted(before, key=lambda closure: closure.at_ms)

    @property
    def _region(self) -> TimeRange:
        """The event times that decide about the range: see `read_far_enough`."""
        return self._digested[0]

    @cached_property
    def _digested(self) -> tuple[TimeRange, DataFrame]:
        def digested(region: TimeRange) -> DataFrame:
            records = self._in_rows(self._days(region), region)
            return digest(records, self._spec, self._partials or {})

        whole = self.needs_whole_chains
        return read_far_enough(digested, self.scope.windows, self.history, whole=whole)

    def _days(self, within: TimeRange) -> list[date]:
        return self.history.days.of_events(within)

    def _in_rows(self, days: list[date], within: TimeRange) -> DataFrame:
        records = self._known(days)
        if within != EVERYTHING:
            records = records.where(starts_in(F.col(c.TS), within))
            if not self.needs_whole_chains:
                # one with a gap of its own may reach into the range from anywhere before it
                records = records.where(F.col(c.END) >= self.scope.windows.start_ms)
        ends_ms = [closure.at_ms for closure in self._ended]
        ahead = part_table(self.spark, self._parts_of(within).table, self.history.axis)
        return in_rows(records, ahead, self.history, ends_ms)

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of days with a late record, or with a session's firing or close."""
        region, history = self._region, self.history
        last = history.days.last_end(region.end_ms) + self._spec.allowed_lateness
        asked = TimeRange(self.scope.windows.start_ms - 1, last)
        behind = self._parts_of(region).behind_days(history) & set(self._days(region))
        days = behind.union(advance_days(history, asked, self.clock))
        return self._emissions(sorted(days)).at_hand()

    @cached_property
    def _at_arrival(self) -> DataFrame:
        """The rows of the digest, with the watermark at their arrival and the ROW of their run.

        If some input had ended, a run could extend over its end, so every row stays alone.
        """
        spec, (_, rows) = self._spec, self._digested
        at_arrival = with_watermarks(rows, self._emitted, spec)
        return at_arrival if self._ended else numbered_by_run(at_arrival, spec)

    @cached_property
    def _rows(self) -> DataFrame:
        """The runs of rows, and the rows outside of runs, with their sessions."""
        spec = self._spec
        at_arrival = self._at_arrival if self._ended else one_row_per_run(self._at_arrival, spec)
        return sessions_of(at_arrival, spec, self._ended)

    @cached_property
    def _accepted_rows(self) -> DataFrame:
        """The rows of the digest that a session has accepted, each with its UNIT."""
        accepted = self._rows.where(F.col(c.SESSION).isNotNull())
        if self._ended:
            return accepted
        units = accepted.select(c.ROW, c.UNIT)
        return self._at_arrival.join(F.broadcast(units) if units.count() <= FEW else units, c.ROW)

    def _records_in_units(self) -> DataFrame:
        """The accepted records, each with its UNIT."""
        spec = self._spec
        units = self._accepted_rows.select(*row_key(spec), c.UNIT)
        return self._in_rows(self._days(self._region), self._region).join(units, row_key(spec))

    @cached_property
    def _units(self) -> DataFrame:
        spec = self._spec
        return units_of(self._rows, self._emitted, spec, self.history.axis, self.clock)

    @cached_property
    def _units_in_firings(self) -> DataFrame:
        """The units in each firing, for sessions that fire more than once."""
        refired = self._units.where(~fires_once())
        return units_in_firings(refired, self._spec).transform(computed)

    @cached_property
    def _refired(self) -> DataFrame | None:
        """The firings of sessions that fire more than once; None: there is no such session."""
        if self._units.where(~fires_once()).isEmpty():
            return None
        levels = levels_of(self._rows)
        found = fired(self._units_in_firings, self._rows, levels, self._spec)
        return in_order(found, self.history.axis, self.clock).transform(computed)

    @property
    def _firings(self) -> DataFrame:
        once = fired_once(self._units.where(fires_once()), self._spec)
        firings = in_order(once, self.history.axis, self.clock)
        return firings if self._refired is None else firings.unionByName(self._refired)
