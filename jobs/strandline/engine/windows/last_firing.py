"""Windows whose last firing need not hold all that they have accepted by now.

Firings purge them, or evict, or come before their end. They accept and close as all others do.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.past.history import History
from strandline.engine.results.aggregates import with_contents_of_none
from strandline.engine.windows.contents import count_each, fire
from strandline.engine.windows.first_firings import NEXT, turn_of, window_of
from strandline.engine.windows.units import FIRST_HELD_BY, LAST_FIRING
from strandline.spec.evictor import TimeEvictor
from strandline.spec.pipeline import PipelineSpec

_KEPT = "_strandline_kept"
_IN_LAST = "_strandline_in_last_firing"
"""How many records the last firing of a window held; of an open one, how many it holds."""
_IS_IN = "_strandline_is_in_last_firing"
_LAST = "_strandline_last_number"
_HAS_FIRED = "_strandline_has_fired"
_FIRST_AT = "_strandline_first_fired_at_ms"
_TIMES_FIRED = "_strandline_times_fired"
"""How often the watermark has fired a window."""


def fire_last(
    met: DataFrame,
    units: DataFrame,
    windows: DataFrame,
    history: History,
    aggregates: dict[str, Column],
) -> DataFrame:
    """The rows of `fire`, their content that of the last firing; ACCEPTED is what all held.

    Args:
        met: the records of the range, once for each of their windows.
        units: of the accepted ones.
        windows: the windows of the range.
        history: everything observed below the horizon.
        aggregates: the content of a firing, over its units.
    """
    spec, window = history.spec, window_of(history.spec)
    contents = (
        _last_members(units, spec)
        .groupBy(*window)
        .agg(
            *(column.alias(name) for name, column in aggregates.items()),
            F.sum(c.RECORDS).alias(_IN_LAST),
        )
    )
    if spec.fires_at_times:
        # what fires empty has no content, and has fired all the same
        contents = _early(units, windows, history).join(contents, window, "left")
    counted = count_each(met, spec, {}, history.grid).join(contents, window, "left")
    if spec.fires_empty:
        counted = with_contents_of_none(counted, units, aggregates, _IN_LAST)
    nothing = F.col("records") == 0  # a row of what was refused, which is counted apart
    more = [name for name in contents.columns if name not in {*window, *aggregates}]
    emptied = {name: F.when(~nothing, F.col(name)) for name in [*aggregates, *more]}
    fired = fire(counted.withColumns(emptied), windows, spec, *more)
    if spec.fires_at_times:
        fired = _fired_early(fired)
    return fired.withColumns(
        {c.ACCEPTED: F.col("records"), "records": F.coalesce(_IN_LAST, long(0))}
    ).drop(*more)


def held_by_state(
    units: DataFrame, windows: DataFrame, history: History, aggregates: dict[str, Column]
) -> DataFrame:
    """The windows with what their state holds, in the form of `fire`.

    That is what no firing has told yet, and what one has told but neither purged nor evicted.

    Args:
        units: the accepted records, each as a unit.
        windows: the windows of the range.
        history: everything observed below the horizon.
        aggregates: the content of a window.
    """
    spec, kept = history.spec, ~_is_fired()
    if not spec.empties_as_it_fires:
        # what the next firing would find: as if the last one had evicted before it
        window, evictor = Window.partitionBy(*window_of(spec)), spec.evicts_by
        newest_ms = F.max(F.when(_is_fired(), F.col(c.TS))).over(window)
        is_left = F.lit(True)
        if isinstance(evictor, TimeEvictor):
            is_left = F.col(c.TS) > newest_ms - evictor.reach_ms
        kept |= is_left
    still_there = units.withColumn(_KEPT, kept).where(_KEPT)
    return fire(count_each(still_there, spec, aggregates, history.grid), windows, spec)


def not_evicted(
    members: DataFrame, firing: list[str], number: Column, spec: PipelineSpec
) -> DataFrame:
    """The members of firings without those that an evictor has taken out before them.

    Args:
        members: records in firings, each with the firing that holds it FIRST_HELD_BY.
        firing: what tells a firing from every other one.
        number: of the firing.
        spec: the pipeline.
    """
    return members.withColumn(_KEPT, _stays(Window.partitionBy(*firing), number, spec)).where(_KEPT)


def _stays(
    firing: WindowSpec, number: Column, spec: PipelineSpec, is_in: Column | None = None
) -> Column:
    """Whether an evictor leaves a record for a firing: of those that it holds, or that are in it.

    The newest event time of a window never falls, and is evicted only where all is. So what earlier
    firings evicted is what this one would; or the one before, where that is done after it.
    """
    evictor = spec.evicts_by
    if not isinstance(evictor, TimeEvictor):
        return F.lit(True)
    counts, is_own = F.lit(True) if is_in is None else is_in, F.lit(False)
    if evictor.after:
        is_own = F.col(FIRST_HELD_BY) == number
        counts &= ~is_own
    newest_ms = F.max(F.when(counts, F.col(c.TS))).over(firing)
    return is_own | (F.col(c.TS) > newest_ms - evictor.reach_ms)


def _is_fired() -> Column:
    """Whether some firing holds a record."""
    return F.coalesce(F.col(FIRST_HELD_BY) <= F.col(LAST_FIRING), F.lit(False))


def _last_members(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The units of the last firing of each window; of one that has not fired all of them."""
    window = Window.partitionBy(*window_of(spec))
    is_in, last = _is_fired(), F.col(LAST_FIRING)
    if spec.empties_as_it_fires:
        last = F.max(F.when(_is_fired(), F.col(FIRST_HELD_BY))).over(window)
        is_in = F.coalesce(F.col(FIRST_HELD_BY) == last, F.lit(False))
    flagged = units.withColumns(
        {_IS_IN: is_in, _LAST: last, _HAS_FIRED: F.max(_is_fired()).over(window)}
    )
    stays = _stays(window, F.col(_LAST), spec, F.col(_IS_IN))
    return flagged.withColumn(_KEPT, ~F.col(_HAS_FIRED) | (F.col(_IS_IN) & stays)).where(_KEPT)


