"""Firings by the order of the records that hold all that came before: running aggregates.

A window that counts to its firings, or compares values, and lets nothing go fires at some of its
records. What it holds then are aggregates of all records up to that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.records.met import risen
from strandline.engine.results.aggregates import Partial
from strandline.engine.results.rows import FIRED_AT
from strandline.engine.windows.assign import fires_at_once, is_newest
from strandline.engine.windows.by_order import as_windows
from strandline.engine.windows.firings import FIRING
from strandline.engine.windows.first_firings import window_of
from strandline.engine.windows.order import FIRES, FIRST, in_places, needs_a_walk
from strandline.engine.windows.units import OF_CAUSE
from strandline.spec.pipeline import PipelineSpec

_CONTENT = "_strandline_content"
_IS_LAST = "_strandline_is_last"


def suits(spec: PipelineSpec, partials: Mapping[str, Partial] | None) -> bool:
    """Whether the firings of a pipeline that goes by order hold all that came before them.

    Args:
        spec: the pipeline.
        partials: of its aggregates; None: one of them may be dear to have for each record.
    """
    keeps_all = spec.evicts_by is None and not spec.fires_by.purging
    return keeps_all and partials is not None


def at_firings(
    ordered: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """Of each window the records that fire it, and its last one, with what it holds by then.

    Beside the aggregates and `records` there are the running counts `late_accepted` and
    IN_NEWEST_WINDOW.

    Args:
        ordered: the records of `in_order`.
        spec: the pipeline.
        aggregates: the content of a firing.
    """
    # a walk tells records apart that stand at one position: the one that fires is the last to come
    of_walk = Window.partitionBy(*window_of(spec)).orderBy(FIRST, FIRES)
    in_window = of_walk if needs_a_walk(spec) else in_places(ordered, spec)
    up_to_here = in_window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = {
        **aggregates,
        "records": F.count(F.lit(1)),
        "late_accepted": F.count_if(fires_at_once()),
        c.IN_NEWEST_WINDOW: F.count_if(is_newest(ordered)),
    }
    is_last = F.lead(F.lit(True)).over(in_window).isNull()
    return (
        ordered.select(
            *(*window_of(spec), FIRES, FIRST, *OF_CAUSE, *risen(ordered)),
            *(column.over(up_to_here).alias(name) for name, column in running.items()),
            is_last.alias(_IS_LAST),
        )
        .where(F.col(FIRES) | F.col(_IS_LAST))
        .drop(_IS_LAST)
    )


def last_firings(
    told: DataFrame, windows: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """The rows of `fire`, their content that of the last firing; ACCEPTED is what all held.

    See `by_order.last_firings`.

    Args:
        told: the records of `at_firings`.
        windows: the windows of the range.
        spec: the pipeline.
        aggregates: the content of a firing.
    """
    firing = F.when(F.col(FIRES), F.col(FIRST))
    told_of = F.coalesce(F.max(F.when(F.col(FIRES), F.col("records"))), F.lit(0))
    counted = told.groupBy(*window_of(spec)).agg(
        F.max_by(F.struct(*aggregates), firing).alias(_CONTENT),
        F.coalesce(F.max(firing), F.lit(0)).alias("firings"),
        F.min(F.when(F.col(FIRES), F.col(c.ARRIVAL))).alias(FIRED_AT),
        F.max("records").alias(c.ACCEPTED),
        F.max("late_accepted").alias("late_accepted"),
        F.max(c.IN_NEWEST_WINDOW).alias(c.IN_NEWEST_WINDOW),
        (F.max("records") - told_of).alias(c.UNFIRED),
        told_of.alias("records"),
    )
    return as_windows(counted.select("*", f"{_CONTENT}.*"), windows, spec)


def contents_of_firings(told: DataFrame) -> DataFrame:
    """What each firing of each window holds, as `firings` takes it.

    Args:
        told: the records of `at_firings`.
    """
    return told.where(FIRES).withColumn(FIRING, F.col(FIRST))
