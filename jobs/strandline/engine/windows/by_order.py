"""Windows that fire, or let records go, by the order in which these came."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import fields_of, long
from strandline.engine.records.expressions import quoted
from strandline.engine.records.met import risen
from strandline.engine.results.aggregates import with_contents_of_none
from strandline.engine.results.rows import FIRED_AT, window_columns
from strandline.engine.windows.assign import fires_at_once, is_newest
from strandline.engine.windows.firings import FIRING
from strandline.engine.windows.first_firings import window_of
from strandline.engine.windows.order import FIRES, FIRINGS, FIRST, UNTIL
from strandline.engine.windows.units import OF_CAUSE
from strandline.engine.windows.walk import STILL_HELD
from strandline.spec.pipeline import PipelineSpec

_IN_LAST = "_strandline_in_last_firing"
_CONTENT = "_strandline_content"
_ON_TIME = "_strandline_on_time"
_COUNTS = (c.ACCEPTED, "late_accepted", c.IN_NEWEST_WINDOW, c.UNFIRED)

# ------------------------------------------------------------------------------------ the windows


def last_firings(
    ordered: DataFrame, windows: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """The rows of `fire`, their content that of the last firing; ACCEPTED is what all held.

    A window that has not fired is there to be counted: its `firings` are 0. UNFIRED are the records
    that it has gone with before any firing told of them.

    Args:
        ordered: the records of `in_order`.
        windows: the windows of the range.
        spec: the pipeline.
        aggregates: the content of a firing.
    """
    in_last = (F.col(FIRST) <= F.col(FIRINGS)) & (F.col(UNTIL) > F.col(FIRINGS))
    fired_at = F.when(_by_watermark(spec), F.col(c.FIRE_AT)).otherwise(F.col(c.ARRIVAL))
    parts = (
        ordered.withColumn(_IN_LAST, in_last)
        .groupBy(*window_of(spec), _IN_LAST)
        .agg(
            *_content(aggregates),
            F.count(F.lit(1)).alias(c.ACCEPTED),
            F.count_if(fires_at_once()).alias("late_accepted"),
            F.count_if(is_newest(ordered)).alias(c.IN_NEWEST_WINDOW),
            F.count_if(F.col(FIRST) > F.col(FIRINGS)).alias(c.UNFIRED),
            F.max(FIRINGS).alias("firings"),
            F.min(F.when(F.col(FIRES), fired_at)).alias(FIRED_AT),
        )
    )
    content = F.when(F.col(_IN_LAST), F.struct(*map(quoted, aggregates), "records"))
    whole = parts.groupBy(*window_of(spec)).agg(
        F.first(content, ignorenulls=True).alias(_CONTENT),
        F.max("firings").alias("firings"),
        F.min(FIRED_AT).alias(FIRED_AT),
        *(F.sum(name).alias(name) for name in _COUNTS),
    )
    shown = whole.select("*", *fields_of(whole, _CONTENT))
    return as_windows(_or_of_nothing(shown, ordered, spec, aggregates), windows, spec)


def as_windows(counted: DataFrame, windows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Rows of windows by what is counted of them; UNFIRED counts of those that have closed.

    Args:
        counted: content, counts, `firings` and FIRED_AT.
        windows: the windows of the range.
        spec: the pipeline.
    """
    state = F.col(c.SLOT_STATE)
    is_closed, has_fired = state == "closed", F.col("firings") > 0
    return counted.join(F.broadcast(windows), c.WINDOW).select(
        *window_columns(c.SLOT, c.SLOT_END, spec),
        "records",
        "late_accepted",
        "firings",
        F.when(has_fired & ~is_closed, "fired").otherwise(state).alias("state"),
        F.timestamp_millis(FIRED_AT).alias("fired_at"),
        F.timestamp_millis(c.CLOSE_AT).alias("closed_at"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        c.IN_NEWEST_WINDOW,
        long(0).alias(c.MISSED_PAIRS),
        c.ACCEPTED,
        F.when(is_closed, F.col(c.UNFIRED)).otherwise(F.lit(0)).alias(c.UNFIRED),
    )


def is_left() -> Column:
    """Whether a record of `in_order` is in its window still."""
    return F.col(UNTIL) == STILL_HELD


def held(
    left: DataFrame, windows: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """What the windows that have not closed hold, each with the `state` of its slot."""
    contents = left.groupBy(*window_of(spec)).agg(*_content(aggregates))
    shown = contents.join(F.broadcast(windows), c.WINDOW).where(F.col(c.SLOT_STATE) != "closed")
    state = F.col(c.SLOT_STATE).alias("state")
    return shown.select(*window_columns(c.SLOT, c.SLOT_END, spec), "records", state)


# ----------------------------------------------------------------------------------- their firings


def contents_of_firings(
    ordered: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """What each firing of each window holds, as `firings` takes it: 0 is the one on time.

    Args:
        ordered: the records of `in_order`.
        spec: the pipeline.
        aggregates: the content of a firing.
    """
    fired = ordered.where(F.col(FIRST) <= F.col(FIRINGS)).withColumn(FIRING, F.col(FIRST))
    if spec.evicts_by is not None:
        contents = _without_evicted(fired, spec, aggregates)
    elif spec.fires_by.purging:
        contents = fired.groupBy(*window_of(spec), FIRING).agg(
            *_content(aggregates), *_causes(fired, spec)
        )
    else:
        every = _in_each(fired).groupBy(*window_of(spec), FIRING)
        contents = every.agg(*_content(aggregates), *_causes(fired, spec))
    number = F.when(F.col(_ON_TIME), long(0)).otherwise(F.col(FIRING))
    return contents.withColumn(FIRING, number).drop(_ON_TIME)


def _without_evicted(
    fired: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """Firings that may hold nothing: a record can be evicted by the very firing that it causes."""
    firing = [*window_of(spec), FIRING]
    causes = fired.where(FIRES).groupBy(*firing).agg(*_causes(fired, spec))
    contents = _in_each(fired).groupBy(*firing).agg(*_content(aggregates))
    return _or_of_nothing(causes.join(contents, firing, "left"), fired, spec, aggregates)


def _in_each(fired: DataFrame) -> DataFrame:
    """The records once for each firing that holds them."""
    last = F.least(F.col(UNTIL) - 1, F.col(FIRINGS))
    held = fired.where(F.col(FIRST) < F.col(UNTIL))
    return held.withColumn(FIRING, F.explode(F.sequence(F.col(FIRST), last)))


def _causes(fired: DataFrame, spec: PipelineSpec) -> list[Column]:
    """What is told of the record that fires; null where the watermark does."""
    is_cause, on_time = F.col(FIRES) & (F.col(FIRST) == F.col(FIRING)), _by_watermark(spec)
    by_record = is_cause & ~on_time
    named = (*OF_CAUSE, *risen(fired))
    of_record = [F.max(F.when(by_record, F.col(name))).alias(name) for name in named]
    return [*of_record, F.bool_or(is_cause & on_time).alias(_ON_TIME)]


# ------------------------------------------------------------------------------------ in common


def _content(aggregates: Mapping[str, Column]) -> list[Column]:
    contents = [column.alias(name) for name, column in aggregates.items()]
    return [*contents, F.count(F.lit(1)).alias("records")]


def _by_watermark(spec: PipelineSpec) -> Column:
    """Whether what fires after a record is the watermark, at the window's end."""
    return ~fires_at_once() if spec.fires_by.fires_at_end else F.lit(False)


def _or_of_nothing(
    rows: DataFrame, records: DataFrame, spec: PipelineSpec, aggregates: Mapping[str, Column]
) -> DataFrame:
    """Rows whose `records` are null with what the aggregates give of no record at all."""
    evictor = spec.evicts_by
    if evictor is not None and not evictor.after:
        rows = with_contents_of_none(rows, records, aggregates, "records")
    return rows.withColumn("records", F.coalesce("records", long(0)))
