"""Malformed rows and their reasons: such a row belongs to no window."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import first_of_cases
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import windows_fit
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.records.expressions import condition
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.spec.pipeline import PipelineSpec

OUTSIDE = "arrival_outside_partition"
"""The reason of a row whose arrival is not on the day of its partition."""


def reason_of(landing: DataFrame, spec: PipelineSpec, ts_given: Column | None) -> Column:
    """The first reason why a row is malformed; null: it is well-formed.

    Args:
        landing: the landing table.
        spec: the pipeline.
        ts_given: whether the row has a value for its event time; None: not needed.
    """
    reasons = _reasons(landing, spec, ts_given)
    return first_of_cases(((applies, F.lit(reason)) for reason, applies in reasons), F.lit(None))


def _reasons(
    landing: DataFrame, spec: PipelineSpec, ts_given: Column | None
) -> Iterator[tuple[str, Column]]:
    """Each reason, and whether it applies to a row, in order of precedence."""
    source, ts = spec.source, F.col(c.TS)
    if ts_given is not None:
        yield "null_event_time", ~ts_given
        yield "unparsable_event_time", ts.isNull()
    yield "null_arrival", F.col(c.ARRIVAL).isNull()
    yield OUTSIDE, ~lies_in_its_day()
    if source.max_ahead is not None:
        yield "ahead_of_arrival", ts - F.col(c.ARRIVAL) > source.max_ahead
    if source.channel is not None:
        yield "null_channel", F.col(c.CHANNEL).isNull()
        if source.declared_channels is not None:
            undeclared = ~F.col(c.CHANNEL).isin(*source.declared_channels)
            for channel, retired_ms in source.retired.items():
                undeclared |= (F.col(c.CHANNEL) == channel) & (F.col(c.ARRIVAL) >= retired_ms)
            yield "undeclared_channel", undeclared
    if source.key:
        yield "null_key", reduce(Column.__or__, (F.col(key).isNull() for key in c.keys_of(spec)))
    if source.valid is not None:
        place = f"{spec.pipeline}: source.valid"
        valid = condition(landing, source.valid, place, source.where)
        yield "invalid", ~valid
    if spec.window.gap_of_record is not None:
        yield "invalid", F.col(c.END).isNull()
    yield "event_time_out_of_range", ~_inside_the_years(spec)


def _inside_the_years(spec: PipelineSpec) -> Column:
    """Whether the record and all of its windows lie in the years 0001 to 9999.

    Nearly all records lie far from both ends and need only one comparison.
    """
    ts, grid = F.col(c.TS), Grid.of(spec)
    far_ms = 3 * grid.reach_ms
    surely = ts.between(LEAST_INSTANT_MS + far_ms, END_OF_INSTANTS_MS - 1 - far_ms)
    within = ts.between(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
    inside = surely | (within & windows_fit(grid))
    if spec.window.merging:
        return inside & (F.col(c.END) < END_OF_INSTANTS_MS)
    return inside
