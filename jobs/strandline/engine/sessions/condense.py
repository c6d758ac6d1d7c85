"""digest: the records of sessions as rows of records with the same outcome, far fewer than they.

A record is *ahead* if it arrived while the watermark was at least 2 ms below its event time. Then
no session that it touches had fired before, and it arrived before every record there that was
behind the watermark, so neither its position nor the watermark at its arrival matters. If all
records have one gap, records that are ahead and closer than the gap share a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import before_here, computed, long
from strandline.engine.history.history import History
from strandline.engine.position.grid import gap_of
from strandline.engine.records.arithmetic import advance_column, date_of, first_of
from strandline.engine.results.aggregates import Partial, parts_of
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import LEAST_INSTANT_MS
from strandline.spec.pipeline import PipelineSpec

AT = "_strandline_at_ms"
"""The arrival of a record behind the watermark; for records ahead, a value before every arrival."""
AT_SEQUENCE = "_strandline_at_sequence"
AHEAD = LEAST_INSTANT_MS - 2
"""A value before every arrival, and a watermark that no record is behind."""


def row_key(spec: PipelineSpec) -> list[str]:
    """The columns that the records of one row have in common."""
    own_gap = [] if gap_of(spec) is not None else [c.END]
    return [*keys_of(spec), c.PLACE, *own_gap, c.ERA, AT, AT_SEQUENCE]


def begins(by_start: WindowSpec) -> Column:
    """Whether the rows before a row, by START, neither overlap nor touch it."""
    reach = F.max(c.END).over(before_here(by_start))
    return F.coalesce(F.col(c.START) > reach, F.lit(True))


def in_rows(records: DataFrame, history: History, ends_ms: Iterable[int]) -> DataFrame:
    """The records with the `row_key` of the row that they belong to.

    Args:
        records: well-formed records with AHEAD_BEFORE (`Parts.of_records`).
        history: everything observed below the horizon.
        ends_ms: the instants at which the input of some range had ended.
    """
    ts, gap_ms, grid = F.col(c.TS), gap_of(history.spec), history.grid
    is_ahead = _is_ahead(history.spec)
    place = ts
    if gap_ms is not None:
        width_ms = min(gap_ms, grid.step_ms)
        close = ts - F.pmod(ts - F.col(c.STEP), F.lit(width_ms))
        place = F.when(is_ahead, close).otherwise(ts)
    ended = ((F.col(c.ARRIVAL) >= end_ms).cast("int") for end_ms in ends_ms)
    return records.withColumns(
        {
            c.PLACE: place,
            c.ERA: reduce(Column.__add__, ended, F.lit(0)),
            AT: F.when(is_ahead, F.lit(AHEAD)).otherwise(F.col(c.ARRIVAL)),
            AT_SEQUENCE: F.when(is_ahead, long(0)).otherwise(_sequence(history)),
        }
    )


def _is_ahead(spec: PipelineSpec) -> Column:
    """Whether a record arrives before the watermark can fire any session that it touches.

    A record with an ADVANCE arrives after all earlier advances of its instant, so it needs a larger
    distance, also from `never` at the end of the input.
    """
    instant = F.col(c.INSTANT)
    if advance_column(spec):
        instant = instant + F.when(F.col(c.ADVANCE).isNull(), 0).otherwise(2)
    return instant < F.col(c.AHEAD_BEFORE)


def _sequence(history: History) -> Column:
    """The SEQUENCE within a millisecond: results that a tick fires come before its records."""
    if not advance_column(history.spec):
        return F.col(c.SEQUENCE)
    on_tick = F.col(c.INSTANT) < first_of(history.axis, F.col(c.ARRIVAL))
    return F.col(c.SEQUENCE) - F.when(on_tick, 2**62).otherwise(0)


def digest(records: DataFrame, spec: PipelineSpec, partials: dict[str, Partial]) -> DataFrame:
    """One row for the records of each `row_key`: ROW, START, END, `records` and the partials.

    Records that are not ahead have an INSTANT. It can differ from their arrival: windows emit a
    result before they forward the watermark that fires it.
    """
    ends = [] if c.END in row_key(spec) else [F.max(c.END).alias(c.END)]
    return (
        records.groupBy(*row_key(spec))
        .agg(
            F.min(c.TS).alias(c.START),
            *ends,
            F.count(F.lit(1)).alias("records"),
            *(F.max(name).alias(name) for name in (c.INSTANT, *advance_column(spec))),
            *parts_of(partials),
        )
        .withColumn(c.ROW, F.monotonically_increasing_id())
        .transform(computed)
    )


def with_watermarks(rows: DataFrame, emitted: Emissions, spec: PipelineSpec) -> DataFrame:
    """The rows with the WATERMARK at their arrival; rows ahead get one below all of theirs."""
    is_ahead = F.col(AT) == AHEAD
    probes = rows.where(~is_ahead).withColumn(c.ARRIVAL_DAY, date_of(F.col(AT)))
    behind = emitted.at_arrival(probes, spec).drop(c.ARRIVAL_DAY)
    ahead = rows.where(is_ahead).withColumn(c.WATERMARK, long(AHEAD))
    return ahead.unionByName(behind)
