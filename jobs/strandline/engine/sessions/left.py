"""What the firings of sessions tell that let records go: firings may purge, or evict by time.

A record that a firing held is in the state of whatever session holds it later: merging takes
nothing out. The newest event time of a session never falls, and is evicted only where all is. So
what earlier firings evicted is what a later one would; or the last one before it, where that is
done afterwards.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import all_of, up_to_here
from strandline.engine.results.rows import FIRED_AT
from strandline.engine.sessions.firings import LATE, ORDER, TIME, session_of
from strandline.spec.evictor import TimeEvictor
from strandline.spec.pipeline import PipelineSpec

NUMBER = "_strandline_number"
"""The number of a record in its unit."""
TOLD = "_strandline_told"
"""Whether a firing tells a record that it holds."""
NEWEST = "_strandline_newest_ms"
"""The newest event time of what a firing holds."""
OLDEST_TOLD = "_strandline_oldest_told_ms"
_EARLIER = "_strandline_earlier_ms"
_LATER = "_strandline_later_"


def with_told(members: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The records that firings hold, with TOLD and NEWEST.

    Args:
        members: FIRING, TIME, ORDER, UNIT, NUMBER and TS.
        spec: the pipeline.
    """
    firing = Window.partitionBy(c.FIRING, TIME)
    of_record = up_to_here(Window.partitionBy(c.UNIT, NUMBER).orderBy(ORDER, TIME))
    is_in = F.row_number().over(of_record) == 1 if spec.empties_as_it_fires else F.lit(True)
    newest = F.max(F.when(F.col(TOLD), F.col(c.TS))).over(firing)
    members = members.withColumn(TOLD, is_in).withColumn(NEWEST, newest)
    evictor, told = spec.evicts_by, F.col(TOLD)
    if isinstance(evictor, TimeEvictor) and not evictor.after:
        members = members.withColumn(TOLD, told & (F.col(c.TS) > F.col(NEWEST) - evictor.reach_ms))
    elif isinstance(evictor, TimeEvictor) and not spec.empties_as_it_fires:
        before = of_record.rowsBetween(Window.unboundedPreceding, -1)
        members = members.withColumn(_EARLIER, F.max(NEWEST).over(before))
        still_there = F.coalesce(F.col(c.TS) > F.col(_EARLIER) - evictor.reach_ms, F.lit(True))
        members = members.withColumn(TOLD, told & still_there)
    return members


def takes_place_of(
    newest: Column, oldest_told: Column, later_newest: Column, spec: PipelineSpec
) -> Column:
    """Whether a later firing that covers an earlier one tells all that this one has told.

    Args:
        newest: the NEWEST of the earlier one.
        oldest_told: the least event time that the earlier one told.
        later_newest: the NEWEST of the later one.
        spec: the pipeline.
    """
    evictor = spec.evicts_by
    if spec.empties_as_it_fires:
        return F.lit(False)
    if not isinstance(evictor, TimeEvictor):
        return F.lit(True)
    evicted_by = newest if evictor.after else later_newest
    return oldest_told > evicted_by - evictor.reach_ms


def last_told(told: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The windows that have been emitted and that no later firing has superseded.

    Args:
        told: the firings, once for each TIME, with what they told.
        spec: the pipeline.
    """
    session = session_of(spec)
    window = Window.partitionBy(*session, c.START, c.END)
    from_last = up_to_here(window.orderBy(F.desc(ORDER), F.desc(TIME)))
    last = (
        told.withColumns(
            {
                "firings": F.count(F.lit(1)).over(window),
                "late_accepted": F.count_if(LATE).over(window),
                FIRED_AT: F.min(FIRED_AT).over(window),
                NUMBER: F.row_number().over(from_last),
            }
        )
        .where(F.col(NUMBER) == 1)
        .drop(NUMBER)
    )
    if spec.empties_as_it_fires:
        return last
    names = (*session, c.START, c.END, ORDER, NEWEST)
    later = told.select(*(F.col(name).alias(_LATER + name) for name in names))
    covers = (F.col(_LATER + c.START) <= F.col(c.START)) & (F.col(_LATER + c.END) >= F.col(c.END))
    is_later = F.col(_LATER + ORDER) > F.col(ORDER)
    replaces = takes_place_of(F.col(NEWEST), F.col(OLDEST_TOLD), F.col(_LATER + NEWEST), spec)
    of_session = all_of(F.col(name) == F.col(_LATER + name) for name in session)
    return last.join(later, of_session & covers & is_later & replaces, "left_anti")


def still_held(
    records: DataFrame, told: DataFrame, members: DataFrame, spec: PipelineSpec
) -> DataFrame:
    """The records of sessions that their state still holds: no firing has told or evicted them.

    Args:
        records: with their UNIT.
        told: the firings that have happened, with NEWEST.
        members: FIRING and UNIT, the units that each of them holds.
        spec: the pipeline.
    """
    newest = told.select(c.FIRING, NEWEST).join(members, c.FIRING).groupBy(c.UNIT)
    both = records.join(newest.agg(F.max(NEWEST).alias(NEWEST)), c.UNIT, "left")
    evictor, is_left = spec.evicts_by, F.lit(not spec.empties_as_it_fires)
    if isinstance(evictor, TimeEvictor):
        is_left &= F.col(c.TS) > F.col(NEWEST) - evictor.reach_ms
    return both.where(F.col(NEWEST).isNull() | is_left).drop(NEWEST)
