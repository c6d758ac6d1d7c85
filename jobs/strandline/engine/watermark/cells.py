"""Observes the arrivals of some days: records and watermark candidates, in one aggregation."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import candidate_of, date_of, floor, midnight_ms, slot_of
from strandline.engine.records.days import lies_in_its_day
from strandline.model.intervals import DAY_MS, HOUR_MS, LEAST_INSTANT_MS
from strandline.spec.pipeline import PipelineSpec

CELL = (
    c.ARRIVAL_DAY,
    c.REASON,
    c.CHANNEL,
    c.EVENT_DATE,
    c.SLOT,
    c.THRESHOLD,
    c.PENDING,
)
"""The columns that identify a cell. Cells of malformed rows have only a day and a reason."""
COUNTED = (
    c.RECORDS,
    c.LEAST_TS,
    c.LARGEST_TS,
    c.LARGEST_END,
    c.LARGEST_CANDIDATE,
    c.FIRST_INSTANT,
    c.LAST_ARRIVAL,
    c.ARRIVAL_HOURS,
)
"""The counts and bounds of a cell's records."""
_SUBJECT = "_strandline_subject"
"""The channel of a well-formed record, or the reason why a row is malformed."""
_PART = "_strandline_part"
"""The start of a part of a step, doubled, and one more if pending; null for malformed rows."""


def observe(
    records: DataFrame, spec: PipelineSpec, axis: Axis, *, with_activity: bool = True
) -> DataFrame:
    """The number of records of each cell, with its first instant and its least and largest times.

    All records of a cell have one event date, the same windows, and candidates that reach the same
    thresholds. So the cells give exactly the first position at each threshold, the day map, and the
    number of records of each slot.

    Args:
        records: as `read_records` reads them.
        spec: the pipeline.
        axis: the axis of instants.
        with_activity: whether to compute LAST_ARRIVAL and ARRIVAL_HOURS; else they are null.
    """
    grid = Grid.of(spec)
    well_formed = F.col(c.REASON).isNull()
    keys = _keys(spec, axis, grid)
    measured = _measured(spec)
    last_arrival, hours = F.lit(None).cast("bigint"), F.lit(None).cast("bigint")
    if with_activity:
        last_arrival = F.when(lies_in_its_day(), F.col(c.ARRIVAL))
        hours = F.when(well_formed, _hour_of_arrival())
    counted = (
        records.select(
            *(column.alias(name) for name, column in keys.items()),
            *(
                F.when(well_formed, F.col(name)).alias(name)
                for name in dict.fromkeys(name for _, name in measured.values())
            ),
            last_arrival.alias(c.LAST_ARRIVAL),
            hours.alias(c.ARRIVAL_HOURS),
        )
        .groupBy(*keys)
        .agg(
            F.count(F.lit(1)).alias(c.RECORDS),
            *(of(name).alias(found) for found, (of, name) in measured.items()),
            F.max(c.LAST_ARRIVAL).alias(c.LAST_ARRIVAL),
            F.bit_or(c.ARRIVAL_HOURS).alias(c.ARRIVAL_HOURS),
        )
    )
    return counted.withColumns(_shared(spec, grid)).select(*CELL, *COUNTED)


def _keys(spec: PipelineSpec, axis: Axis, grid: Grid) -> dict[str, Column]:
    """The grouping keys: few and narrow, since hashing them takes most of the time."""
    well_formed = F.col(c.REASON).isNull()
    keys = {
        c.ARRIVAL_DAY: F.col(c.ARRIVAL_DAY),
        _SUBJECT: F.coalesce(c.REASON, c.CHANNEL),
        _PART: F.when(well_formed, _part(spec, grid) * 2 + _pending(axis).cast("int")),
    }
    if grid.crosses_midnights:
        keys[c.EVENT_DATE] = F.when(well_formed, date_of(F.col(c.TS)))
    if spec.watermark.candidate is None:
        keys[c.THRESHOLD] = F.when(well_formed, largest_threshold(F.col(c.CANDIDATE), grid))
    return keys


def _hour_of_arrival() -> Column:
    """The bit of the hour of the day, UTC, at which a record arrived."""
    in_day = F.pmod(F.col(c.ARRIVAL), F.lit(DAY_MS))
    hour = F.call_function("div", in_day, F.lit(HOUR_MS)).cast("int")
    return F.call_function("shiftleft", long(1), hour)


def _measured(spec: PipelineSpec) -> dict[str, tuple[Callable[[str], Column], str]]:
    """The aggregates of a group by column, each as a function and the records' column."""
    measured: dict[str, tuple[Callable[[str], Column], str]] = {
        c.LEAST_TS: (F.min, c.TS),
        c.LARGEST_TS: (F.max, c.TS),
        c.FIRST_INSTANT: (F.min, c.INSTANT),
    }
    if _has_own_gaps(spec):
        measured[c.LARGEST_END] = (F.max, c.END)
    if spec.watermark.candidate is None:
        measured[c.LARGEST_CANDIDATE] = (F.max, c.CANDIDATE)
    return measured


def _shared(spec: PipelineSpec, grid: Grid) -> dict[str, Column]:
    """The columns that have one value for all records of a cell, computed once for the cell."""
    is_cell, least, rule = F.col(_PART).isNotNull(), F.col(c.LEAST_TS), spec.watermark.candidate
    shared = {
        c.REASON: F.when(~is_cell, F.col(_SUBJECT)),
        c.CHANNEL: F.when(is_cell, F.col(_SUBJECT)),
        c.EVENT_DATE: date_of(least),
        c.SLOT: slot_of(least, grid),
        c.PENDING: F.pmod(_PART, F.lit(2)) == 1,
    }
    if not _has_own_gaps(spec):
        shared[c.LARGEST_END] = F.lit(None).cast("bigint")
    if rule is not None:
        shared[c.THRESHOLD] = largest_threshold(candidate_of(rule, least), grid)
        largest = candidate_of(rule, F.col(c.LARGEST_TS))
        shared[c.LARGEST_CANDIDATE] = F.when(is_cell, largest)
    return shared


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
    """The largest threshold of the grid that a candidate reaches; null below all of them."""
    at_least = F.greatest(candidate, F.lit(LEAST_INSTANT_MS - 1))  # so that nothing overflows
    reached = [floor(at_least, grid.threshold_step_ms, residue) for residue in grid.residues]
    largest = F.greatest(*reached) if len(reached) > 1 else reached[0]
    # the same for all of a cell: whether the threshold counts, not whether the candidate does
    return F.when(largest >= LEAST_INSTANT_MS, largest)


def _pending(axis: Axis) -> Column:
    """Whether the record's tick is at or after the midnight that ends its day."""
    if not axis.interval_ms:
        return F.lit(axis.interval_ms == 0)
    midnight = midnight_ms(F.col(c.ARRIVAL_DAY)) + DAY_MS
    before = midnight - 1 - axis.start_ms
    tick = midnight - 1 - F.pmod(before, F.lit(axis.interval_ms))
    shown = (tick > axis.start_ms) & (F.col(c.ARRIVAL) < tick)
    # no tick is far from a midnight: nearly all records need only this comparison
    surely = midnight - axis.interval_ms
    return ~(((surely > axis.start_ms) & (F.col(c.ARRIVAL) < surely)) | shown)
