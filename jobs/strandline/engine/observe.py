"""observe: what the arrivals of some days say about the watermark, in one hash aggregation."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.axis import Axis
from strandline.engine.grid import Grid
from strandline.engine.source import date_of, midnight_ms
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
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
"""What a cell is of. Malformed rows have a day and a reason only."""


def observe(records: DataFrame, spec: PipelineSpec, axis: Axis) -> DataFrame:
    """Count the records of each cell, with its first instant and its least and largest event time.

    All records of a cell have the same newest window and reach the same thresholds, so the cells
    tell first positions at thresholds, the day map, and the records of every slot, exactly.
    """
    well_formed = F.col(c.REASON).isNull()
    candidate = candidate_of(spec, F.col(c.TS))
    cell = {
        c.CHANNEL: F.col(c.CHANNEL),
        c.EVENT_DATE: date_of(F.col(c.TS)),
        c.SLOT: F.col(c.SLOT),
        c.THRESHOLD: largest_threshold(candidate, Grid.of(spec)),
        c.PENDING: _pending(axis),
    }
    return (
        records.select(
            c.ARRIVAL_DAY,
            c.REASON,
            *(F.when(well_formed, column).alias(name) for name, column in cell.items()),
            *(F.when(well_formed, F.col(name)).alias(name) for name in (c.TS, c.INSTANT)),
        )
        .groupBy(*CELL)
        .agg(
            F.count(F.lit(1)).alias(c.RECORDS),
            F.min(c.TS).alias(c.LEAST_TS),
            F.max(c.TS).alias(c.LARGEST_TS),
            F.min(c.INSTANT).alias(c.FIRST_INSTANT),
        )
    )


def candidate_of(spec: PipelineSpec, ts: Column) -> Column:
    """The watermark that a record offers. See `Candidate.of`, of which this is the set form."""
    rule = spec.watermark.candidate
    if rule is None:
        msg = f"no candidate for {spec.watermark.strategy}"
        raise TypeError(msg)
    return F.greatest(ts, F.lit(MIN_WATERMARK + rule.delay_ms)) + F.lit(-rule.delay_ms)


def largest_threshold(candidate: Column, grid: Grid) -> Column:
    """The largest threshold of the grid that a candidate reaches; null below all of them."""
    step = F.lit(grid.windows.step_ms)
    at_least = F.greatest(candidate, F.lit(LEAST_INSTANT_MS - 1))  # so that nothing overflows
    reached = [at_least - F.pmod(at_least - residue, step) for residue in grid.residues]
    largest = F.greatest(*reached) if len(reached) > 1 else reached[0]
    return F.when(candidate >= LEAST_INSTANT_MS, largest)


def _pending(axis: Axis) -> Column:
    """Whether the tick that shows the record is not before the midnight that ends its day."""
    if not axis.interval_ms:
        return F.lit(axis.interval_ms == 0)
    midnight = midnight_ms(F.col(c.ARRIVAL_DAY)) + DAY_MS
    before = midnight - 1 - axis.start_ms
    tick = midnight - 1 - F.pmod(before, F.lit(axis.interval_ms))
    return ~((tick > axis.start_ms) & (F.col(c.ARRIVAL) < tick))
