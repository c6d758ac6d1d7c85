"""Runs of touching rows that are ahead of the watermark: no session ends inside a run.

A run is one row in the search for sessions, however many rows it has. The further cost depends on
the number of records behind the watermark, which are few.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, long, up_to_here
from strandline.engine.sessions.condense import AHEAD, AT, AT_SEQUENCE, begins
from strandline.spec.pipeline import PipelineSpec

_IS_AHEAD = "_strandline_is_ahead"
_BEGINS_RUN = "_strandline_begins_run"


def numbered_by_run(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows of `with_watermarks`, with the ROW of the first row of their run; computed.

    Here a row is ahead if the watermark at its arrival is at least 2 ms below its event time: then
    it holds all session ends inside its window (see `sessions_of`). This includes far more rows
    than the calendar shows. A row that is not ahead is a run of its own.
    """
    is_ahead = F.col(c.WATERMARK) + 2 <= F.col(c.START)
    by_start = Window.partitionBy(*keys_of(spec), _IS_AHEAD).orderBy(c.START, c.ROW)
    so_far = up_to_here(by_start)
    begins_run = begins(by_start) | ~F.col(_IS_AHEAD)
    first_of_run = F.last(F.when(F.col(_BEGINS_RUN), F.col(c.ROW)), ignorenulls=True)
    return (
        rows.withColumn(_IS_AHEAD, is_ahead)
        .withColumn(_BEGINS_RUN, begins_run)
        .withColumn(c.ROW, first_of_run.over(so_far))
        .drop(_BEGINS_RUN)
        .transform(computed)
    )


def one_row_per_run(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """One row for each ROW of `numbered_by_run`.

    The position of a run that is ahead does not matter.
    """
    of_runs_ahead = {c.WATERMARK: AHEAD, AT: AHEAD, AT_SEQUENCE: 0}
    return (
        rows.groupBy(*keys_of(spec), _IS_AHEAD, c.ROW)
        .agg(
            F.min(c.START).alias(c.START),
            F.max(c.END).alias(c.END),
            F.sum("records").alias("records"),
            *(F.min(name).alias(name) for name in (c.PLACE, c.ERA)),
            F.max(c.INSTANT).alias(c.INSTANT),
            *(
                F.max(F.when(F.col(_IS_AHEAD), long(value)).otherwise(F.col(name))).alias(name)
                for name, value in of_runs_ahead.items()
            ),
        )
        .drop(_IS_AHEAD)
    )
