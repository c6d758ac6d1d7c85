"""The steps of a rebuild of windows on a grid: assign → split by lateness → count → fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import Partial, parts_of
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, long, named
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import floor, is_window_fired, is_window_late
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.result_rows import window_rows
from strandline.engine.scope import Rebuild
from strandline.engine.windows.assign import (
    in_each_window,
    in_own_window,
    is_kept_elsewhere,
    newest_window_table,
    pane_table,
    refused,
    window_table,
)
from strandline.engine.windows.firings import contents_of_firings, firings
from strandline.model.intervals import day_of, midnight_of
from strandline.spec.pipeline import PipelineSpec

_ACCEPTED = "_strandline_accepted"
_BLOCK = "_strandline_block_ms"
"""The first id of a block of windows, which are counted in one partition."""
_BLOCK_IN_SIZES = 8
"""The length of a block in window sizes: so few panes lie in two blocks, and blocks are many."""


@dataclass(frozen=True)
class GridRebuild(Rebuild):
    """The rebuild of windows on a grid, under the default trigger."""

    def windows(self) -> DataFrame:
        """A row for each (key, window) with a record, also if it has not fired (`open`).

        A fired window contains all its accepted records, as each later record has fired it again.
        """
        filled = self._counted.where(F.col("records") > 0)
        on_time = F.col("records") > F.col("late_accepted")
        fired_at = F.greatest(F.col(c.FIRE_AT), F.when(~on_time, F.col(c.FIRST_ARRIVAL)))
        number = F.col("late_accepted") + on_time.cast("bigint")
        rows = filled.join(F.broadcast(self._windows), c.WINDOW).withColumn("firings", number)
        return window_rows(rows, (c.SLOT, c.SLOT_END), fired_at, F.col(c.CLOSE_AT), self._spec)

    def in_state(self) -> DataFrame:
        """The windows that have not closed, with the aggregates of the records in state."""
        return self.windows().where(F.col("state") != "closed")

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: each window is a slot."""
        counts = {
            "records": "records",
            "late_accepted": "late_accepted",
            c.IN_NEWEST_WINDOW: "in_newest",
            c.MISSED_PAIRS: "missed_pairs",
        }
        sums = (F.sum(name).alias(alias) for name, alias in counts.items())
        return self._counted.groupBy(F.col(c.WINDOW).alias(c.SLOT)).agg(*sums)

    @cached_property
    def _counted(self) -> DataFrame:
        """The contents and record counts of every window of every key, computed once."""
        spec, grid, aggregates = self._spec, self.history.grid, self._aggregates
        partials = None if grid.one_window_each else self._partials
        if partials is None:
            return computed(_count_each(self._pairs, spec, aggregates, grid))
        records, panes, windows = self._of_range(), self._panes(), self._windows
        return computed(_count_panes(records, panes, windows, spec, partials, grid))

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
        return self._pairs.where(~is_window_late())

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


def _count_each(
    assigned: DataFrame, spec: PipelineSpec, aggregates: dict[str, Column], grid: Grid
) -> DataFrame:
    """The aggregates of each window over its records, window by window.

    Refused pairs (record, window) are counted in separate rows, which have no records.
    """
    keys = keys_of(spec)
    contents = named(aggregates)
    if grid.one_window_each:
        return (
            assigned.where(~is_window_late())
            .groupBy(*keys, c.WINDOW)
            .agg(*contents, *_counts())
            .withColumns({c.IN_NEWEST_WINDOW: F.col("records"), c.MISSED_PAIRS: long(0)})
        )
    counted = (
        assigned.withColumn(_ACCEPTED, ~is_window_late())
        .where(~is_window_late() | is_kept_elsewhere())
        .groupBy(*keys, c.WINDOW, _ACCEPTED)
        .agg(
            *contents,
            *_counts(),
            F.count_if(F.col(c.WINDOW) == F.col(c.NEWEST_WINDOW)).alias(c.IN_NEWEST_WINDOW),
        )
    )
    return _accepted_or_missed(counted)


