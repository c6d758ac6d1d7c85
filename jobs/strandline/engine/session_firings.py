"""The firings of sessions: what each of them held, and which were never superseded.

A session is made of *units*: its segments, which the watermark fires when it reaches their end, and
its records behind the watermark, which fire the session at once if that has no timer left. A firing
holds the units that touch each other by then.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.axis import Axis
from strandline.engine.digest import AT, AT_SEQUENCE, keys_of, position, row_instant
from strandline.engine.emissions import Emissions
from strandline.engine.history import Clock
from strandline.engine.sessions import held
from strandline.spec.pipeline import PipelineSpec

SESSION_START = "_strandline_session_start_ms"
UNITS = "_strandline_units"
FIRST_UNIT = "_strandline_first_unit"
EVENT = "_strandline_event"
"""The unit that causes a firing, as a struct."""
FIRED_AT = "_strandline_fired_at_ms"
ORDER = "_strandline_order"
"""Where a firing stands among those of its session."""
_POSITION = "_strandline_position"
_POINT = "_strandline_point"
_LATER = "_later"


def session_of(spec: PipelineSpec) -> list[str]:
    """What tells a session from every other one."""
    return [*keys_of(spec), c.SESSION, c.ENDED]


def units_of(
    rows: DataFrame, emitted: Emissions, spec: PipelineSpec, axis: Axis, clock: Clock
) -> DataFrame:
    """The units of all sessions, with where the watermark fires and closes what ends with them.

    Args:
        rows: with SESSION, SEGMENT and UNIT; at hand.
        emitted: the emissions of the days on which something fires or closes.
        spec: the pipeline.
        axis: its axis.
        clock: what is known.
    """
    session = Window.partitionBy(*session_of(spec))
    units = (
        rows.where(F.col(c.SESSION).isNotNull())
        .groupBy(*session_of(spec), c.UNIT)
        .agg(
            F.min(c.START).alias(c.START),
            F.max(c.END).alias(c.END),
            F.sum("records").alias("records"),
            *(F.max(name).alias(name) for name in (c.SEGMENT, c.WATERMARK, AT, AT_SEQUENCE)),
        )
        .withColumns(
            {
                SESSION_START: F.min(c.START).over(session),
                UNITS: F.count(F.lit(1)).over(session),
                FIRST_UNIT: F.min(c.UNIT).over(session),
            }
        )
        .localCheckpoint()
    )
    fire, close = F.col(c.END) - 1, F.col(c.END) - 1 + F.lit(spec.allowed_lateness)
    asked = units.select(F.explode(F.array(fire, close)).alias(c.THRESHOLD))
    reached = emitted.crossings(asked).localCheckpoint()
    closing = reached.select(c.THRESHOLD, F.col(c.SEEN_FROM).alias(c.CLOSE_FROM))
    timed = (
        units.withColumn(c.THRESHOLD, fire)
        .join(reached.withColumnRenamed(c.SEEN_FROM, c.FIRE_FROM), c.THRESHOLD)
        .withColumn(c.THRESHOLD, close)
        .join(closing, c.THRESHOLD)
        .drop(c.THRESHOLD)
    )
    return timed.withColumns(
        {name: _bounded(F.col(name), axis, clock) for name in (c.FIRE_FROM, c.CLOSE_FROM)}
    ).localCheckpoint()


def _bounded(seen_from: Column, axis: Axis, clock: Clock) -> Column:
    """A crossing of a session, which is at the end of its input at the latest."""
    start, ended = F.col(SESSION_START), _first_of(F.col(c.ENDED), axis)
    now = [closure.windows for closure in clock.closures if closure.at_ms == clock.horizon_ms]
    at_end = F.least(seen_from, F.lit(axis.literal(axis.end)))
    for windows in now:
        inside = (start >= windows.start_ms) & (start < windows.end_ms)
        seen_from = F.when(inside, at_end).otherwise(seen_from)
    had_ended = F.col(c.ENDED) < clock.horizon_ms
    beyond = seen_from >= ended + axis.literal(axis.known_below(0))
    return F.when(had_ended & beyond, ended).otherwise(seen_from)


def _first_of(arrival_ms: Column, axis: Axis) -> Column:
    """The set form of `Axis.first_of`."""
    if not axis.sequenced:
        return arrival_ms
    return arrival_ms.cast("decimal(20,0)") * F.lit(Decimal(axis.scale))


def moment_ms(seen_from: Column, axis: Axis, clock: Clock) -> Column:
    """The millisecond of a crossing; null if there was none. The set form of `Axis.event_ms`."""
    happened = seen_from
    if axis.interval_ms is None:
        happened = seen_from - 1
        if axis.sequenced:
            scale = F.lit(Decimal(axis.scale))
            happened = F.call_function("div", happened - F.pmod(happened, scale), scale)
    never, end = F.lit(axis.literal(axis.never)), F.lit(axis.literal(axis.end))
    at_its_end = (F.col(c.ENDED) < clock.horizon_ms) & (
        seen_from == _first_of(F.col(c.ENDED), axis)
    )
    return (
        F.when(at_its_end, F.col(c.ENDED) - 1)
        .when(seen_from < end, happened)
        .when(seen_from < never, clock.horizon_ms - 1)
    )


def is_quiet() -> Column:
    """Whether a session is one segment: it fires once, with everything."""
    return (F.col(UNITS) == 1) & F.col(c.SEGMENT).isNotNull()


def islands(loud: DataFrame, spec: PipelineSpec) -> DataFrame:
    """For every unit as an EVENT the units that hang together with it at its moment."""
    session = session_of(spec)
    carried = (c.UNIT, c.START, c.END, c.SEGMENT, c.WATERMARK, AT, AT_SEQUENCE, c.FIRE_FROM, c.RANK)
    events = loud.select(
        *session,
        F.struct(*carried, "records", position().alias(_POSITION)).alias(EVENT),
    )
    event = F.col(EVENT)
    by_watermark, behind = event[c.SEGMENT].isNotNull(), F.col(c.SEGMENT).isNull()
    there = F.when(
        by_watermark,
        F.when(behind, F.col(c.WATERMARK) < event[c.END] - 1).otherwise(
            F.col(c.END) <= event[c.END]
        ),
    ).otherwise(
        F.when(behind, position() <= event[_POSITION]).otherwise(
            F.col(c.END) - 1 <= event[c.WATERMARK]
        )
    )
    firing = Window.partitionBy(c.FIRING)
    by_start = firing.orderBy(c.START)
    reach = F.max(c.END).over(by_start.rowsBetween(Window.unboundedPreceding, -1))
    begins = (F.col(c.START) > reach).cast("int")
    return (
        events.join(loud, session)
        .where(there)
        .withColumn(c.FIRING, event[c.UNIT])
        .withColumn("_begins", F.coalesce(begins, F.lit(1)))
        .withColumn(
            "_island",
            F.sum("_begins").over(by_start.rowsBetween(Window.unboundedPreceding, 0)),
        )
        .withColumn(
            "_own", F.max(F.when(F.col(c.UNIT) == F.col(c.FIRING), F.col("_island"))).over(firing)
        )
        .where(F.col("_island") == F.col("_own"))
        .drop("_begins", "_island", "_own")
    )


def fired(
    together: DataFrame,
    rows: DataFrame,
    levels: list[int],
    spec: PipelineSpec,
    axis: Axis,
    clock: Clock,
) -> DataFrame:
    """The firings of sessions that are not quiet, each with its START, END, ORDER and EVENT.

    A record behind the watermark does not fire if a record on time, come before it, holds the end
    of what it hangs together with: that session still has its timer. Flink: `EventTimeTrigger`.

    Args:
        together: of `islands`.
        rows: the rows of `units_of`.
        levels: of the rows' lengths.
        spec: the pipeline.
        axis: its axis.
        clock: what is known.
    """
    session = session_of(spec)
    event = F.col(EVENT)
    found = together.groupBy(*session, SESSION_START, c.FIRING).agg(
        F.min(c.START).alias(c.START),
        F.max(c.END).alias(c.END),
        F.sum("records").alias("records"),
        F.max(c.CLOSE_FROM).alias(c.CLOSE_FROM),
        F.any_value(EVENT).alias(EVENT),
    )
    late = event[c.SEGMENT].isNull()
    probes = found.where(late).select(
        *session,
        c.FIRING,
        F.col(c.END).alias(_POINT),
        *(event[name].alias(name) for name in (AT, AT_SEQUENCE, c.START, c.END)),
    )
    on_time = rows.where(F.col(c.SEGMENT).isNotNull())
    silent = held(probes, F.col(_POINT), on_time, session, levels).select(c.FIRING).distinct()
    order = F.when(
        late,
        F.struct(
            row_instant(axis).alias("instant"),
            F.lit(1).alias("late"),
            F.col(AT_SEQUENCE).alias("rank"),
            event[c.START].alias("time"),
            event[c.END].alias("end"),
        ),
    ).otherwise(
        F.struct(
            event[c.FIRE_FROM].alias("instant"),
            F.lit(0).alias("late"),
            event[c.RANK].alias("rank"),
            event[c.END].alias("time"),
            event[c.END].alias("end"),
        )
    )
    happens = late | (event[c.FIRE_FROM] < axis.literal(axis.never))
    return (
        found.where(happens)
        .join(silent, c.FIRING, "left_anti")
        .withColumns({name: event[name] for name in (AT, AT_SEQUENCE)})
        .withColumn(ORDER, order)
        .withColumn(
            FIRED_AT,
            F.when(late, F.col(AT)).otherwise(moment_ms(event[c.FIRE_FROM], axis, clock)),
        )
        .drop(AT, AT_SEQUENCE)
    )


def standing(firings: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The windows that `fired` has emitted and no later firing has superseded.

    Their FIRING is the last one. Inside a session a later firing that covers an earlier one holds
    all of its records; what merely encloses a session that was dropped supersedes nothing.
    """
    session = session_of(spec)
    copies = F.when(F.col(EVENT)[c.SEGMENT].isNull(), F.col(EVENT)["records"]).otherwise(F.lit(1))
    late = F.when(F.col(EVENT)[c.SEGMENT].isNull(), F.col(EVENT)["records"]).otherwise(F.lit(0))
    windows = firings.groupBy(*session, SESSION_START, c.START, c.END).agg(
        F.max_by(c.FIRING, ORDER).alias(c.FIRING),
        F.max_by("records", ORDER).alias("records"),
        F.sum(copies).alias("firings"),
        F.sum(late).alias("late_accepted"),
        F.min_by(FIRED_AT, ORDER).alias(FIRED_AT),
        F.max(c.CLOSE_FROM).alias(c.CLOSE_FROM),
        F.max(ORDER).alias(ORDER),
    )
    later = windows.select(
        *(F.col(name).alias(_LATER + name) for name in (*session, c.START, c.END, ORDER))
    )
    of_session = reduce(Column.__and__, (F.col(name) == F.col(_LATER + name) for name in session))
    covers = (F.col(_LATER + c.START) <= F.col(c.START)) & (F.col(_LATER + c.END) >= F.col(c.END))
    is_later = F.col(_LATER + ORDER) > F.col(ORDER)
    return windows.join(later, of_session & covers & is_later, "left_anti")
