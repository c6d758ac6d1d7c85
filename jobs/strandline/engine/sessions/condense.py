"""The digest: rows that each stand for many records which have the same outcome in sessions.

A record is *ahead* if it arrived while the watermark was at least 2 ms below its event time. Then
no session that it touches had fired before, and it arrived before every record there that was
behind the watermark, so neither its position nor the watermark at its arrival matters. If all
records have one gap, records that are ahead and closer than the gap share a row.

Two rows of a key are *connected* if their windows overlap or touch. Connected rows that are ahead
are a *run*. No session ends inside a run, so a run is one row in the search for sessions. The
further cost depends on the number of records behind the watermark, which are few. All connected
rows, runs and others, are a *chain*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.aggregates import Partial, parts_of
from strandline.engine.columns import keys_of
from strandline.engine.frames import before_here, computed, long, up_to_here
from strandline.engine.history.history import History
from strandline.engine.position.clock import Closure
from strandline.engine.position.grid import gap_of
from strandline.engine.records.arithmetic import advance_column, date_of, first_of, lies_in
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import LEAST_INSTANT_MS
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec

AT = "_strandline_at_ms"
"""The arrival of a record behind the watermark; for records ahead, a value before every arrival."""
AT_SEQUENCE = "_strandline_at_sequence"
AHEAD = LEAST_INSTANT_MS - 2
"""A value before every arrival, and a watermark that no record is behind."""
_IS_AHEAD = "_strandline_is_ahead"
_BEGINS = "_strandline_begins"
_IS_REFUSED = "_strandline_is_refused"


def row_key(spec: PipelineSpec) -> list[str]:
    """The columns that the records of one row have in common."""
    own_gap = [] if gap_of(spec) is not None else [c.END]
    return [*keys_of(spec), c.PLACE, *own_gap, c.ERA, AT, AT_SEQUENCE]


def begins(by_start: WindowSpec) -> Column:
    """Whether a row neither overlaps nor touches any row before it, in the order of START."""
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

    A result that a watermark advance fired (ADVANCE) arrives after earlier advances of its instant,
    so it must be further ahead, also of `Axis.never` at the end of the input.
    """
    instant = F.col(c.INSTANT)
    if advance_column(spec):
        instant = instant + F.when(F.col(c.ADVANCE).isNull(), 0).otherwise(2)
    return instant < F.col(c.AHEAD_BEFORE)


def _sequence(history: History) -> Column:
    """The SEQUENCE within a millisecond, in which results that a tick fires precede all records."""
    if not advance_column(history.spec):
        return F.col(c.SEQUENCE)
    on_tick = F.col(c.INSTANT) < first_of(history.axis, F.col(c.ARRIVAL))
    return F.col(c.SEQUENCE) - F.when(on_tick, 2**62).otherwise(0)


def digest(records: DataFrame, spec: PipelineSpec, partials: dict[str, Partial]) -> DataFrame:
    """One row for the records of each `row_key`: ROW, START, END, `records` and partial aggregates.

    Rows that are not ahead have an INSTANT. For a result of other windows it differs from the
    arrival, as it is emitted before the watermark that fires it is forwarded.
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
    """The rows with the WATERMARK at their arrival; for rows ahead, `AHEAD`, a lower one."""
    is_ahead = F.col(AT) == AHEAD
    probes = rows.where(~is_ahead).withColumn(c.ARRIVAL_DAY, date_of(F.col(AT)))
    behind = emitted.at_arrival(probes, spec).drop(c.ARRIVAL_DAY)
    ahead = rows.where(is_ahead).withColumn(c.WATERMARK, long(AHEAD))
    return ahead.unionByName(behind)


def after_closures(rows: DataFrame, ended: Sequence[Closure]) -> DataFrame:
    """The rows of `with_watermarks`, with MAX_WATERMARK where their input had ended before.

    Args:
        rows: the rows.
        ended: the ranges whose input had ended before the horizon, in order.
    """
    for number, closure in enumerate(ended):
        is_after = (F.col(c.ERA) > number) & lies_in(F.col(c.START), closure.windows)
        watermark = F.when(is_after, F.lit(MAX_WATERMARK)).otherwise(F.col(c.WATERMARK))
        rows = rows.withColumn(c.WATERMARK, watermark)
    return rows


def is_refused() -> Column:
    """Whether a row is refused because its input had ended, and all sessions were dropped."""
    return F.col(c.WATERMARK) == F.lit(MAX_WATERMARK)


def numbered_by_run(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows of `after_closures`, with the ROW of the first row of their run; computed.

    A row is ahead by its own WATERMARK here. `Parts`, which decides for whole parts of slots, finds
    fewer rows ahead. A row that is not ahead is a run of its own.
    """
    is_ahead = F.col(c.WATERMARK) <= F.col(c.START) - 2
    of_era = Window.partitionBy(*keys_of(spec), c.ERA, _IS_AHEAD)
    by_start = of_era.orderBy(c.START, c.ROW)
    begins_run = begins(by_start) | ~F.col(_IS_AHEAD)
    first_of_run = F.last(F.when(F.col(_BEGINS), F.col(c.ROW)), ignorenulls=True)
    return (
        rows.withColumn(_IS_AHEAD, is_ahead)
        .withColumn(_BEGINS, begins_run)
        .withColumn(c.ROW, first_of_run.over(up_to_here(by_start)))
        .drop(_BEGINS)
        .transform(computed)
    )


def one_row_per_run(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """One row for each ROW of `numbered_by_run`.

    The position of a run that is ahead does not matter.
    """
    of_runs_ahead = {c.WATERMARK: AHEAD, AT: AHEAD, AT_SEQUENCE: 0}
    return rows.groupBy(*keys_of(spec), _IS_AHEAD, c.ERA, c.ROW).agg(
        F.min(c.START).alias(c.START),
        F.max(c.END).alias(c.END),
        F.sum("records").alias("records"),
        F.min(c.PLACE).alias(c.PLACE),
        *(
            F.max(F.when(F.col(_IS_AHEAD), long(value)).otherwise(F.col(name))).alias(name)
            for name, value in of_runs_ahead.items()
        ),
    )


def in_chains(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows of `one_row_per_run` with their CHAIN, and whether they are ALONE; computed.

    No session has rows of two chains. Rows that are refused have chains among themselves, without a
    meaning.
    """
    by_start = Window.partitionBy(*keys_of(spec), _IS_REFUSED).orderBy(c.START, c.ROW)
    first = F.last(F.when(F.col(_BEGINS), F.col(c.ROW)), ignorenulls=True)
    next_begins = F.coalesce(F.lead(_BEGINS).over(by_start), F.lit(True))
    return (
        rows.withColumn(_IS_REFUSED, is_refused())
        .withColumn(_BEGINS, begins(by_start))
        .withColumns(
            {
                c.CHAIN: first.over(up_to_here(by_start)),
                c.ALONE: F.col(_IS_AHEAD) & F.col(_BEGINS) & next_begins,
            }
        )
        .drop(_IS_AHEAD, _IS_REFUSED, _BEGINS)
        .transform(computed)
    )
