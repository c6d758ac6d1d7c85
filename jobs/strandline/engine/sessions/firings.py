"""The firings of sessions: the records of each, and which firings were never superseded.

A session consists of *units*: its segments, which the watermark fires when it reaches their end,
and its records behind the watermark, which fire the session at once if it has no timer left. A
firing contains the units that touch each other at that time.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import all_of, computed, long, up_to_here
from strandline.engine.position.axis import AFTER_CHANNELS, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import event_ms, first_of
from strandline.engine.results.rows import FIRED_AT
from strandline.engine.sessions.condense import AT, AT_SEQUENCE, begins, position
from strandline.engine.sessions.merge import covered
from strandline.engine.watermark_values.emissions import Emissions
from strandline.spec.pipeline import PipelineSpec

SESSION_START = "_strandline_session_start_ms"
UNITS = "_strandline_units"
FIRST_UNIT = "_strandline_first_unit"
EVENT = "_strandline_event"
"""The unit that causes a firing, as a struct."""
ORDER = "_strandline_order"
"""The position of a firing among the firings of its session."""
TIME = "_strandline_time"
"""The number of the repetition of a firing, from 1."""
LATE = "_strandline_late"
"""Whether a firing was caused by a record behind the watermark."""
_POSITION = "_strandline_position"
_POINT = "_strandline_point"
_LATER = "_later"
_BEGINS_ISLAND = "_begins_island"
_ISLAND = "_island"
_ISLAND_OF_CAUSE = "_island_of_cause"


def session_of(spec: PipelineSpec) -> list[str]:
    """The columns that identify a session."""
    return [*keys_of(spec), c.SESSION, c.ENDED]


def units_of(
    rows: DataFrame, emitted: Emissions, spec: PipelineSpec, axis: Axis, clock: Clock
) -> DataFrame:
    """The units of all sessions, with when the watermark fires and closes each.

    Args:
        rows: rows with SESSION, SEGMENT and UNIT, already computed.
        emitted: the emissions of the days on which something fires or closes.
        spec: the pipeline.
        axis: the axis of instants.
        clock: the horizon and the inputs that have ended.
    """
    session, of_position = Window.partitionBy(*session_of(spec)), (c.INSTANT, AT, AT_SEQUENCE)
    units = (
        rows.where(F.col(c.SESSION).isNotNull())
        .groupBy(*session_of(spec), c.UNIT)
        .agg(
            F.min(c.START).alias(c.START),
            F.max(c.END).alias(c.END),
            F.sum("records").alias("records"),
            *(F.max(name).alias(name) for name in (c.SEGMENT, c.WATERMARK, *of_position)),
        )
        .withColumns(
            {
                SESSION_START: F.min(c.START).over(session),
                UNITS: F.count(F.lit(1)).over(session),
                FIRST_UNIT: F.min(c.UNIT).over(session),
            }
        )
        .transform(computed)
    )
    return with_crossings(units, F.col(c.END) - 1, emitted, spec, axis, clock).transform(computed)


def with_crossings(
    rows: DataFrame, fire: Column, emitted: Emissions, spec: PipelineSpec, axis: Axis, clock: Clock
) -> DataFrame:
    """Rows of sessions, with when the watermark reaches what fires them, and what closes them.

    Args:
        rows: rows with END, SESSION_START and ENDED.
        fire: what the watermark must reach; null: nothing.
        emitted: the emissions of the days on which something fires or closes.
        spec: the pipeline.
        axis: the axis of instants.
        clock: the horizon and the inputs that have ended.
    """
    close = F.col(c.END) - 1 + F.lit(spec.allowed_lateness)
    both = F.explode(F.array_compact(F.array(fire, close))).alias(c.THRESHOLD)
    reached = emitted.crossings(rows.select(both)).transform(computed)
    closing = reached.select(
        c.THRESHOLD, F.col(c.SEEN_FROM).alias(c.CLOSE_FROM), F.col(c.RANK).alias(c.CLOSE_RANK)
    )
    timed = (
        rows.withColumn(c.THRESHOLD, fire)
        .join(reached.withColumnRenamed(c.SEEN_FROM, c.FIRE_FROM), c.THRESHOLD, "left")
        .withColumn(c.THRESHOLD, close)
        .join(closing, c.THRESHOLD)
        .drop(c.THRESHOLD)
    )
    return timed.withColumns(
        {name: _bounded(F.col(name), axis, clock) for name in (c.FIRE_FROM, c.CLOSE_FROM)}
    )


def _bounded(seen_from: Column, axis: Axis, clock: Clock) -> Column:
    """The crossing of a session; at the latest, the end of its input."""
    ended = first_of(axis, F.col(c.ENDED))
    at_end = F.least(seen_from, F.lit(axis.literal(axis.end)))
    seen_from = F.when(ends_now(clock), at_end).otherwise(seen_from)
    had_ended = F.col(c.ENDED) < clock.horizon_ms
    beyond = seen_from >= ended + axis.literal(axis.known_below(0))
    return F.when(had_ended & beyond, ended).otherwise(seen_from)


def ends_now(clock: Clock) -> Column:
    """Whether the input of a session, by its SESSION_START, ends at the horizon."""
    start, inside = F.col(SESSION_START), F.lit(False)
    for closure in clock.closures:
        if closure.at_ms == clock.horizon_ms:
            windows = closure.windows
            inside |= (start >= windows.start_ms) & (start < windows.end_ms)
    return inside


def crossed_at_ms(seen_from: Column, rank: Column, axis: Axis, clock: Clock) -> Column:
    """The millisecond of a crossing; null if there was none."""
    never, end = F.lit(axis.literal(axis.never)), F.lit(axis.literal(axis.end))
    at_its_end = (F.col(c.ENDED) < clock.horizon_ms) & (seen_from == first_of(axis, F.col(c.ENDED)))
    return (
        F.when(at_its_end, F.col(c.ENDED) - 1)
        .when(seen_from < end, event_ms(axis, seen_from, rank))
        .when(seen_from < never, clock.horizon_ms - 1)
    )


def latest_close() -> list[Column]:
    """When the last of some units closes, and by which channel."""
    return [
        F.max(c.CLOSE_FROM).alias(c.CLOSE_FROM),
        F.max_by(c.CLOSE_RANK, c.CLOSE_FROM).alias(c.CLOSE_RANK),
    ]


def fires_once() -> Column:
    """Whether a session is one segment: it fires once, with all its records."""
    return (F.col(UNITS) == 1) & F.col(c.SEGMENT).isNotNull()


def _event() -> Column:
    own = (c.UNIT, c.START, c.END, c.SEGMENT, c.WATERMARK, c.INSTANT, AT, AT_SEQUENCE)
    return F.struct(*own, c.FIRE_FROM, c.RANK, "records", position().alias(_POSITION)).alias(EVENT)


def units_in_firings(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The units in each firing: a row for each unit and FIRING, with the cause as an EVENT.

    Each unit may cause a firing. The firing contains the unit, and all units already present that
    are connected with it: their windows overlap or touch each other.

    Args:
        units: the rows of `units_of`.
        spec: the pipeline.
    """
    session = session_of(spec)
    of_firing = Window.partitionBy(c.FIRING)
    by_start = of_firing.orderBy(c.START)
    so_far = up_to_here(by_start)
    is_cause = F.col(c.UNIT) == F.col(c.FIRING)
    island_of_cause = F.max(F.when(is_cause, F.col(_ISLAND))).over(of_firing)
    return (
        units.select(*session, _event())
        .join(units, session)
        .where(_is_there_at(F.col(EVENT)))
        .withColumn(c.FIRING, F.col(EVENT)[c.UNIT])
        .withColumn(_BEGINS_ISLAND, begins(by_start).cast("int"))
        .withColumn(_ISLAND, F.sum(_BEGINS_ISLAND).over(so_far))
        .withColumn(_ISLAND_OF_CAUSE, island_of_cause)
        .where(F.col(_ISLAND) == F.col(_ISLAND_OF_CAUSE))
        .drop(_BEGINS_ISLAND, _ISLAND, _ISLAND_OF_CAUSE)
    )


