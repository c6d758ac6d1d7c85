"""Firings by the order of the records that hold all that came before: running aggregates.

A window that counts to its firings, or compares values, and lets nothing go fires at some of its
records. What it holds then are aggregates of all records up to that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import fields_of, up_to_here
from strandline.engine.records.met import risen
from strandline.engine.results.aggregates import Partial
from strandline.engine.results.rows import FIRED_AT
from strandline.engine.windows.assign import fires_at_once, is_newest
from strandline.engine.windows.by_order import as_windows
from strandline.engine.windows.firings import FIRING
from strandline.engine.windows.first_firings import window_of
from strandline.engine.windows.order import (
    FIRES,
    FIRST,
    fires_at,
    first_firing_at,
    in_places,
    needs_a_walk,
)
from strandline.engine.windows.units import OF_CAUSE
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Count

_CONTENT = "_strandline_content"
_IS_LAST = "_strandline_is_last"
_RUNNING = "_strandline_running_"
"""Before the names of running aggregates: a landing table may have columns of these."""


def suits(spec: PipelineSpec, partials: Mapping[str, Partial] | None) -> bool:
    """Whether the firings of a pipeline that goes by order hold all that came before them.

    Args:
        spec: the pipeline.
        partials: of its aggregates; None: one of them may be dear to have for each record.
    """
    keeps_all = spec.evicts_by is None and not spec.fires_by.purging
    return keeps_all and partials is not None


def counts_by_place(spec: PipelineSpec) -> bool:
    """Whether the place of a record alone tells what fires: see `at_counts`."""
    return isinstance(spec.fires_by, Count) and not needs_a_walk(spec)


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
    rows = _with_running(ordered, in_window, aggregates)
    return _told(rows.where(F.col(FIRES) | F.col(_IS_LAST)), spec, aggregates)


def at_counts(
    placed: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column], identity: Column
) -> DataFrame:
    """The same where windows count to their firings: what one holds is the place of its last one.

    Args:
        placed: the records of `sorted_by_place`.
        spec: the pipeline.
        aggregates: the content of a firing.
        identity: tells the record that fires.

    Raises:
        TypeError: the trigger is another one.
    """
    trigger = spec.fires_by
    if not isinstance(trigger, Count):
        msg = f"{spec.pipeline} does not count to its firings"
        raise TypeError(msg)
    place = F.col(_RUNNING + "records")
    rows = _with_running(placed, in_places(placed, spec), aggregates).withColumns(
        {FIRES: fires_at(place, trigger), FIRST: first_firing_at(place, trigger)}
    )
    told = rows.where(F.col(FIRES) | F.col(_IS_LAST))
    return _told(told.withColumn(c.RECORD_ID, F.when(F.col(FIRES), identity)), spec, aggregates)


def _with_running(
    records: DataFrame, in_window: WindowSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """Records with what their window holds by then, named _RUNNING, and whether it is _IS_LAST."""
    so_far = up_to_here(in_window)
    running = {
        **aggregates,
        "records": F.count(F.lit(1)),
        "late_accepted": F.count_if(fires_at_once()),
        c.IN_NEWEST_WINDOW: F.count_if(is_newest(records)),
    }
    return records.select(
        "*",
        *(column.over(so_far).alias(_RUNNING + name) for name, column in running.items()),
        F.lead(F.lit(True)).over(in_window).isNull().alias(_IS_LAST),
    )


def _told(rows: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]) -> DataFrame:
    """Of records `_with_running` what is told of firings."""
    running = (*aggregates, "records", "late_accepted", c.IN_NEWEST_WINDOW)
    return rows.select(
        *(*window_of(spec), FIRES, FIRST, *OF_CAUSE, *risen(rows)),
        *(F.col(_RUNNING + name).alias(name) for name in running),
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
    return as_windows(counted.select("*", *fields_of(counted, _CONTENT)), windows, spec)


def contents_of_firings(told: DataFrame) -> DataFrame:
    """What each firing of each window holds, as `firings` takes it.

    Args:
        told: the records of `at_firings`.
    """
    return told.where(FIRES).withColumn(FIRING, F.col(FIRST))
