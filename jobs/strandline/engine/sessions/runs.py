"""The rows of `condense.digest` in runs, and in chains of runs and other rows.

A run is made of rows whose records arrived ahead of the watermark and whose windows overlap or
touch. No session ends inside a run, so a run is one row in the search for sessions, however many
rows it has. The further cost depends on the number of records behind the watermark, which are few.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, long, up_to_here
from strandline.engine.position.clock import Closure
from strandline.engine.records.arithmetic import lies_in
from strandline.engine.sessions.condense import AHEAD, AT, AT_SEQUENCE, begins
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_IS_AHEAD = "_strandline_is_ahead"
_BEGINS = "_strandline_begins"
_IS_REFUSED = "_strandline_is_refused"


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
    """Whether a row arrived after all sessions had been dropped: its input had ended before."""
    return F.col(c.WATERMARK) == F.lit(MAX_WATERMARK)


def numbered_by_run(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows of `after_closures`, with the ROW of the first row of their run; computed.

    A row is ahead if the watermark at its arrival is at least 2 ms below its event time: then no
    session that it touches had fired before. `Parts`, which decides for whole parts of slots,
    finds fewer such rows. A row that is not ahead is a run of its own.
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

    A chain is made of rows of a key whose windows overlap or touch, so no session has rows of two
    chains. Rows that are refused have chains among themselves, which nobody reads.
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
