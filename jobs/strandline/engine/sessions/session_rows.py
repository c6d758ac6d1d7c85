"""The digest of the records that decide about a range of sessions: see `condense`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.ahead import Parts
from strandline.engine.position.clock import Closure
from strandline.engine.records.arithmetic import date_of, lies_in, slot_of_session
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.scope import Rebuild
from strandline.engine.sessions.condense import (
    AT,
    after_closures,
    digest,
    in_chains,
    in_rows,
    is_refused,
    numbered_by_run,
    one_row_per_run,
    row_key,
    with_watermarks,
)
from strandline.engine.sessions.reach import read_far_enough
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS, TimeRange

_FEW = 1_000_000
"""The largest number of rows that are broadcast to every task; more are shuffled."""


def broadcast_if_few(rows: DataFrame) -> DataFrame:
    """Rows for a join, already computed: a few are sent to every task."""
    return F.broadcast(rows) if rows.count() <= _FEW else rows


@dataclass(frozen=True)
class SessionRows(Rebuild, ABC):
    """The rows of a range's sessions, computed on first use, and its late records."""

    # ------------------------------------------------------------------------------------ its rows

    @property
    def needs_whole_chains(self) -> bool:
        """Whether all connected records before the range are read, too.

        Whether a session is in a range whose input has ended depends on its true start.
        """
        return any(self._may_reach(closure) for closure in self._closures)

    def _may_reach(self, closure: Closure) -> bool:
        """Whether a session that began in an ended range before this one may reach into this one.

        No session does, if all records of the ended range, and all records that arrived before its
        input ended, are more than a gap before this range.
        """
        days, start_ms = self.history.days, self.scope.windows.start_ms
        ended = closure.windows
        last_ms = max(days.last_end(ended.end_ms), days.last_end_of_arrivals(closure.at_ms))
        return ended.start_ms < start_ms <= last_ms

    def _known(self, days: Collection[date]) -> DataFrame:
        """The records of some days, without records of sessions that stay as published."""
        known = super()._known(days)
        for within in self.scope.kept:
            known = known.where(~lies_in(F.col(c.TS), within))
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
    def _closures(self) -> list[Closure]:
        """The ranges whose input has ended, up to the horizon, in order of their ends."""
        closures = (one for one in self.clock.closures if one.at_ms <= self.clock.horizon_ms)
        return sorted(closures, key=lambda closure: closure.at_ms)

    @property
    def _ended(self) -> list[Closure]:
        """The ranges whose input had ended before the horizon, in order of their ends."""
        return [closure for closure in self._closures if closure.at_ms < self.clock.horizon_ms]

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
            records = records.where(lies_in(F.col(c.TS), within))
            if not self.needs_whole_chains:
                # one with a gap of its own may reach into the range from anywhere before it
                records = records.where(F.col(c.END) >= self.scope.windows.start_ms)
        ends_ms = [closure.at_ms for closure in self._ended]
        return in_rows(self._parts_of(within).of_records(records), self.history, ends_ms)

    @cached_property
    def _at_arrival(self) -> DataFrame:
        """The rows of the digest, with the watermark at their arrival and the ROW of their run."""
        rows = with_watermarks(self._digested[1], self._emitted, self._spec)
        return numbered_by_run(after_closures(rows, self._ended), self._spec)

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of days with a look-up, or on which a session fires or closes."""
        region, history = self._region, self.history
        first_ms = self.scope.windows.start_ms
        if self.needs_whole_chains:
            first_ms = min(region.start_ms, first_ms)
        last_ms = history.days.last_end(region.end_ms) + self._spec.allowed_lateness
        asked = TimeRange(max(first_ms - 1, LEAST_INSTANT_MS), last_ms)
        days = self._probed_days | {*history.advance_days(asked, self.clock)}
        return self._emissions(sorted(days)).computed_once()

    @property
    @abstractmethod
    def _probed_days(self) -> set[date]:
        """The arrival days of the records whose watermark is looked up."""

    @cached_property
    def _rows(self) -> DataFrame:
        """The runs of rows, and the rows outside of runs, with their CHAIN."""
        return in_chains(one_row_per_run(self._at_arrival, self._spec), self._spec)

    def _records_of(self, rows: DataFrame) -> DataFrame:
        """The records of some of `_rows`, with their ROW, CHAIN and WATERMARK."""
        of_rows = self._keyed_rows.join(rows.select(c.ROW, c.CHAIN), c.ROW)
        return self._records_with(of_rows)

    @property
    def _keyed_rows(self) -> DataFrame:
        """The `row_key` of each row of the digest, with the ROW of its run and its WATERMARK."""
        return self._at_arrival.select(*row_key(self._spec), c.ROW, c.WATERMARK)

    def _records_with(self, rows: DataFrame) -> DataFrame:
        """The records of some rows of the digest, with the further columns of the rows."""
        records = self._in_rows(self._days(self._region), self._region)
        return records.join(rows, row_key(self._spec))

    # --------------------------------------------------------------------------- its late records

    @property
    @abstractmethod
    def _late_rows(self) -> DataFrame:
        """The `row_key`, START and WATERMARK of records that a replay refused as late."""

    def late(self) -> DataFrame:
        """The records that no session of the range accepted, and late arrivals for older ones."""
        late = self._late_of_range()
        if self.scope.older_since_ms is not None:
            older = self._older_records(self.scope.older_since_ms)
            late = late.unionByName(older, allowMissingColumns=True)
        placed = late.withColumns(slot_of_session(self.history.grid, self._ended))
        return quarantine_late(placed, self._spec, self.source_columns)

    def _late_of_range(self) -> DataFrame:
        """Records of the range that no session accepted, with the WATERMARK at their arrival."""
        spec, within = self._spec, self.scope.windows
        columns = (*row_key(spec), c.START, c.WATERMARK)
        replayed = self._late_rows.select(*columns)
        late = self._rows.where(is_refused()).select(*columns).unionByName(replayed)
        rows = late.where(lies_in(F.col(c.START), within)).drop(c.START)
        days, length = self._days_and_length(rows)
        rows = F.broadcast(rows) if length <= _FEW else rows
        return self._in_rows(days, within).join(rows, row_key(spec))

    def _days_and_length(self, late_rows: DataFrame) -> tuple[list[date], int]:
        """The arrival days of the records of late rows, and the number of the rows."""
        if self._ended:  # then a record ahead of the watermark can be late, on any day
            return self._days(self.scope.windows), late_rows.count()
        counts = late_rows.groupBy(date_of(F.col(AT))).count().collect()
        return [row[0] for row in counts], sum(int(row[1]) for row in counts)

    def _older_records(self, since_ms: int) -> DataFrame:
        """The records of older sessions that arrived since a midnight: all are late."""
        days = self.history.days.since(since_ms)
        records = self._known(days).where(F.col(c.TS) < self.scope.older_end_ms)
        return self._emissions(days).at_arrival(records, self._spec)