def _is_there_at(event: Column) -> Column:
    """Whether a unit is present when another unit of its session causes a firing.

    When the watermark fires a segment, present are the segments up to it, and the records behind
    the watermark that arrived before that. When a record behind the watermark fires, present are
    such records up to it, and the segments that the watermark at its arrival had fired.
    """
    by_watermark, is_segment = event[c.SEGMENT].isNotNull(), F.col(c.SEGMENT).isNotNull()
    last_ms = F.col(c.END) - 1
    as_watermark_fires = F.when(is_segment, F.col(c.END) <= event[c.END]).otherwise(
        F.col(c.WATERMARK) < event[c.END] - 1
    )
    as_record_fires = F.when(is_segment, last_ms <= event[c.WATERMARK]).otherwise(
        position() <= event[_POSITION]
    )
    return F.when(by_watermark, as_watermark_fires).otherwise(as_record_fires)


def fired(units: DataFrame, rows: DataFrame, levels: list[int], spec: PipelineSpec) -> DataFrame:
    """The firings of sessions that do not fire just once: START, END, `records` and EVENT.

    A record behind the watermark does not fire if an earlier record that was on time extends over
    the end of its session: then the session still has its timer. Flink: `EventTimeTrigger`.

    Args:
        units: the rows of `units_in_firings`.
        rows: the rows of `units_of`.
        levels: see `levels_of`.
        spec: the pipeline.
    """
    session, event = session_of(spec), F.col(EVENT)
    found = units.groupBy(*session, c.FIRING).agg(
        F.min(c.START).alias(c.START),
        F.max(c.END).alias(c.END),
        F.sum("records").alias("records"),
        *latest_close(),
        F.any_value(EVENT).alias(EVENT),
    )
    probes = found.where(is_late()).select(
        *session,
        c.FIRING,
        F.col(c.END).alias(_POINT),
        *(event[name].alias(name) for name in (AT, AT_SEQUENCE, c.START, c.END)),
    )
    on_time = rows.where(F.col(c.SEGMENT).isNotNull())
    timers = covered(probes, F.col(_POINT), on_time, session, levels)
    have_timer = timers.select(c.FIRING).distinct()
    return found.join(have_timer, c.FIRING, "left_anti")


