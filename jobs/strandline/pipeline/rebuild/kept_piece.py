"""Stages late arrivals for windows that stay as a run with overridden settings published them.

That is, the late records, and the slots that they belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.slots import Calendar, with_windows
from strandline.engine.history.days_to_read import ranges_around
from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Clock
from strandline.engine.rebuild import late_for_kept
from strandline.engine.timeline import CellQuery
from strandline.lake.publish.staging import Part
from strandline.model.books import Book
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    TimeRange,
    datetime_of,
    midnight_before,
    midnight_of,
)
from strandline.pipeline.observe.observation import known_rows
from strandline.pipeline.plan.kept import Kept
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.rebuild.kept_leaving import (
    counts_of,
    landed_since,
    numbered_after,
    published_late,
    with_fewer,
    with_identity,
    without_row,
)
from strandline.pipeline.rebuild.piece import Piece, stage_calendar
from strandline.pipeline.rebuild.slots import (
    REASONS,
    late_in,
    refused_by_newest,
    refused_in_all,
    with_published_values,
)
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import completeness
from strandline.tables import QUARANTINE


def stage_kept(ctx: Context, history: History, plan: Plan, kept: Kept, *, number: int) -> Piece:
    """Stage the late arrivals for windows that stay, as one more piece."""
    clock = history.crossings.without_dropped_end(plan.clock)
    arrivals = _Arrivals(ctx, history, kept, clock)
    staged, books, leaving = dict[str, Part](), list[Book](), None
    if arrivals.published is not None:
        leaves = without_row(arrivals.published, *arrivals.then_and_now)
        leaving = ctx.staging.write(f"{QUARANTINE.name}_leaving_{number}", leaves)
    if arrivals.touched:
        late = ctx.staging.write(QUARANTINE.name, arrivals.late(leaving), piece=number)
        staged[QUARANTINE.name] = late
        books = [arrivals.book(late)]
    rows = _calendar(ctx, arrivals, staged.get(QUARANTINE.name), leaving)
    staged["completeness"] = stage_calendar(ctx, rows, number)
    within = kept.windows.shared_with(plan.scope.windows)
    return Piece(
        staged=staged,
        calendar=rows,
        books=books,
        filled=frozenset() if within is None else _filled(history, clock, within),
        touched=arrivals.touched,
        leaving=leaving,
    )


@dataclass(frozen=True)
class _Arrivals:
    """Late arrivals for kept windows that no earlier run has evaluated.

    They have arrived since the last run that did, or have landed since then on earlier arrival
    days.
    """

    ctx: Context
    history: History
    kept: Kept
    clock: Clock

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells of their days whose records are counted in these windows."""
        columns = ("arrival_date", "slot_ms", "least_ts_ms")
        cells = self.history.timeline.cells(
            CellQuery(self._days_asked, slots=self.kept.windows, columns=columns)
        )
        return with_windows(cells, self.history)

    @cached_property
    def touched(self) -> frozenset[int]:
        """The ids of the newest windows of these cells."""
        return frozenset(self.cells["newest_window_id"].astype("int64").tolist())

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar of these windows."""
        starts_ms = self.cells["slot_ms"].astype("int64").tolist()
        return Calendar.of(self.history, self.clock, ranges_around(starts_ms))

    @cached_property
    def slots(self) -> pd.DataFrame:
        """The slots of these windows."""
        return self.calendar.slots(self.calendar.windows["window_id"].isin(self.touched))

    def late(self, leaving: Part | None) -> DataFrame:
        """The records, as quarantine rows.

        `leaving`: the published late records that leave quarantine; None: there are none.
        """
        late = late_for_kept(
            self._landed,
            self.records,
            self._days,
            self.calendar,
            self.slots,
            self.ctx.spec.under(self.kept.by.overrides),
            self.ctx.landing.source_columns,
        )
        if self.published is not None and leaving is not None:
            late = numbered_after(late, self.published, leaving.frame())
        return late.withColumn("run_id", F.lit(self.ctx.run_id))

    def book(self, quarantine: Part) -> Book:
        """The book of the records, with the staged quarantine rows of these windows."""
        staged = late_in(quarantine, since_ms=None)
        parts = Counter[str](late=0)
        for (newest, reason), rows in refused_by_newest(staged, self.history.grid).items():
            if newest in self.touched:
                parts[reason] += rows
        return Book(self.kept.name, self.records.count(), parts)

    def refused(self, quarantine: Part) -> Counter[tuple[int, str]]:
        """The records that these windows have refused, in this run or before."""
        again = TimeRange(self._since_ms, self.clock.horizon_ms)
        return refused_in_all(self.ctx, again, self.history.grid, self.slots, quarantine)

    @property
    def _since_ms(self) -> int:
        since_ms = self.kept.since_ms
        return END_OF_INSTANTS_MS if since_ms is None else since_ms

    @property
    def _days(self) -> list[date]:
        """The arrival days that may have such records."""
        return sorted(self.cells["arrival_date"].unique())

    @property
    def _days_asked(self) -> list[date]:
        kept, days = self.kept, self.history.days
        if kept.since_ms is None:
            return []
        has_same_rows = kept.before is None
        return days.since(midnight_before(kept.since_ms) if has_same_rows else kept.first_ms)

    @cached_property
    def _landed(self) -> DataFrame:
        """The landing as `read_records` reads it."""
        return self.ctx.records(self.history)

    @cached_property
    def records(self) -> DataFrame:
        """The records themselves."""
        since = F.col(c.ARRIVAL) >= self._since_ms
        if self.kept.before is None:
            return self._counted.where(since)
        then, now = self.then_and_now
        return self._counted.where(since).unionByName(landed_since(now, then))

    @cached_property
    def published(self) -> DataFrame | None:
        """See `published_late`."""
        return published_late(self.ctx, self.kept)

    @cached_property
    def then_and_now(self) -> tuple[DataFrame, DataFrame]:
        """The records that earlier runs evaluated, with their identity: as landed then, and now."""
        landing, before, since_ms = self.ctx.landing, self.kept.before, self._since_ms
        then = landing if before is None else landing.by_log(before)
        evaluated_again = TimeRange(self.kept.first_ms, since_ms)
        days = [day for day in then.every_day if day and midnight_of(day) in evaluated_again]
        known = known_rows(then, days, since_ms).where(F.col(c.REASON).isNull())
        evaluated = F.col(c.ARRIVAL) < since_ms
        return (
            with_identity(known.where(self._counts & evaluated), self.ctx.spec, then),
            with_identity(self._counted.where(evaluated), self.ctx.spec, landing),
        )

    @cached_property
    def _counted(self) -> DataFrame:
        """The known records of these windows and days."""
        known = self.history.known(self._landed, self.clock.horizon_ms, self._days)
        return known.where(self._counts)

    @property
    def _counts(self) -> Column:
        """Whether a record is counted in these windows."""
        return kind_of(self.ctx.spec).counts_in(self.kept.windows)


def _filled(history: History, clock: Clock, within: TimeRange) -> frozenset[int]:
    """The ids of the windows of a range that have a record."""
    ids = Calendar.of(history, clock, [within]).starting_in(within)["window_id"]
    return frozenset(ids.astype("int64").tolist())


def _calendar(
    ctx: Context, arrivals: _Arrivals, late: Part | None, leaving: Part | None
) -> pd.DataFrame:
    """The slots that stay as published, with their new numbers of refused records.

    A slot without any record left is a gap.

    Args:
        ctx: the run.
        arrivals: the late arrivals.
        late: their staged quarantine rows; None: there are none.
        leaving: published late records that leave quarantine; None: there are none.
    """
    refused, others = Counter[tuple[int, str]](), dict[tuple[int, str], int]()
    if late is not None:
        refused = arrivals.refused(late)
    grid = arrivals.history.grid
    for (start_ms, reason), count in ({} if leaving is None else counts_of(leaving, late)).items():
        newest = grid.newest_ids(start_ms)
        if newest in arrivals.touched:
            refused[newest, reason] -= count
        else:
            others[start_ms, reason] = count
    rows = _slots_that_stay(ctx, arrivals.kept, arrivals.slots, refused)
    every = pd.concat([rows, with_fewer(ctx, others, rows)], ignore_index=True)
    counts = every[["on_time", "late_accepted", *REASONS]].sum(axis="columns")
    return every.assign(gap=every["gap"] | (counts == 0))


def _slots_that_stay(
    ctx: Context, kept: Kept, slots: pd.DataFrame, refused: Mapping[tuple[int, str], int]
) -> pd.DataFrame:
    """The slots that stay as published, with their new number of refused records.

    A slot that had no record becomes closed, as the gap was.
    """
    rules = ctx.spec.under(kept.by.overrides)
    rows = completeness(slots, rules, run_id=ctx.run_id, accepted={}, refused=refused)
    closed_at = datetime_of((kept.by.horizon_ms or 0) - 1)
    rows = rows.assign(
        state="closed",
        fired_at=rows["fired_at"].fillna(closed_at),
        closed_at=rows["closed_at"].fillna(closed_at),
    )
    return with_published_values(ctx, rows)
