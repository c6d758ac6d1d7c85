"""Which rows form one session, by the rows that extend over its ends before it was dropped.

There is no replay: see `docs/algorithm.md`. A record *holds* a point p if ts <= p < ts + gap. A
session of the records on time ends at a point that no such record held before the watermark dropped
the session. A record that is too late for a session of its own is accepted only by a live session
that it touches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, long
from strandline.engine.position.clock import Closure
from strandline.engine.sessions.condense import position
from strandline.model.intervals import END_OF_INSTANTS_MS, TimeRange
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_CUT = "_strandline_cut"
_SOFT_CUT = "_strandline_soft_cut"
_LEVEL = "_strandline_level"
_BUCKET = "_strandline_bucket"
_HOLDER = "_strandline_holder"
_SAVED = "_strandline_saved"


def sessions_of(rows: DataFrame, spec: PipelineSpec, ended: Iterable[Closure] = ()) -> DataFrame:
    """The rows with the SESSION (null: late), SEGMENT and UNIT that they belong to, computed.

    Args:
        rows: the rows of `with_watermarks`.
        spec: the pipeline.
        ended: the ranges whose input had ended before the horizon, in order. Sessions that had
            begun in one by then stay as they were, and later arrivals for the range are late.
    """
    never, closed = F.lit(END_OF_INSTANTS_MS), []
    for number, closure in enumerate(ended):
        rows = rows.transform(computed)
        session = Window.partitionBy(*keys_of(spec), c.SESSION)
        known = _with_saved(_in_sessions(rows.where(F.col(c.ERA) <= number), spec), spec)
        begun = F.col(c.SESSION).isNotNull() & starts_in(
            F.min(c.START).over(session), closure.windows
        )
        closed.append(
            known.withColumn(c.ENDED, F.when(begun, long(closure.at_ms)))
            .where(F.col(c.ENDED).isNotNull())
            .transform(computed)
        )
        too_late = (F.col(c.ERA) > number) & starts_in(F.col(c.START), closure.windows)
        watermark = F.when(too_late, F.lit(MAX_WATERMARK)).otherwise(F.col(c.WATERMARK))
        rows = rows.join(closed[-1], c.ROW, "left_anti").withColumn(c.WATERMARK, watermark)
    others = _with_saved(_in_sessions(rows, spec), spec).withColumn(c.ENDED, never)
    return reduce(DataFrame.unionByName, closed, others)


def starts_in(start: Column, within: TimeRange) -> Column:
    """Whether a time lies in a range."""
    return (start >= within.start_ms) & (start < within.end_ms)


def _in_sessions(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows with the SESSION, SEGMENT and UNIT that they belong to without late records.

    SESSION is null for rows that are too late for a session of their own, SEGMENT for all that
    arrived after the watermark had reached their own end. Flink: `MergingWindowSet`.

    A row that arrived at the watermark W holds its points from W + 2 - L on before a session that
    ends there is dropped, and from W + 2 on before it fires. So the smallest point held by the rows
    that end later shows whether an end is held, and rows need not be compared pairwise.
    """
    end, watermark = F.col(c.END), F.col(c.WATERMARK)
    from_above = Window.partitionBy(*keys_of(spec)).orderBy(F.desc(c.END))
    beyond = from_above.rangeBetween(Window.unboundedPreceding, -1)
    and_here = from_above.rangeBetween(Window.unboundedPreceding, Window.currentRow)

    def cut(lateness_ms: int) -> Column:
        is_in = watermark < end - 1 + F.lit(lateness_ms)
        covered_from = F.greatest(F.col(c.START), watermark + (2 - lateness_ms))
        is_covered = F.min(F.when(is_in, covered_from)).over(beyond) <= end
        return F.when(is_in, ~F.coalesce(is_covered, F.lit(False)))

    nearest = F.min(F.when(F.col(_CUT), end)).over(and_here)
    segment = F.min(F.when(F.col(_SOFT_CUT), F.struct(c.END, c.ROW))).over(and_here)
    on_time = F.col(_SOFT_CUT).isNotNull()
    return (
        rows.withColumns({_CUT: cut(spec.allowed_lateness), _SOFT_CUT: cut(0)})
        .withColumns({c.SESSION: nearest, c.SEGMENT: segment})
        .withColumns(
            {
                c.SESSION: F.when(F.col(_CUT).isNotNull(), F.col(c.SESSION)),
                c.SEGMENT: F.when(on_time, F.col(c.SEGMENT)[c.END]),
                c.UNIT: F.when(on_time, F.col(c.SEGMENT)[c.ROW]).otherwise(F.col(c.ROW)),
            }
        )
        .drop(_CUT, _SOFT_CUT)
    )


