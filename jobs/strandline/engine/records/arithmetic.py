"""Instants, lateness and windows as Spark columns: the column forms of `Axis`, `Grid`, `Ticks`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import first_of_cases, long
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS, TICK_RANK, Axis, Numbering
from strandline.engine.position.clock import Closure
from strandline.engine.position.grid import Grid
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Candidate, Ticks
from strandline.spec.pipeline import PipelineSpec

_PAST_ALL_MS = 2**54
"""More ms than lie between 1970 and any Spark timestamp, before or after it."""


def floor(ts: Column, step_ms: int, offset_ms: int) -> Column:
    """The start of the grid step that contains a time, in ms."""
    # of a positive number `%` equals pmod, and is quicker
    ahead_ms = step_ms * (_PAST_ALL_MS // step_ms + 1) - offset_ms
    return ts - (ts + ahead_ms) % step_ms


def lies_in(ms: Column, within: TimeRange) -> Column:
    """Whether a time lies in a range; the column form of `TimeRange`'s `in`."""
    return (ms >= within.start_ms) & (ms < within.end_ms)


def cleanup_time(end: Column, *, allowed_lateness_ms: int) -> Column:
    """The watermark at which the state of a window with an end is removed, in 64 bits."""
    return end - 1 + F.lit(allowed_lateness_ms)


def is_window_fired() -> Column:
    """Whether the window of an assigned record has fired before the record arrives.

    If the window accepts the record, it fires again at once. An assigned record has the columns
    INSTANT, and FIRE_FROM and CLOSE_FROM of one window.
    """
    return F.col(c.INSTANT) >= F.col(c.FIRE_FROM)


def is_window_late(close_from: str = c.CLOSE_FROM) -> Column:
    """Whether the window of an assigned record has been dropped before the record arrives.

    Flink: `WindowOperator#isWindowLate`; a record reaches its window before the watermark that it
    causes, so the record that closes a window is accepted.

    `close_from`: the column with the first instant whose records are late for the window.
    """
    return F.col(c.INSTANT) >= F.col(close_from)


def slot_of(ts: Column, grid: Grid) -> Column:
    """The start of the newest window of an event time, in ms."""
    return floor(ts, grid.span_ms, grid.offset_ms)


def slot_of_session(grid: Grid, closures: Sequence[Closure]) -> dict[str, Column]:
    """The columns of the slot of a record, as if it were a session by itself.

    ENDED_AT: when the input for its event time ended, by the last of some closures; null: not yet.
    """
    ended = ((lies_in(F.col(c.TS), one.windows), long(one.at_ms)) for one in reversed(closures))
    return {
        c.SLOT: slot_of(F.col(c.TS), grid),
        c.SLOT_END: F.col(c.END),
        c.MISSED: long(1),
        c.ENDED_AT: first_of_cases(ended, long(None)),
    }


def pane_of(grid: Grid) -> Column:
    """The start of a record's pane, in ms; the column form of `Grid.panes_of`."""
    step = F.col(c.STEP)
    if not grid.cut_ms:
        return step
    return step + F.when(F.col(c.TS) - step >= grid.cut_ms, grid.cut_ms).otherwise(0)


def windows_fit(grid: Grid) -> Column:
    """Whether all windows of a record lie in the years 0001 to 9999.

    See `Grid.windows_of_panes`.
    """
    step, size = F.col(c.STEP), grid.size_ms
    if grid.cumulative:
        start = slot_of(F.col(c.TS), grid)
        return (start >= LEAST_INSTANT_MS) & (start <= END_OF_INSTANTS_MS - 1 - size)
    lets_go = F.col(c.PANE) > step if grid.cut_ms else F.lit(True)
    oldest = step - size // grid.step_ms * grid.step_ms + F.when(lets_go, grid.step_ms).otherwise(0)
    inside = (oldest >= LEAST_INSTANT_MS) & (step <= END_OF_INSTANTS_MS - 1 - size)
    return inside | (oldest > step)


def midnight_ms(day: Column) -> Column:
    """The first millisecond of a date, UTC, by plain arithmetic: a cast would use a time zone."""
    return F.unix_date(day).cast("bigint") * DAY_MS


