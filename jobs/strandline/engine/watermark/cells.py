"""Observes the arrivals of some days: counts records and offered watermarks in one aggregation."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long, named
from strandline.engine.position.axis import LEAST_SEQUENCE, Axis
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import candidate_of, date_of, floor, midnight_ms, slot_of
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.timeline import CELL_COLUMNS
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, HOUR_MS, LEAST_INSTANT_MS
from strandline.spec.pipeline import PipelineSpec

_SUBJECT = "_strandline_subject"
"""The channel of a well-formed record, or the reason why a row is malformed."""
_PART = "_strandline_part"
"""A number for a part of a step and `_pending`: `2 * start + pending`; null for malformed rows."""
_FIRST = "_strandline_first_instant"


def observe(
    records: DataFrame, spec: PipelineSpec, axis: Axis, *, with_activity: bool = True
) -> DataFrame:
    """The cells of some arrivals: counts, first position, least and largest times of each.

    A cell is a group of records of one arrival day, channel and event date that have the same
    windows and whose watermarks reach the same thresholds. So the cells suffice to find exactly
    when each threshold is reached, and the number of records of each slot. Cells of malformed rows
    have only a day and a reason.

    Args:
        records: as `read_records` reads them.
        spec: the pipeline.
        axis: the axis of instants.
        with_activity: whether to compute `last_arrival_ms` and `arrival_hours`; else they are null.

    Returns:
        The cells; columns `CELL_COLUMNS`.
    """
    grid = Grid.of(spec)
    well_formed = F.col(c.REASON).isNull()
    keys = _keys(spec, axis, grid)
    measured = _measured(spec)
    last_arrival, hours = long(None), long(None)
    if with_activity:
        last_arrival = F.when(lies_in_its_day(), F.col(c.ARRIVAL))
        hours = F.when(well_formed, _hour_of_arrival())
    counted = (
        records.select(
            *named(keys),
            *(
                F.when(well_formed, F.col(name)).alias(name)
                for name in dict.fromkeys(name for _, name in measured.values())
            ),
            last_arrival.alias("last_arrival_ms"),
            hours.alias("arrival_hours"),
        )
        .groupBy(*keys)
        .agg(
            F.count(F.lit(1)).alias("records"),
            *(of(name).alias(found) for found, (of, name) in measured.items()),
            F.max("last_arrival_ms").alias("last_arrival_ms"),
            F.bit_or("arrival_hours").alias("arrival_hours"),
        )
    )
    return counted.withColumns(_shared(spec, axis, grid)).select(*CELL_COLUMNS)


def _keys(spec: PipelineSpec, axis: Axis, grid: Grid) -> dict[str, Column]:
    """The grouping keys: few and narrow, since hashing them takes most of the time."""
    well_formed = F.col(c.REASON).isNull()
    keys = {
        "arrival_date": F.col(c.ARRIVAL_DAY),
        _SUBJECT: F.coalesce(c.REASON, c.CHANNEL),
        _PART: F.when(well_formed, _part(spec, grid) * 2 + _pending(axis).cast("int")),
    }
    if grid.crosses_midnights:
        keys["event_date"] = F.when(well_formed, date_of(F.col(c.TS)))
    if spec.watermark.candidate is None:
        keys["threshold_ms"] = F.when(well_formed, largest_threshold(F.col(c.CANDIDATE), grid))
    return keys


def _hour_of_arrival() -> Column:
    """The bit of the hour of the day, UTC, at which a record of its day arrived."""
    in_day = F.col(c.ARRIVAL) - midnight_ms(F.col(c.ARRIVAL_DAY))
    hour = F.call_function("div", in_day, F.lit(HOUR_MS)).cast("int")
    return F.call_function("shiftleft", long(1), hour)


def _measured(spec: PipelineSpec) -> dict[str, tuple[Callable[[str], Column], str]]:
    """The aggregates of a group by column, each as a function and the records' column."""
    measured: dict[str, tuple[Callable[[str], Column], str]] = {
        "least_ts_ms": (F.min, c.TS),
        "largest_ts_ms": (F.max, c.TS),
        _FIRST: (F.min, c.INSTANT),
    }
    if _has_own_gaps(spec):
        measured["largest_end_ms"] = (F.max, c.END)
    if spec.watermark.candidate is None:
        measured["largest_candidate_ms"] = (F.max, c.CANDIDATE)
    return measured