def _with_saved(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The rows with a SESSION also for those that were too late but touch a live session.

    Args:
        rows: the rows of `_in_sessions`.
        spec: the pipeline.
    """
    keys, session_end = keys_of(spec), F.col(_HOLDER)[c.SESSION]
    alive = F.col(c.WATERMARK) < session_end - 1 + F.lit(spec.allowed_lateness)
    rows = rows.transform(computed)
    late, holders = rows.where(F.col(c.SESSION).isNull()), rows.where(F.col(c.SESSION).isNotNull())
    if late.isEmpty():
        return rows
    levels = levels_of(rows)
    while True:
        # whoever has been saved can save others: rarely more than once or twice
        watermark = covered(late, F.col(c.END), holders, keys, levels).where(alive)
        found = watermark.select(c.ROW, session_end.alias(_SAVED)).distinct().transform(computed)
        if found.isEmpty():
            return rows
        both = F.coalesce(c.SESSION, _SAVED)
        rows = rows.join(found, c.ROW, "left").withColumn(c.SESSION, both).transform(computed)
        holders = rows.where(F.col(_SAVED).isNotNull())
        rows = rows.drop(_SAVED)
        late = rows.where(F.col(c.SESSION).isNull())


def levels_of(rows: DataFrame) -> list[int]:
    """The lengths of the rows, each rounded up to a power of two (as its exponent)."""
    return sorted(row[0] for row in rows.select(_level()).distinct().collect())


def covered(
    probes: DataFrame,
    point: Column,
    holders: DataFrame,
    keys: Collection[str],
    levels: Collection[int],
) -> DataFrame:
    """The probes, once for each earlier row of their key that holds a point.

    Args:
        probes: AT, AT_SEQUENCE, START, END, and any further columns.
        point: the point of a probe, in ms.
        holders: the rows; returned as the struct `HOLDER`.
        keys: the columns in which a probe and its holder agree.
        levels: `levels_of` the holders.
    """
    # a row of length <= 2^level begins in the point's interval of 2^level or in the one before
    places = F.array(
        *(
            F.struct(F.lit(level).alias(_LEVEL), (F.shiftright(point, level) - back).alias(_BUCKET))
            for level in levels
            for back in (0, 1)
        )
    )
    asked = probes.withColumn(_BUCKET, F.explode(places)).withColumns(
        {_LEVEL: F.col(_BUCKET)[_LEVEL], _BUCKET: F.col(_BUCKET)[_BUCKET]}
    )
    placed = holders.select(
        *keys,
        _level().alias(_LEVEL),
        F.expr(f"shiftright({c.START}, length(bin({c.END} - {c.START} - 1)))").alias(_BUCKET),
        F.struct(c.START, c.END, c.SESSION, position().alias(_HOLDER)).alias(_HOLDER),
    )
    holder = F.col(_HOLDER)
    return asked.join(placed, [*keys, _LEVEL, _BUCKET]).where(
        (holder[c.START] <= point) & (point < holder[c.END]) & (holder[_HOLDER] < position())
    )


def _level() -> Column:
    return F.length(F.bin(F.col(c.END) - F.col(c.START) - 1))
