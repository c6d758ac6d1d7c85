"""Firings with all records so far, as running sums: each record is aggregated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import named
from strandline.engine.results.aggregates import Partial

FIRST_FIRING = "_strandline_first_firing"
"""The number of the first firing that contains some records of a window."""
LAST_FIRING = "_strandline_last_firing"
"""The number of the last firing of a window; null: there is none."""


def grown(
    units: DataFrame,
    window: Sequence[str],
    partials: Mapping[str, Partial],
    causes: Mapping[str, Column] | None = None,
) -> DataFrame:
    """A row for each FIRING of each window, with the aggregates of all records up to it.

    Args:
        units: a row for all records with the same first firing: FIRST_FIRING, LAST_FIRING, RECORDS
            and the parts of aggregates.
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
    # until a firing contains something new, it contains the records of the firing before
    until = F.coalesce(F.lead(FIRST_FIRING).over(by_firing) - 1, LAST_FIRING)
    return (
        added_up.groupBy(*window, FIRST_FIRING, LAST_FIRING)
        .agg(*(F.any_value(name).alias(name) for name in (*sums, *more)))
        .withColumn(c.FIRING, until)
        .withColumn(c.FIRING, F.explode(F.sequence(FIRST_FIRING, c.FIRING)))
        .drop(FIRST_FIRING, LAST_FIRING)
    )
