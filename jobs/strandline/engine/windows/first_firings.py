"""Where the firings of a window begin that fires early: its first record decides.

Firings of a window are told by numbers: 0 is the one at its end, n the n-th late one, and -n the
one n times before the end (`calendar.timers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.timers import most_times
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed
from strandline.engine.past.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.records.arithmetic import date_of, event_ms, floor, instant_of
from strandline.engine.records.met import met_by, risen
from strandline.engine.values.emissions import Emissions
from strandline.engine.windows.assign import fires_at_once
from strandline.spec.chained import ResultsSpec
from strandline.spec.pipeline import PipelineSpec

NEXT = "_strandline_next"
"""When a window first fires whose first record came behind the time for it; else null."""
BEGINS_AT = "_strandline_begins_at"
"""The number of a window's first firing, of those that the watermark causes."""
AHEAD = "_strandline_time_ahead"
"""The first time of the window that the watermark had not reached as the record came."""
_OWN = "_strandline_own_time"
"""The time at which the window would begin to fire, were the record the first one in it."""
_PLACE = "_strandline_place"


def window_of(spec: PipelineSpec) -> list[str]:
    """What tells a window of a key from every other one."""
    return [*keys_of(spec), c.WINDOW]


def cells_of(met: DataFrame, history: History, parts: Sequence[Column]) -> DataFrame:
    """The records that meet their window before its end, counted together where they may be.

    Args:
        met: the accepted records, once for each window, with its timers (`timer_columns`).
        history: everything observed below the horizon.
        parts: what is counted of them.
    """
    return _in_cells(met, history, parts, AHEAD, _OWN).transform(computed)


def first_firings(
    cells: DataFrame, windows: DataFrame, history: History, emitted: Callable[[], Emissions]
) -> DataFrame:
    """Where the firings of each window of a key begin that fires early, at hand.

    Its first record decides: the first multiple of the interval after that is the first time that
    counts. If the watermark has reached it already, the window fires as the watermark next rises,
    once for each time that it has reached since. Flink: `ContinuousEventTimeTrigger`.

    Args:
        cells: of `cells_of`.
        windows: the windows with their timers.
        history: everything observed below the horizon.
        emitted: gives the emissions of all days on which a window can be open.
    """
    axis, window = history.axis, window_of(history.spec)
    # of one place the least event time is the first, and its own time the least
    told = [_PLACE, _OWN, AHEAD, c.INSTANT, c.ARRIVAL, *risen(cells)]
    firsts = (
        cells.groupBy(*window)
        .agg(F.min(F.struct(*told)).alias("first"))
        .select(*window, *(F.col("first")[name].alias(name) for name in told))
        .withColumnRenamed(_OWN, BEGINS_AT)
        .transform(computed)
    )
    found = (*window, BEGINS_AT, AHEAD)
    behind = firsts.where(F.col(AHEAD) > F.col(BEGINS_AT))
    if behind.isEmpty():
        return firsts.select(*found, _no_next(axis))
    ends = F.broadcast(windows.select(c.WINDOW, c.ENDS_FROM, c.ENDS_AT))
    rises = _next_rises(behind, emitted()).join(ends, c.WINDOW).select(*window, _next(axis))
    return firsts.join(rises, window, "left").select(*found, NEXT).transform(computed)


def parted(
    cells: DataFrame,
    met: DataFrame,
    firsts: DataFrame,
    history: History,
    parts: Sequence[Column],
) -> DataFrame:
    """The cells, those apart whose records came partly before their window first fired.

    Args:
        cells: of `cells_of`.
        met: what they were made of.
        firsts: of `first_firings`.
        history: everything observed below the horizon.
        parts: what is counted of them.
    """
    cell = [*window_of(history.spec), AHEAD]
    torn = firsts.where(F.col(NEXT).isNotNull()).select(*cell)
    if torn.isEmpty():
        return cells
    position = (c.INSTANT, *risen(met))
    apart = _in_cells(met, history, parts, AHEAD, _OWN, *position, only=torn)
    return cells.join(torn, cell, "left_anti").unionByName(apart)


def _in_cells(
    met: DataFrame,
    history: History,
    parts: Sequence[Column],
    *alike: str,
    only: DataFrame | None = None,
) -> DataFrame:
    """Records on time, those of a window together that are alike, with the place of the first."""
    spec, axis = history.spec, history.axis
    on_time = timed(met.where(~fires_at_once()), history).withColumn(_PLACE, _place(spec, axis))
    if only is not None:
        on_time = on_time.join(only, only.columns, "left_semi")
    least = [name for name in (_PLACE, c.INSTANT, c.ARRIVAL, c.LAST_TIME) if name not in alike]
    cells = on_time.groupBy(*window_of(spec), *alike).agg(
        *(F.min(name).alias(name) for name in least), F.count(F.lit(1)).alias(c.RECORDS), *parts
    )
    return cells.select("*", *(F.col(_PLACE)[name].alias(name) for name in risen(met)))


