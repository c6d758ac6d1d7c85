"""rebuild into staging: windows, late records, firings and the calendar of a scope."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.axis import Axis
from strandline.engine.quarantine import identity
from strandline.engine.rebuild import Rebuild, close
from strandline.model.books import Book
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.context import Context
from strandline.pipeline.observing import Observation
from strandline.pipeline.planning import Plan
from strandline.quality.completeness import completeness, count_gaps, list_gaps

Accepted = Mapping[int, tuple[int, int]]
"""By slot: its accepted records, and those of them that fired the window at once."""

_UTC = pa.timestamp("us", tz="UTC")
COMPLETENESS_SCHEMA = pa.schema(
    [
        ("slot_date", pa.date32()),
        ("slot_start", _UTC),
        ("slot_end", _UTC),
        ("state", pa.string()),
        ("gap", pa.bool_()),
        ("fired_at", _UTC),
        ("closed_at", _UTC),
        ("on_time", pa.int64()),
        ("late_accepted", pa.int64()),
        ("late", pa.int64()),
        ("no_window", pa.int64()),
        ("missed_pairs", pa.int64()),
        ("channels_heard", pa.list_(pa.string())),
        ("run_id", pa.string()),
        ("spec_fingerprint", pa.string()),
    ]
)


@dataclass(frozen=True)
class Staged:
    """What a run has staged, and what its books and its audit need to know of it.

    Attributes:
        windows: the windows that have fired.
        quarantine: the late records.
        completeness: the calendar; `calendar` is the range's part of it on the driver.
        firings: the firing history, where the pipeline keeps one.
        oldest_ms: the start of the oldest slot that anything staged belongs to.
        slots_expected: the slots of the range that have a record, by the timeline.
        accepted: the accepted records of the range.
        late: the late records, those of older windows too: else the share of a scheduled run, whose
            range holds only windows that were not final yet, would leave out most of them.
        gaps: the gaps of the range, listed or not.
    """

    windows: DataFrame
    quarantine: DataFrame
    completeness: DataFrame
    firings: DataFrame | None
    calendar: pd.DataFrame
    books: list[Book]
    oldest_ms: int
    slots_expected: int
    accepted: int
    late: int
    gaps: int


def rebuild_into_staging(ctx: Context, seen: Observation, plan: Plan, axis: Axis) -> Staged:
    """Close the slots, stage windows and late records side by side, count what became of all."""
    records = ctx.landing.records(axis, sorted(seen.history.well_formed["arrival_date"].unique()))
    columns = ctx.landing.columns
    rebuild = close(ctx.spark, records, columns, seen.history, plan.clock, plan.scope)
    stamp = F.lit(ctx.run_id)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(ctx.staging.write, part, rows.withColumn("run_id", stamp))
            for part, rows in (("windows", rebuild.windows()), ("quarantine", rebuild.late()))
        ]
        windows, quarantine = (job.result() for job in jobs)
    firings = None
    if ctx.spec.firings:
        history = rebuild.firings(identity(ctx.spec, columns)).withColumn("run_id", stamp)
        firings = ctx.staging.write("firings", history)
    accepted, late = accepted_by_slot(windows), _late_by_slot(quarantine)
    within = plan.scope.windows
    rows = _calendar(ctx, rebuild, accepted, late)
    table = pa.Table.from_pandas(rows, schema=COMPLETENESS_SCHEMA, preserve_index=False)
    start = pd.Timestamp(within.start_ms, unit="ms", tz="UTC") if len(rows) else None
    return Staged(
        windows=fired(windows),
        quarantine=quarantine,
        completeness=ctx.staging.write("completeness", ctx.spark.createDataFrame(table)),
        firings=firings,
        calendar=rows if start is None else rows[rows["slot_start"] >= start],
        books=_books(rebuild, accepted, late),
        oldest_ms=min([within.start_ms, *rebuild.older["slot_ms"].tolist()]),
        slots_expected=len(rebuild.slots),
        accepted=sum(count for count, _ in accepted.values()),
        late=sum(late.values()),
        gaps=count_gaps(seen.history, within),
    )


def fired(windows: DataFrame) -> DataFrame:
    """The staged windows that Flink has emitted; the open ones were staged to be counted."""
    return windows.where(F.col("state") != "open")


def accepted_by_slot(windows: DataFrame) -> Accepted:
    """The accepted records of each slot, over all keys."""
    counted = windows.groupBy(F.unix_millis("window_start")).agg(
        F.sum("records"), F.sum("late_accepted")
    )
    return {int(row[0]): (int(row[1]), int(row[2])) for row in counted.collect()}


def _late_by_slot(quarantine: DataFrame) -> Mapping[int, int]:
    counted = quarantine.groupBy(F.unix_millis("slot_start")).count()
    return {int(row[0]): int(row[1]) for row in counted.collect()}


def _calendar(
    ctx: Context, rebuild: Rebuild, accepted: Accepted, late: Mapping[int, int]
) -> pd.DataFrame:
    """The calendar of the range, and of the older slots that late records have touched."""
    older, within = rebuild.older, rebuild.scope.windows
    listed = within
    if len(older):
        accepted = {**_published_accepted(ctx, older), **accepted}
        totals = zip(older["slot_ms"].tolist(), older["records"].tolist(), strict=True)
        # of older slots the records of earlier runs count too: what they do not hold, is late
        late = {**late, **{s: int(n) - accepted.get(s, (0, 0))[0] for s, n in totals}}
        listed = TimeRange(int(older["slot_ms"].min()), within.end_ms)
    if ctx.spec.quality.gaps == "allow":
        listed = TimeRange(EVERYTHING.start_ms, EVERYTHING.start_ms)
    return completeness(
        pd.concat([older, rebuild.slots], ignore_index=True),
        list_gaps(rebuild.history, listed, rebuild.clock),
        accepted=accepted,
        late=late,
        spec_fingerprint=ctx.spec.spec_fingerprint,
        run_id=ctx.run_id,
    )


def _published_accepted(ctx: Context, older: pd.DataFrame) -> Accepted:
    """What the windows of older slots hold: they were final, and published, before this run."""
    if ctx.store.table("windows") is None:
        return {}
    there = ctx.spark.read.format("delta").load(ctx.store.uri("windows"))
    least = F.timestamp_millis(F.lit(int(older["slot_ms"].min())))
    last = F.timestamp_millis(F.lit(int(older["slot_ms"].max())))
    day = F.col("window_date").between(least.cast("date"), last.cast("date"))
    counted = accepted_by_slot(there.where(day & F.col("window_start").between(least, last)))
    wanted = set(older["slot_ms"].tolist())
    return {start: pair for start, pair in counted.items() if start in wanted}


def _books(rebuild: Rebuild, accepted: Accepted, late: Mapping[int, int]) -> list[Book]:
    within = rebuild.scope.windows
    inside = sum(count for start, count in late.items() if start in within)
    parts = {
        "accepted": sum(count for count, _ in accepted.values()),
        "late": inside,
        "no_window": 0,
    }
    books = [Book("range", int(rebuild.slots["records"].sum()), parts)]
    since = rebuild.scope.older_since_ms
    if since is not None:
        arrived = rebuild.history.older_records(within.start_ms, since)
        books.append(
            Book("older windows", arrived, {"late": sum(late.values()) - inside, "no_window": 0})
        )
    return books