def _early(units: DataFrame, windows: DataFrame, history: History) -> DataFrame:
    """How often, and first when, the watermark has fired each window; null: it has not."""
    spec, window = history.spec, window_of(history.spec)
    number = F.when(_is_fired(), F.col(FIRST_HELD_BY))
    first, by_watermark = F.min(number), F.when(number <= 0, number)
    times = F.least(F.max(LAST_FIRING), F.lit(0)) - first + 1
    if spec.empties_as_it_fires:
        times = F.size(F.collect_set(by_watermark)).cast("bigint")
    told = units.groupBy(*window).agg(
        first.alias(FIRST_HELD_BY),
        F.greatest(times, F.lit(0)).alias(_TIMES_FIRED),
        F.max(NEXT).alias(NEXT),
    )
    first_at = turn_of(F.col(FIRST_HELD_BY), history.axis)[c.FIRE_AT]
    return told.join(F.broadcast(windows), c.WINDOW).select(
        *window,
        F.when(F.col(FIRST_HELD_BY) <= 0, first_at).alias(_FIRST_AT),
        _TIMES_FIRED,
    )


def _fired_early(fired: DataFrame) -> DataFrame:
    """Rows of `fire` by how often, and first when, the watermark has fired the window."""
    times = F.coalesce(_TIMES_FIRED, F.lit(0))
    has_fired = (F.col("state") == "open") & (times > 0)
    return fired.withColumns(
        {
            "firings": F.col("late_accepted") + times,
            "state": F.when(has_fired, "fired").otherwise(F.col("state")),
            "fired_at": F.coalesce(F.timestamp_millis(_FIRST_AT), "fired_at"),
        }
    )