def timed(met: DataFrame, history: History) -> DataFrame:
    """Records in their windows with the numbers of two of its times: OWN and AHEAD."""
    grid, ts = history.grid, F.col(c.TS)
    if grid.interval_ms is None:
        last = F.when(F.col(c.FIRE_AT).isNotNull(), 0)
        return met.withColumns({AHEAD: F.lit(0), _OWN: F.lit(0), c.LAST_TIME: last})
    last = F.size(c.TIMES) - 1
    # as Java counts, towards zero; SQL does, too
    own_ms = ts - ts % grid.interval_ms + grid.interval_ms
    own = F.call_function("div", own_ms - _first_ms(grid), F.lit(grid.interval_ms))
    met = met.withColumns({AHEAD: F.lit(0), _OWN: F.least(own, last).cast("int") - last})
    for power in reversed(range(most_times(grid).bit_length())):
        half = 2**power
        place = F.col(AHEAD) + (half - 1)
        passed = F.get(c.TIMES, place) <= F.col(c.INSTANT)
        if risen(met):
            passed |= _by_earlier_rise(place, history.axis)
        met = met.withColumn(AHEAD, F.col(AHEAD) + F.when(passed, half).otherwise(0))
    return met.withColumn(AHEAD, F.col(AHEAD) - last)


def _by_earlier_rise(place: Column, axis: Axis) -> Column:
    """Whether one time of a window was reached after a result's INSTANT, by a rise before its own.

    Where the input of the window had ended before the horizon, all was reached at once.
    """
    next_instant = F.col(c.INSTANT) + 1
    one_by_one = (next_instant < F.col(c.ENDS_FROM)) | (next_instant == axis.literal(axis.end))
    is_next = (F.get(c.TIMES, place) == next_instant) & one_by_one
    return F.coalesce(is_next & (F.get(c.TIME_RANKS, place) < F.col(c.RISE)), F.lit(False))


def _place(spec: PipelineSpec, axis: Axis) -> Column:
    """A record's place in the order of processing, but for event times."""
    if isinstance(spec, ResultsSpec):
        return F.struct(c.INSTANT, c.RISE, c.SEQUENCE)  # those of no rise first
    if spec.source.sequence is None or axis.sequenced:
        return F.col(c.INSTANT)
    return instant_of(replace(axis, sequenced=True), F.col(c.ARRIVAL), F.col(c.SEQUENCE))


def _next_rises(behind: DataFrame, emitted: Emissions) -> DataFrame:
    """The first records that came behind, with SEEN_FROM and RANK of the watermark's next rise."""
    at_hand, arrival_day = emitted.at_hand(), date_of(F.col(c.ARRIVAL))
    probes = behind.withColumns({c.ARRIVAL_DAY: arrival_day, **met_by(behind)})
    met = at_hand.at(probes).withColumn(c.THRESHOLD, F.col(c.WATERMARK) + 1).drop(c.SEEN_FROM)
    met = met.transform(computed)
    return met.join(at_hand.crossings(met.select(c.THRESHOLD)), c.THRESHOLD)


def _next(axis: Axis) -> Column:
    """The next rise as NEXT: the end of the input at the latest, null if there is neither."""
    seen_from = F.least(c.SEEN_FROM, c.ENDS_FROM)
    at_end = seen_from == F.col(c.ENDS_FROM)
    moment = F.when(at_end, F.col(c.ENDS_AT)).otherwise(event_ms(axis, seen_from, F.col(c.RANK)))
    rise = _turn(seen_from, F.col(c.RANK), moment, axis)
    return F.when(seen_from < axis.literal(axis.never), rise).alias(NEXT)


def _no_next(axis: Axis) -> Column:
    nothing = F.lit(None)
    return F.when(F.lit(False), _turn(nothing, nothing, nothing, axis)).alias(NEXT)


def came_before_next(units: DataFrame) -> Column:
    """Whether a record came before the rise that its window waits for; null: it waits for none."""
    met, next_rise = met_by(units), F.col(NEXT)
    came_before = met[c.SEEN_FROM] < next_rise[c.SEEN_FROM]
    if not risen(units):
        return came_before
    at_once = met[c.SEEN_FROM] == next_rise[c.SEEN_FROM]
    return came_before | (at_once & (met[c.RANK] < next_rise[c.RANK]))


def turn_of(number: Column, axis: Axis) -> Column:
    """When the watermark causes a firing of a window, by its number: SEEN_FROM, RANK, FIRE_AT.

    A window whose first record came behind waits for the next rise with what has been reached.
    """
    place = F.size(c.TIMES) - 1 + number.cast("int")
    times, ranks, moments = (F.get(name, place) for name in (c.TIMES, c.TIME_RANKS, c.TIMES_AT))
    return F.greatest(_turn(times, ranks, moments, axis), NEXT)


def number_ms(number: Column, grid: Grid) -> Column:
    """The time of a window that a firing's number stands for; the end of late ones."""
    at_end = F.col(c.SLOT_END) - 1
    if grid.interval_ms is None:
        return at_end
    early = _first_ms(grid) + (F.size(c.TIMES) - 1 + number) * grid.interval_ms
    return F.when(number < 0, early).otherwise(at_end)


def _first_ms(grid: Grid) -> Column:
    """The first multiple of the interval inside a window."""
    interval_ms = grid.interval_ms or grid.size_ms
    return floor(F.col(c.SLOT), interval_ms, 0) + interval_ms


def _turn(seen_from: Column, rank: Column, at_ms: Column, axis: Axis) -> Column:
    """Where something happens, as one value that goes by place: an instant, a rank, and its ms."""
    instant = seen_from.cast("decimal(38,0)" if axis.sequenced else "bigint")
    return F.struct(
        instant.alias(c.SEEN_FROM),
        rank.cast("bigint").alias(c.RANK),
        at_ms.cast("bigint").alias(c.FIRE_AT),
    )
