"""The published late records of some slots, by arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.lake.store.reads import dataset_of, files_started_in, holds, rows_of, started_in
from strandline.model.intervals import END_OF_INSTANTS_MS, EVERYTHING, TimeRange, instant_of
from strandline.pipeline.plan.published_rows import arrival_column, arrived, arrived_in
from strandline.pipeline.request.context import Context
from strandline.tables import QUARANTINE


@dataclass(frozen=True)
class LateRecords:
    """A query for published late records of some slots that arrived in a range, or outside of it.

    Attributes:
        within: the range of the slots' starts.
        arrived: the range of the arrivals.
        besides: ranges of slot starts to leave out.
        outside: whether to select the records that did not arrive in the range.
    """

    within: TimeRange
    arrived: TimeRange
    besides: Sequence[TimeRange] = ()
    outside: bool = False

    def rows(
        self, ctx: Context, quarantine: DeltaTable, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows, in batches; none if no record has such a slot.

        The engine reads them if only the pipeline's expression gives the arrival.

        Args:
            ctx: the run.
            quarantine: the opened table.
            columns: the columns to read; None: all.
        """
        of_slots = started_in(QUARANTINE.start, self.within)
        of_slots &= ~started_in_any(QUARANTINE.start, self.besides)
        files = files_started_in(QUARANTINE.start, self.within)
        if not holds(quarantine, of_slots, files):
            return iter(())
        arrival = arrival_column(ctx, quarantine)
        if arrival is None:
            return self._as_the_engine_reads(ctx, columns)
        inside = started_in(arrival, self.arrived)
        wanted = of_slots & (~inside if self.outside else inside)
        return rows_of(dataset_of(quarantine, files), wanted, columns)

    def _as_the_engine_reads(
        self, ctx: Context, columns: Sequence[str] | None
    ) -> Iterator[pa.Table]:
        inside = arrived_in(self.arrived.start_ms, self.arrived.end_ms)
        quarantine = ctx.store.frame(ctx.spark, QUARANTINE.name)
        inside_slots = starts_in(QUARANTINE.start, [self.within])
        of_slots = quarantine.where(inside_slots & ~starts_in(QUARANTINE.start, self.besides))
        rows = arrived(ctx, of_slots, ~inside if self.outside else inside)
        name = f"{QUARANTINE.name}_arrived_{self.within.start_ms}_{self.outside}"
        return ctx.staging.write(name, rows).rows(columns=columns)


def late_slots(ctx: Context, before_ms: int, since_ms: int) -> frozenset[int]:
    """The starts of slots before an instant with late records that arrived since another."""
    table = ctx.store.table(QUARANTINE.name)
    if table is None:
        return frozenset()
    older = TimeRange(EVERYTHING.start_ms, before_ms)
    late = LateRecords(older, TimeRange(since_ms, END_OF_INSTANTS_MS))
    starts = (rows[QUARANTINE.start] for rows in late.rows(ctx, table, [QUARANTINE.start]))
    return frozenset(instant_of(at) for some in starts for at in pc.unique(some).to_pylist())


def started_in_any(start: str, ranges: Sequence[TimeRange]) -> ds.Expression:
    """The rows of a published table whose window or slot starts in any of some few ranges."""
    return reduce(or_, (started_in(start, one) for one in ranges), ds.scalar(False))


def starts_in(start: str, ranges: Sequence[TimeRange]) -> Column:
    """`started_in_any` for Spark."""
    start_ms = F.unix_millis(start)
    inside = (start_ms.between(one.start_ms, one.end_ms - 1) for one in ranges)
    return reduce(Column.__or__, inside, F.lit(False))
