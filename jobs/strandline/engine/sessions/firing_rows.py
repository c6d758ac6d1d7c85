"""The firings of sessions as rows: the records of each firing, and the watermark it reports."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import computed, long
from strandline.engine.records.arithmetic import date_of
from strandline.engine.results.rows import FIRED_AT, firing_columns, numbered
from strandline.engine.results.rows import ORDER as FIRING_ORDER
from strandline.engine.sessions.firings import (
    LATE,
    ORDER,
    TIME,
    is_late,
    times_fired,
)
from strandline.engine.watermark_values.emissions import Emissions
from strandline.spec.pipeline import PipelineSpec

_LATER = "_strandline_later_"
_SESSION = "_strandline_session"
_ORDER = "_strandline_order"
_NUMBER = "_strandline_number"
"""The number of a record in its unit."""


def in_firings(of_units: DataFrame, members: DataFrame | None) -> DataFrame:
    """Rows with a UNIT, once for each FIRING that contains the unit; in its own if there is none.

    Args:
        of_units: rows or records with their UNIT.
        members: UNIT and FIRING; None: every unit fires alone.
    """
    if members is None:
        return of_units.withColumn(c.FIRING, F.col(c.UNIT))
    both = of_units.join(members, c.UNIT, "left")
    return both.withColumn(c.FIRING, F.coalesce(c.FIRING, c.UNIT))


def firing_rows(
    firings: DataFrame,
    contained: DataFrame,
    emitted: Emissions,
    spec: PipelineSpec,
    aggregates: dict[str, Column],
) -> DataFrame:
    """One row for each firing, with the columns of `windows.firings`.

    Args:
        firings: the firings of `in_order`.
        contained: the accepted records with RECORD_ID, once for each FIRING that contains them.
        emitted: the emissions of the days on which something fires.
        spec: the pipeline.
        aggregates: the aggregates of a firing.
    """
    order = F.col(ORDER)
    position = {
        c.ARRIVAL_DAY: date_of(F.col(FIRED_AT)),
        c.SEEN_FROM: order["instant"],
        c.RANK: order["rank"],
    }
    probes = _with_contents(firings, contained, aggregates).withColumns(position)
    numbered = _numbered(emitted.at(probes).select(*_columns(spec)), spec)
    return _with_superseded(numbered.transform(computed), spec).drop(_SESSION, _ORDER)


def _with_contents(
    firings: DataFrame, contained: DataFrame, aggregates: dict[str, Column]
) -> DataFrame:
    """The firings, once for each TIME that they happen, with their content; see `firing_rows`."""
    each = _each_time(firings)
    contents = _contents(each, contained, aggregates)
    return each.drop("records").join(contents, [c.FIRING, TIME])


def _each_time(firings: DataFrame) -> DataFrame:
    """The firings, once for each TIME that they happen, with whether they are LATE.

    Records with one position and gap are one unit, and fire one after the other in the order of
    their ids.
    """
    times = F.sequence(long(1), times_fired())
    return firings.withColumn(TIME, F.explode(times)).withColumn(LATE, is_late())


def _contents(each: DataFrame, contained: DataFrame, aggregates: dict[str, Column]) -> DataFrame:
    """The content of each firing at each TIME: the aggregates, `records`, and its RECORD_ID.

    The n-th time, the firing contains the first n of the records that cause it, and all others.
    """
    by_id = Window.partitionBy(c.FIRING, c.UNIT).orderBy(c.RECORD_ID)
    is_cause = F.col(LATE) & (F.col(c.UNIT) == F.col(c.FIRING))
    is_fired_by = is_cause & (F.col(_NUMBER) == F.col(TIME))
    members = (
        contained.withColumn(_NUMBER, F.row_number().over(by_id))
        .join(each.select(c.FIRING, TIME, LATE, ORDER), c.FIRING)
        .where(~is_cause | (F.col(_NUMBER) <= F.col(TIME)))
    )
    return members.groupBy(c.FIRING, TIME).agg(
        *(column.alias(name) for name, column in aggregates.items()),
        F.count(F.lit(1)).alias("records"),
        F.max(F.when(is_fired_by, F.col(c.RECORD_ID))).alias(c.RECORD_ID),
    )


def _columns(spec: PipelineSpec) -> list[Column]:
    """The columns of `windows.firings` but the number, and the columns that order firings."""
    timing = F.when(F.col(LATE), "LATE").otherwise("ON_TIME")
    return [
        *firing_columns(timing, F.col(ORDER), spec),
        F.struct(c.SESSION, c.ENDED).alias(_SESSION),
        F.col(TIME),
    ]


def _numbered(firings: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The firings `numbered` in the order in which they happen, with that order as _ORDER."""
    in_order = numbered(firings, [*FIRING_ORDER, TIME], spec)
    return in_order.withColumn(_ORDER, F.struct(*FIRING_ORDER, TIME)).drop(TIME)


def _with_superseded(numbered: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The firings with all firings that each of them replaces: `supersedes_windows`.

    A firing replaces every earlier one of the same session that it covers, whatever its start and
    end.
    """
    keys = list(spec.source.key)
    own, session = ("window_start", "window_end", "firing"), [*keys, _SESSION]
    later = numbered.select(
        *session,
        *(F.col(name).alias(_LATER + name) for name in own),
        F.col(_ORDER).alias(_LATER),
    )
    is_later = (
        (F.col(_LATER) > F.col(_ORDER))
        & (F.col(_LATER + "window_start") <= F.col("window_start"))
        & (F.col(_LATER + "window_end") >= F.col("window_end"))
    )
    superseded = (
        numbered.select(*session, *own, _ORDER)
        .join(later, session)
        .where(is_later)
        .groupBy(*keys, *(F.col(_LATER + name).alias(name) for name in own))
        .agg(F.array_sort(F.collect_list(F.struct(*own))).alias("supersedes_windows"))
    )
    return numbered.join(superseded, [*keys, *own], "left")