def fired_once(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The firings of sessions that fire once, in the form of `fired`."""
    own = (c.START, c.END, "records", c.CLOSE_FROM, c.CLOSE_RANK)
    return units.select(*session_of(spec), F.col(c.UNIT).alias(c.FIRING), *own, _event())


def is_late() -> Column:
    """Whether a firing was caused by a record behind the watermark, instead of the watermark."""
    return F.col(EVENT)[c.SEGMENT].isNull()


def in_order(firings: DataFrame, axis: Axis, clock: Clock) -> DataFrame:
    """The firings that happen before the horizon, each with its ORDER and FIRED_AT."""
    event, late = F.col(EVENT), is_late()
    order = F.struct(
        F.when(late, event[c.INSTANT]).otherwise(event[c.FIRE_FROM]).alias("instant"),
        F.when(late, F.lit(AFTER_CHANNELS)).otherwise(event[c.RANK]).alias("rank"),
        F.when(late, event[AT_SEQUENCE]).alias("sequence"),
        F.when(late, event[c.START]).alias("ts_ms"),
        # a watermark fires by rising ends; records of one time fire by rising gaps
        event[c.END].alias("window_ms"),
    )
    crossed_ms = crossed_at_ms(event[c.FIRE_FROM], event[c.RANK], axis, clock)
    fired_at_ms = F.when(late, event[AT]).otherwise(crossed_ms)
    happens = late | (event[c.FIRE_FROM] < axis.literal(axis.never))
    return firings.where(happens).withColumns({ORDER: order, FIRED_AT: fired_at_ms})


def times_fired() -> Column:
    """How often a firing happens: records with one position and gap fire one after the other."""
    return F.when(is_late(), F.col(EVENT)["records"]).otherwise(long(1))


def not_superseded(firings: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The windows that `fired` has emitted and no later firing has superseded.

    Their FIRING is the last one. In a session, a later firing that covers an earlier one has all of
    its records. One that merely encloses the range of a dropped session supersedes nothing.
    """
    session = session_of(spec)
    late = F.when(is_late(), F.col(EVENT)["records"]).otherwise(F.lit(0))
    windows = firings.groupBy(*session, c.START, c.END).agg(
        F.max_by(c.FIRING, ORDER).alias(c.FIRING),
        F.max_by("records", ORDER).alias("records"),
        F.sum(times_fired()).alias("firings"),
        F.sum(late).alias("late_accepted"),
        F.min_by(FIRED_AT, ORDER).alias(FIRED_AT),
        *latest_close(),
        F.max(ORDER).alias(ORDER),
    )
    later = windows.select(
        *(F.col(name).alias(_LATER + name) for name in (*session, c.START, c.END, ORDER))
    )
    of_session = all_of(F.col(name) == F.col(_LATER + name) for name in session)
    covers = (F.col(_LATER + c.START) <= F.col(c.START)) & (F.col(_LATER + c.END) >= F.col(c.END))
    is_later = F.col(_LATER + ORDER) > F.col(ORDER)
    return windows.join(later, of_session & covers & is_later, "left_anti")
