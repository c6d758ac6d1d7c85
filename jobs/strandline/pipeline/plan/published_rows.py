"""Queries of the published tables that a plan and a diff need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.conditions import any_of
from strandline.engine import columns as c
from strandline.engine.frames import fields_of
from strandline.engine.kind import WindowKind, kind_of
from strandline.engine.records.days import in_days
from strandline.engine.records.duplicates import DUPLICATE, with_duplicates
from strandline.engine.records.quarantine import as_landed, quarantine_malformed, result_names
from strandline.engine.records.read import read_records
from strandline.lake.publish.staging import Part
from strandline.lake.store.days import Days, read_days, rows_by_date
from strandline.lake.store.reads import (
    columns_of,
    dataset_of,
    files_started_in,
    holds,
    rows_of,
    rows_on_days,
    started_in,
)
from strandline.lake.store.schema import arrow_schema
from strandline.lake.store.second_columns import second_columns
from strandline.lake.store.store import Store
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    EVERYTHING,
    TimeRange,
    datetime_of,
    instant_of,
)
from strandline.pipeline.request.context import Context
from strandline.tables import COMPLETENESS, INPUT, QUARANTINE

_ALL = pc.scalar(True)
_LEAVING = f"{QUARANTINE.name}_leaving"
"""The name of the staged part with quarantine rows to delete."""


def slots_in(
    store: Store, within: TimeRange, columns: Sequence[str], wanted: ds.Expression = _ALL
) -> pa.Table:
    """Some columns of the published slots that start in a range; no rows without the table.

    `wanted` is a further condition on the rows.
    """
    table, start = store.table(COMPLETENESS.name), COMPLETENESS.start
    if table is None:
        return arrow_schema({name: COMPLETENESS.columns[name] for name in columns}).empty_table()
    rows = dataset_of(table, files_started_in(start, within))
    return rows.to_table(columns=[*columns], filter=started_in(start, within) & wanted)


def first_closed_since(store: Store, kind: WindowKind, since_ms: int) -> int | None:
    """The start of the first published slot that was closed at an instant or later; None: none was.

    Records that arrived since then may have been accepted into it. Of sessions, which can extend
    over slots, also the start of the first session; it may not be closed yet.
    """
    started = {COMPLETENESS.name: COMPLETENESS.start}
    if kind.cross_slots:
        started["windows"] = "window_start"
    closed = (ds.field("state") != "closed") | (ds.field("closed_at") >= datetime_of(since_ms))
    tables = {start: store.table(name) for name, start in started.items()}
    firsts = [
        pc.min(batch[start])
        for start, table in tables.items()
        if table is not None
        for batch in dataset_of(table).to_batches(columns=[start], filter=closed)
    ]
    return min((instant_of(first.as_py()) for first in firsts if first.is_valid), default=None)


def has_slots_outside(store: Store, within: TimeRange) -> bool:
    """Whether slots with records are published that start outside a range."""
    table = store.table(COMPLETENESS.name)
    if table is None:
        return False
    outside = ~started_in("slot_start", within) & ~ds.field("gap")
    return bool(dataset_of(table).count_rows(filter=outside))


def last_slot(store: Store) -> int | None:
    """The start of the last published slot; None: there is none."""
    days = rows_by_date(store, COMPLETENESS.name)
    last = Days(max(days), max(days)) if days else None
    slots = None if last is None else read_days(store, COMPLETENESS.name, ["slot_start"], last)
    return None if slots is None else instant_of(pc.max(slots["slot_start"]).as_py())


def last_end(store: Store, within: TimeRange) -> int | None:
    """The latest end of the published windows that start in a range; None: there is none."""
    table = store.table("windows")
    if table is None:
        return None
    rows = dataset_of(table, files_started_in("window_start", within))
    batches = rows.scanner(
        columns=["window_end"], filter=started_in("window_start", within)
    ).to_batches()
    ends = [pc.max(batch["window_end"]).as_py() for batch in batches if batch.num_rows]
    return instant_of(max(ends)) if ends else None


def arrived_in(since_ms: int, horizon_ms: int) -> Column:
    """Whether a record arrived from one instant on and before another one."""
    return (F.col(c.ARRIVAL) >= since_ms) & (F.col(c.ARRIVAL) < horizon_ms)


def arrived(
    ctx: Context, quarantined: DataFrame, condition: Column, *, more: Sequence[str] = ()
) -> DataFrame:
    """The quarantined rows whose landing row, as the pipeline reads it now, meets a condition.

    Args:
        ctx: the run.
        quarantined: rows of quarantine.
        condition: on the columns of `read_records`.
        more: columns of `read_records` to keep beside the quarantined row.
    """
    table = ctx.store.table(QUARANTINE.name)
    second = {} if table is None else second_columns(table)
    found = []
    for name, one in ctx.landing.inputs.items():
        own = _of_side(quarantined, name) if name else quarantined
        rows = as_landed(own, one.frame.schema, second)
        # what the pipeline leaves out of its landing by now is not left out of what it has refused
        read = read_records(rows, one.spec.without_where)
        found.append(read.where(condition).select(*fields_of(read, c.QUARANTINED), *more))
    return reduce(DataFrame.unionByName, found)


def _of_side(quarantined: DataFrame, name: str) -> DataFrame:
    """The quarantined rows of one of two sources; rows from before there were two have none."""
    is_of_it = F.col(INPUT) == name if INPUT in quarantined.columns else F.lit(False)
    return quarantined.where(is_of_it)


def _arrival_column(ctx: Context, quarantine: DeltaTable) -> str | None:
    """The quarantine column with a row's arrival, for queries without Spark.

    None: the arrival is an expression, or the column is not an instant.
    """
    name = ctx.landing.arrival_column
    if name is None:
        return None
    columns, kept_as = columns_of(quarantine), result_names(ctx.landing.columns)[name]
    is_kept = kept_as in columns.names and kept_as not in second_columns(quarantine)
    is_instant = is_kept and columns.field(kept_as).type == pa.timestamp("us", tz="UTC")
    return kept_as if is_instant else None


def no_longer_malformed(
    ctx: Context, ranges: Sequence[TimeRange], days: Sequence[date]
) -> list[Part]:
    """Quarantine rows of some days that the present settings put into windows of some ranges.

    They were malformed under earlier settings, by their `spec_fingerprint`. At most one part.
    """
    of_other_rules = ds.field("spec_fingerprint") != ctx.spec.spec_fingerprint
    # also those whose arrival could not be read: it may lie on any day
    of_days = rows_on_days(QUARANTINE.partition, [*days, None])
    malformed = ds.field("slot_start").is_null() & of_days & of_other_rules
    table = ctx.store.table(QUARANTINE.name) if days else None
    if table is None or not holds(table, malformed, "slot_start IS NULL"):
        return []
    rows = ctx.store.frame(ctx.spark, QUARANTINE.name).where(
        in_days(QUARANTINE.partition, [*days, None])
        & F.col("slot_start").isNull()
        & (F.col("spec_fingerprint") != ctx.spec.spec_fingerprint)
    )
    counted = any_of(map(kind_of(ctx.spec).counts_in, ranges), F.lit(False))
    found = arrived(ctx, rows, F.col(c.REASON).isNull() & counted)
    if ctx.spec.source.deduplicate is None:
        return [ctx.staging.write(_LEAVING, found)]
    records = ctx.landing.records()
    landed = with_duplicates(records, ctx.spec, days, ctx.landing.every_day)
    repeated = quarantine_malformed(
        landed.where(F.col(c.REASON) == DUPLICATE), ctx.spec, ctx.landing.source_columns
    )
    others = found.join(repeated, ["record_id", QUARANTINE.partition], "left_anti")
    return [ctx.staging.write(_LEAVING, others)]


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
        arrival = _arrival_column(ctx, quarantine)
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
    """The rows of a published table whose window or slot starts in any of some ranges."""
    return any_of((started_in(start, one) for one in ranges), ds.scalar(False))


def starts_in(start: str, ranges: Sequence[TimeRange]) -> Column:
    """`started_in_any` for Spark."""
    start_ms = F.unix_millis(start)
    inside = (start_ms.between(one.start_ms, one.end_ms - 1) for one in ranges)
    return any_of(inside, F.lit(False))
