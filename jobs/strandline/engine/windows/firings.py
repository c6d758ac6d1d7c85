"""The firing history of windows on a grid: every emission of every window, in Flink's order.

Under the default trigger a window fires as the watermark reaches its end, with all records so far,
and again with each late record. Its firings have numbers: 0 is the firing at its end, n the firing
by its n-th late record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import Partial, parts_of
from strandline.engine.columns import window_of
from strandline.engine.frames import long, named
from strandline.engine.records.arithmetic import is_window_fired
from strandline.engine.result_rows import (
    as_probes,
    causes_of,
    firing_columns,
    numbered,
    with_position,
)
from strandline.engine.watermark_values.emissions import Emissions
from strandline.spec.pipeline import PipelineSpec

FIRST_FIRING = "_strandline_first_firing"
"""The number of the first firing that contains some records of a window."""
LAST_FIRING = "_strandline_last_firing"
"""The number of the last firing of a window; null: there is none."""


def firings(
    contents: DataFrame, windows: DataFrame, emitted: Emissions, spec: PipelineSpec
) -> DataFrame:
    """One row for each firing of each window, with its contents, its watermark and its position.

    Args:
        contents: the rows of `contents_of_firings`.
        windows: the windows of the range.
        emitted: the emissions of the days on which something fires.
        spec: the pipeline.
    """
    by_watermark, end = F.col(c.FIRING) == 0, F.col(c.SLOT_END)
    fired = contents.join(F.broadcast(windows), c.WINDOW).withColumns(
        {c.START: F.col(c.SLOT), c.END: end}
    )
    # a watermark fires windows in the order of their ends, a record its newest window first
    probes = as_probes(with_position(fired, by_watermark, F.col(c.FIRE_AT), (end, -end), spec))
    timing = F.when(by_watermark, "ON_TIME").otherwise("LATE")
    rows = emitted.at(probes).select(*firing_columns(timing, spec), c.FIRING)
    # each firing has all records of the one before
    before = F.nullif(F.col("firing") - 1, long(0))
    return numbered(rows, [c.FIRING], spec).withColumn("supersedes", before).drop(c.FIRING)


def contents_of_firings(
    accepted: DataFrame,
    spec: PipelineSpec,
    aggregates: Mapping[str, Column],
    partials: Mapping[str, Partial] | None,
) -> DataFrame:
    """The content of each FIRING of each window, and the record that causes a late one.

    Args:
        accepted: the records with RECORD_ID, once for each window that accepted them.
        spec: the pipeline.
        aggregates: the aggregates of a firing.
        partials: the aggregates in two steps; None: not all aggregates have two steps.
    """
    of_cause = [*causes_of(spec), c.RECORD_ID]
    if partials is None:
        return _of_single_records(accepted, spec, aggregates, of_cause)
    window = window_of(spec)
    counted = [F.count(F.lit(1)).alias(c.RECORDS), F.max(c.FIRE_AT).alias(c.FIRE_AT)]
    counted += parts_of(partials)
    late = _numbered(accepted.where(is_window_fired()), spec)
    late = late.groupBy(*window, FIRST_FIRING, *of_cause).agg(*counted)
    on_time = accepted.where(~is_window_fired()).groupBy(*window).agg(*counted)
    on_time = on_time.withColumn(FIRST_FIRING, long(0))
    units = late.unionByName(on_time, allowMissingColumns=True)
    return grown(_with_last(units, spec), window, partials, {n: F.col(n) for n in of_cause})


def _of_single_records(
    accepted: DataFrame,
    spec: PipelineSpec,
    aggregates: Mapping[str, Column],
    of_cause: Sequence[str],
) -> DataFrame:
    """The contents of firings from single records, each aggregated in every firing that has it."""
    each = _with_last(_numbered(accepted, spec), spec)
    in_each = each.where(F.col(FIRST_FIRING) <= F.col(LAST_FIRING)).withColumn(
        c.FIRING, F.explode(F.sequence(FIRST_FIRING, LAST_FIRING))
    )
    is_cause = (F.col(FIRST_FIRING) == F.col(c.FIRING)) & (F.col(c.FIRING) > 0)
    return in_each.groupBy(*window_of(spec), c.FIRING).agg(
        *named(aggregates),
        F.count(F.lit(1)).alias("records"),
        *(F.max(F.when(is_cause, F.col(name))).alias(name) for name in of_cause),
    )


def _numbered(accepted: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The records with FIRST_FIRING: for late records their number in their window, else 0."""
    is_late = F.when(is_window_fired(), 1)
    in_order = Window.partitionBy(*window_of(spec), is_late).orderBy(
        c.INSTANT, c.SEQUENCE, c.TS, c.RECORD_ID
    )
    nth_late = F.when(is_late == 1, F.row_number().over(in_order).cast("bigint"))
    return accepted.withColumn(FIRST_FIRING, F.coalesce(nth_late, long(0)))


def _with_last(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Units (records, or groups of records with one first firing) with their LAST_FIRING."""
    of_window = Window.partitionBy(*window_of(spec))
    last_late = F.max(F.nullif(FIRST_FIRING, long(0))).over(of_window)
    at_end = F.when(F.col(c.FIRE_AT).isNotNull(), long(0))
    return units.withColumn(LAST_FIRING, F.greatest(at_end, last_late))


def grown(
    units: DataFrame,
    window: Sequence[str],
    partials: Mapping[str, Partial],
    causes: Mapping[str, Column] | None = None,
) -> DataFrame:
    """A row for each FIRING of each window, with the aggregates of all records up to it.

    Args:
        units: a row for all records of a window with one first firing: FIRST_FIRING, LAST_FIRING,
            RECORDS and the partial aggregates.
        window: the columns that identify a window of a key.
        partials: the aggregates by name, as combinations of their parts.
        causes: further columns of the unit that causes a firing.
    """
    by_firing = Window.partitionBy(*window).orderBy(FIRST_FIRING)
    so_far = by_firing.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    sums = {name: partial.running(so_far) for name, partial in partials.items()}
    sums["records"] = F.sum(c.RECORDS).over(so_far)
    more = causes or {}
    columns = named({**sums, **more})
    added_up = units.where(F.col(FIRST_FIRING) <= F.col(LAST_FIRING)).select(
        *window, FIRST_FIRING, LAST_FIRING, *columns
    )
    # a firing without a new record contains the records of the firing before
    until = F.coalesce(F.lead(FIRST_FIRING).over(by_firing) - 1, LAST_FIRING)
    return (
        added_up.groupBy(*window, FIRST_FIRING, LAST_FIRING)
        .agg(*(F.any_value(name).alias(name) for name in (*sums, *more)))
        .withColumn(c.FIRING, until)
        .withColumn(c.FIRING, F.explode(F.sequence(FIRST_FIRING, c.FIRING)))
        .drop(FIRST_FIRING, LAST_FIRING)
    )