def _shared(spec: PipelineSpec, axis: Axis, grid: Grid) -> dict[str, Column]:
    """The columns that have one value for all records of a cell, computed once for the cell."""
    is_cell, least, rule = F.col(_PART).isNotNull(), F.col("least_ts_ms"), spec.watermark.candidate
    shared = {
        "reason": F.when(~is_cell, F.col(_SUBJECT)),
        "channel": F.when(is_cell, F.col(_SUBJECT)),
        "event_date": date_of(least),
        "slot_ms": slot_of(least, grid),
        "pending": F.pmod(_PART, F.lit(2)) == 1,
    }
    shared["first_arrival_ms"], shared["first_sequence"] = _parts(F.col(_FIRST), axis)
    if not _has_own_gaps(spec):
        shared["largest_end_ms"] = long(None)
    if rule is not None:
        shared["threshold_ms"] = largest_threshold(candidate_of(rule, least), grid)
        largest = candidate_of(rule, F.col("largest_ts_ms"))
        shared["largest_candidate_ms"] = F.when(is_cell, largest)
    return shared


def _parts(instant: Column, axis: Axis) -> tuple[Column, Column]:
    """The arrival and the sequence of an instant; the sequence is null if instants have none."""
    if not axis.sequenced:
        return instant.cast("bigint"), long(None)
    scale, last = F.lit(Decimal(axis.scale)), F.lit(Decimal(axis.first_of(END_OF_INSTANTS_MS)))
    rest = F.pmod(instant, scale)
    sequence = rest + F.lit(Decimal(LEAST_SEQUENCE))
    # a result of the end of the input comes after all dates, where a division may overflow
    begin = F.when(instant < last, instant - rest)
    arrival = F.call_function("div", begin, scale).cast("bigint")
    at_end = F.lit(axis.arrival_of(axis.end))
    return F.when(instant >= last, at_end).otherwise(arrival), sequence.cast("bigint")


def _has_own_gaps(spec: PipelineSpec) -> bool:
    """Whether each record has a session gap of its own."""
    return spec.window.gap_of_record is not None


def _part(spec: PipelineSpec, grid: Grid) -> Column:
    """The start of the part of its step that a record lies in: see `Grid.parts`."""
    begin, rule = F.col(c.STEP), spec.watermark.candidate
    if grid.threshold_step_ms < grid.step_ms:
        begin = F.col(c.TS) - F.pmod(F.col(c.TS) - begin, F.lit(grid.threshold_step_ms))
    into = F.col(c.TS) - begin
    cuts = grid.parts(None if rule is None else rule.delay_ms)
    start = reduce(lambda rest, cut: F.when(into >= cut, cut).otherwise(rest), cuts, F.lit(0))
    return begin + start


def largest_threshold(candidate: Column, grid: Grid) -> Column:
    """The largest threshold of the grid that a watermark reaches; null: it reaches none."""
    at_least = F.greatest(candidate, F.lit(LEAST_INSTANT_MS - 1))  # so that nothing overflows
    reached = [floor(at_least, grid.threshold_step_ms, residue) for residue in grid.residues]
    largest = F.greatest(*reached) if len(reached) > 1 else reached[0]
    # tests the threshold, and not the candidate, so that all records of a cell agree
    return F.when(largest >= LEAST_INSTANT_MS, largest)


def _pending(axis: Axis) -> Column:
    """Whether the first tick after a record is at or after the midnight that ends its day."""
    if not axis.interval_ms:
        return F.lit(axis.interval_ms == 0)
    midnight = midnight_ms(F.col(c.ARRIVAL_DAY)) + DAY_MS
    before = midnight - 1 - axis.start_ms
    tick = midnight - 1 - F.pmod(before, F.lit(axis.interval_ms))
    shown = (tick > axis.start_ms) & (F.col(c.ARRIVAL) < tick)
    # no tick is far from a midnight: nearly all records need only this comparison
    surely = midnight - axis.interval_ms
    return ~(((surely > axis.start_ms) & (F.col(c.ARRIVAL) < surely)) | shown)