def _count_panes(
    records: DataFrame,
    panes: DataFrame,
    windows: DataFrame,
    spec: PipelineSpec,
    aggregates: dict[str, Partial],
    grid: Grid,
) -> DataFrame:
    """The aggregates of each window, from partial aggregates of panes.

    Records of a key and a pane that are on time for all windows of the pane are one partial
    aggregate. The few others are combined by instant, since each window accepts either all or none
    of one instant. The partial aggregates are then assigned to the windows one by one.
    """
    keys = keys_of(spec)
    sure = F.col(c.INSTANT) < F.col(c.SURE_BEFORE)
    grouped = (
        records.join(F.broadcast(panes.select(c.PANE, c.SURE_BEFORE)), c.PANE)
        .withColumn(c.INSTANT, F.when(~sure, F.col(c.INSTANT)))
        .groupBy(*keys, c.PANE, c.INSTANT)
        .agg(
            *parts_of(aggregates),
            F.count(F.lit(1)).alias("records"),
            F.min(c.ARRIVAL).alias(c.FIRST_ARRIVAL),
        )
    )
    assigned = (
        _in_windows(grouped.join(F.broadcast(panes), c.PANE), keys, grid)
        .join(F.broadcast(windows.select(c.WINDOW, c.FIRE_FROM, c.CLOSE_FROM)), c.WINDOW)
        .withColumn(_ACCEPTED, F.coalesce(~is_window_late(), F.lit(True)))
        .where(F.col(_ACCEPTED) | is_kept_elsewhere())
    )
    counted = assigned.groupBy(*keys, _BLOCK, c.WINDOW, _ACCEPTED).agg(
        *(partial.whole.alias(name) for name, partial in aggregates.items()),
        F.sum("records").alias("records"),
        _records_where(is_window_fired()).alias("late_accepted"),
        F.min(c.FIRST_ARRIVAL).alias(c.FIRST_ARRIVAL),
        _records_where(F.col(c.WINDOW) == F.col(c.NEWEST_WINDOW)).alias(c.IN_NEWEST_WINDOW),
    )
    return _accepted_or_missed(counted)


def _in_windows(grouped: DataFrame, keys: list[str], grid: Grid) -> DataFrame:
    """Each row once for each WINDOW from OLDEST to NEWEST, partitioned by key and block.

    All rows of a window are in one partition. The rows are exchanged before they are multiplied by
    their windows, which makes sliding windows cheap.
    """
    step, length_ms = F.lit(grid.step_ms), _BLOCK_IN_SIZES * grid.most_windows * grid.step_ms
    first, last = (floor(F.col(name), length_ms, grid.offset_ms) for name in (c.OLDEST, c.NEWEST))
    in_blocks = grouped.withColumn(
        _BLOCK, F.explode(F.sequence(first, last, F.lit(length_ms)))
    ).repartition(*keys, _BLOCK)
    oldest = F.greatest(c.OLDEST, _BLOCK)
    newest = F.least(F.col(c.NEWEST), F.col(_BLOCK) + (length_ms - grid.step_ms))
    return in_blocks.withColumn(c.WINDOW, F.explode(F.sequence(oldest, newest, step)))


def _records_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("records")).otherwise(F.lit(0)))


def _counts() -> list[Column]:
    return [
        F.count(F.lit(1)).alias("records"),
        F.count_if(is_window_fired()).alias("late_accepted"),
        F.min(c.ARRIVAL).alias(c.FIRST_ARRIVAL),
    ]


def _accepted_or_missed(counted: DataFrame) -> DataFrame:
    """The counts, with rows of refused pairs (record, window) reduced to the number of pairs."""
    accepted = F.col(_ACCEPTED)
    nothing = long(0)
    return counted.withColumn(
        c.MISSED_PAIRS, F.when(accepted, nothing).otherwise(F.col("records"))
    ).withColumns(
        {
            name: F.when(accepted, F.col(name)).otherwise(nothing)
            for name in ("records", "late_accepted", c.IN_NEWEST_WINDOW)
        }
    )