def date_of(instant_ms: Column) -> Column:
    """The date of an instant in ms, by plain arithmetic."""
    return F.date_from_unix_date(F.floor(instant_ms / DAY_MS).cast("int"))


def instant_of(numbering: Numbering, arrival: Column, sequence: Column) -> Column:
    """The instant of a record; the column form of `Numbering.instant`."""
    if not numbering.sequenced:
        return arrival
    return first_of(numbering, arrival) + (
        sequence.cast("decimal(20,0)") - F.lit(Decimal(MIN_WATERMARK))
    )


def first_of(numbering: Numbering, arrival: Column) -> Column:
    """The first instant of an arrival millisecond; the column form of `Numbering.first_of`."""
    if not numbering.sequenced:
        return arrival
    return arrival.cast("decimal(20,0)") * F.lit(Decimal(numbering.scale))


def event_ms(numbering: Numbering, seen_from: Column, rank: Column) -> Column:
    """The millisecond of an event of the watermark; the column form of `Numbering.event_ms`."""
    if numbering.interval_ms is not None:
        return seen_from
    on_tick = F.coalesce(rank >= TICK_RANK, F.lit(False))
    happened = F.when(on_tick, seen_from).otherwise(seen_from - 1)
    if not numbering.sequenced:
        return happened
    scale = F.lit(Decimal(numbering.scale))
    return F.call_function("div", happened - F.pmod(happened, scale), scale)


def happened_before(
    numbering: Numbering, instant: Column, seen_from: Column, rank: Column
) -> Column:
    """The column form of `Numbering.happened_before`; `instant` is the first of a millisecond."""
    if numbering.interval_ms is not None:
        return seen_from < instant
    on_tick = F.coalesce(rank >= TICK_RANK, F.lit(False))
    return (seen_from < instant) | ((seen_from == instant) & ~on_tick)


def tick_after(arrival: Column, ticks: Ticks) -> Column:
    """The first tick after an arrival, from which a record counts; column form of `Ticks.after`."""
    # `%` is quicker than pmod, and before the start both give no tick after the first one
    tick = arrival + ticks.interval_ms - (arrival - ticks.start_ms) % ticks.interval_ms
    return F.greatest(tick, F.lit(ticks.start_ms + ticks.interval_ms))


def candidate_of(rule: Candidate, ts: Column) -> Column:
    """The watermark that an event time offers; the column form of `Candidate.of`."""
    return F.greatest(ts, F.lit(MIN_WATERMARK + rule.delay_ms)) + F.lit(-rule.delay_ms)


def arrival_probe(spec: PipelineSpec) -> dict[str, Column]:
    """The columns SEEN_FROM and RANK at which a record looks up the watermark at its arrival.

    The watermark at a position is the value of the last advance at or before it, in the order of
    SEEN_FROM and RANK. A record comes after all advances at its instant. The exception is a result
    of another pipeline's windows that a watermark fired (ADVANCE is not null): it comes just before
    that watermark, since a Flink window emits its results before it forwards the watermark. The
    splits of one source advance in one step, at one rank (ALL_SPLITS).
    """
    if not advance_column(spec):
        return {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
    advance = F.col(c.ADVANCE)
    before_advance = F.when(advance == ALL_SPLITS, long(-1)).otherwise(advance - 1)
    return {
        c.SEEN_FROM: F.col(c.INSTANT) + F.when(advance.isNull(), 0).otherwise(1),
        c.RANK: F.coalesce(before_advance, long(AFTER_CHANNELS)),
    }


def probe_at(instant: int, day: date, axis: Axis, spark: SparkSession) -> DataFrame:
    """One row with the position after all advances at an instant of `axis`, on an arrival day."""
    return spark.range(1).select(
        F.lit(day).alias(c.ARRIVAL_DAY),
        F.lit(axis.literal(instant)).alias(c.SEEN_FROM),
        F.lit(AFTER_CHANNELS).alias(c.RANK),
    )


def advance_column(spec: PipelineSpec) -> list[str]:
    """The column ADVANCE, for a pipeline over results; else none."""
    return [] if spec.reads_results_of is None else [c.ADVANCE]
