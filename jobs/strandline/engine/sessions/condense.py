"""digest: the records of sessions as rows of records with the same outcome, far fewer than they.

A record is *ahead* if it came before the watermark had reached its own event time. It then holds
every session end that lies inside its window together with its own, so that nothing is cut there,
and came before every record that the watermark had passed: neither its position nor the watermark
at its arrival is wanted. Where all have one gap, those ahead that lie closer than the gap share a
row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, long
from strandline.engine.past.history import History
from strandline.engine.position.grid import gap_of
from strandline.engine.records.arithmetic import date_of, first_of
from strandline.engine.records.at_arrival import advance_column, arrival_probe
from strandline.engine.results.aggregates import Partial
from strandline.engine.values.emissions import Emissions
from strandline.model.intervals import LEAST_INSTANT_MS
from strandline.spec.pipeline import PipelineSpec

AT = "_strandline_at_ms"
"""The arrival of a record behind the watermark; before every arrival of one ahead."""
AT_SEQUENCE = "_strandline_at_sequence"
AHEAD = LEAST_INSTANT_MS - 2
"""Before every arrival, and a watermark that no record is behind of."""


def row_key(spec: PipelineSpec) -> list[str]:
    """What the records of a row have in common."""
    own_gap = [] if gap_of(spec) is not None else [c.END]
    return [*keys_of(spec), c.PLACE, *own_gap, c.ERA, AT, AT_SEQUENCE]


def position() -> Column:
    """Where a row stands in the order of processing; those ahead before all that are not."""
    return F.struct(AT, AT_SEQUENCE, c.START, c.END)


def begins(by_start: WindowSpec) -> Column:
    """Whether what lies ahead of a row, by START, neither overlaps nor touches it."""
    reach = F.max(c.END).over(by_start.rowsBetween(Window.unboundedPreceding, -1))
    return F.coalesce(F.col(c.START) > reach, F.lit(True))


def in_rows(
    records: DataFrame, ahead: DataFrame, history: History, ends_ms: Iterable[int] = ()
) -> DataFrame:
    """The records with the `row_key` of the row that they belong to.

    Args:
        records: well-formed records.
        ahead: for every part of a slot, before which instant its records are ahead.
        history: everything observed below the horizon.
        ends_ms: when the input of some range had ended.
    """
    ts, gap_ms, grid = F.col(c.TS), gap_of(history.spec), history.grid
    part = ts - F.pmod(ts - F.col(c.STEP), F.lit(grid.threshold_step_ms))
    is_ahead = _is_ahead(history.spec)
    place = ts
    if gap_ms is not None:
        width_ms = min(gap_ms, grid.step_ms)
        close = ts - F.pmod(ts - F.col(c.STEP), F.lit(width_ms))
        place = F.when(is_ahead, close).otherwise(ts)
    return (
        records.withColumn(c.PART, part)
        .join(F.broadcast(ahead), c.PART)
        .withColumns(
            {
                c.PLACE: place,
                c.ERA: reduce(
                    Column.__add__,
                    ((F.col(c.ARRIVAL) >= end_ms).cast("int") for end_ms in ends_ms),
                    F.lit(0),
                ),
                AT: F.when(is_ahead, F.lit(AHEAD)).otherwise(F.col(c.ARRIVAL)),
                AT_SEQUENCE: F.when(is_ahead, long(0)).otherwise(_sequence(history)),
            }
        )
    )


def _is_ahead(spec: PipelineSpec) -> Column:
    """Whether records come before the watermark reaches what holds their sessions together.

    One with an ADVANCE comes behind all advances of its instant before that one: it has to be
    further away, at the end of the input from never, too.
    """
    instant = F.col(c.INSTANT)
    if advance_column(spec):
        instant = instant + F.when(F.col(c.ADVANCE).isNull(), 0).otherwise(2)
    return instant < F.col(c.AHEAD_BEFORE)


def _sequence(history: History) -> Column:
    """The SEQUENCE within a millisecond: what a tick has fired comes before its records."""
    if not advance_column(history.spec):
        return F.col(c.SEQUENCE)
    on_tick = F.col(c.INSTANT) < first_of(history.axis, F.col(c.ARRIVAL))
    return F.col(c.SEQUENCE) - F.when(on_tick, 2**62).otherwise(0)


def digest(records: DataFrame, spec: PipelineSpec, partials: dict[str, Partial]) -> DataFrame:
    """One row for the records of each `row_key`: ROW, START, END, `records` and the partials.

    With the INSTANT of those that are not ahead. It is not always that of their arrival: a result
    of other windows leaves these before the watermark that fires them goes on.
    """
    ends = [] if c.END in row_key(spec) else [F.max(c.END).alias(c.END)]
    return (
        records.groupBy(*row_key(spec))
        .agg(
            F.min(c.TS).alias(c.START),
            *ends,
            F.count(F.lit(1)).alias("records"),
            *(F.max(name).alias(name) for name in (c.INSTANT, *advance_column(spec))),
            *(part.alias(name) for p in partials.values() for name, part in p.parts.items()),
        )
        .withColumn(c.ROW, F.monotonically_increasing_id())
        .transform(computed)
    )


def with_watermarks(rows: DataFrame, emitted: Emissions, spec: PipelineSpec) -> DataFrame:
    """The rows with the WATERMARK at their arrival; of those ahead it is below all of theirs."""
    is_ahead = F.col(AT) == AHEAD
    at_arrival = {c.ARRIVAL_DAY: date_of(F.col(AT)), **arrival_probe(spec)}
    probes = rows.where(~is_ahead).withColumns(at_arrival)
    behind = emitted.at(probes).drop(c.ARRIVAL_DAY, c.SEEN_FROM)
    ahead = rows.where(is_ahead).withColumn(c.WATERMARK, long(AHEAD))
    return ahead.unionByName(behind)
