"""The firing history: every emission of every window, in Flink's order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.past.history import History
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.engine.results.aggregates import with_contents_of_none
from strandline.engine.results.rows import window_columns
from strandline.engine.values.emissions import Emissions
from strandline.engine.windows.first_firings import NEXT, number_ms, turn_of, window_of
from strandline.engine.windows.last_firing import not_evicted
from strandline.engine.windows.units import CAUSE, FIRST_HELD_BY, LAST_FIRING, is_late
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_FIRING = "_strandline_nth_firing"
"""The number of a firing in its window: see `first_firings`."""
_TIME = "_strandline_time_ms"
"""The event time that the watermark has reached as it fires a window."""
_TURN = "_strandline_turn"


def firings(
    units: DataFrame,
    windows: DataFrame,
    emitted: Emissions,
    history: History,
    aggregates: dict[str, Column],
) -> DataFrame:
    """One row for each firing of each window, with its content, its watermark and its position.

    A window fires when the watermark reaches its end, if it holds a record by then (`ON_TIME`),
    and again at each record that it accepts later (`LATE`), with all that it holds by then: that
    record alone, if firings purge. Under a continuous trigger it fires before that, too (`EARLY`).

    Args:
        units: of the accepted records; RECORD_ID is the `fired_by` of a LATE firing.
        windows: the windows of the range.
        emitted: the emissions of the days on which something fires.
        history: everything observed below the horizon.
        aggregates: the content of a firing, over its units.
    """
    spec = history.spec
    contents = _contents(_members(units, spec), aggregates, spec)
    placed = _placed(contents.join(F.broadcast(windows), c.WINDOW), history)
    firing = Window.partitionBy("window_start", "window_end", *spec.source.key).orderBy(_FIRING)
    replaces = F.lit(not spec.empties_as_it_fires) & (F.col("firing") > 1)
    return (
        emitted.at(placed)
        .select(*_columns(spec), _FIRING)
        .withColumn("firing", F.row_number().over(firing).cast("bigint"))
        .withColumn("supersedes", F.when(replaces, F.col("firing") - 1))
        .drop(_FIRING)
    )


def _members(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The units of windows that have fired, once for each FIRING that holds them.

    A unit belongs to the first firing that holds it and, unless that empties the window, to all
    that follow.
    """
    last = F.col(FIRST_HELD_BY if spec.empties_as_it_fires else LAST_FIRING)
    return units.where(F.col(FIRST_HELD_BY) <= F.col(LAST_FIRING)).withColumn(
        _FIRING, F.explode(F.sequence(FIRST_HELD_BY, last))
    )


def _contents(members: DataFrame, aggregates: dict[str, Column], spec: PipelineSpec) -> DataFrame:
    """What each FIRING of each window holds; of a late one, where the record that causes it is."""
    firing = [*window_of(spec), _FIRING]
    is_cause = is_late() & (F.col(FIRST_HELD_BY) == F.col(_FIRING))
    causes = [F.max(F.when(is_cause, F.col(name))).alias(name) for name in CAUSE]
    causes += [F.max(NEXT).alias(NEXT)] if spec.fires_by.fires_early else []
    contents = [
        *(column.alias(name) for name, column in aggregates.items()),
        F.sum(c.RECORDS).alias("records"),
    ]
    if spec.evicts_by is None:
        return members.groupBy(*firing).agg(*contents, *causes)
    # a record may be evicted by the very firing that it causes
    kept = not_evicted(members, firing, F.col(_FIRING), spec).groupBy(*firing).agg(*contents)
    if not spec.fires_empty:
        return kept.join(members.groupBy(*firing).agg(*causes), firing)
    found = members.groupBy(*firing).agg(*causes).join(kept, firing, "left")
    found = with_contents_of_none(found, members, aggregates, "records")
    return found.withColumn("records", F.coalesce("records", F.lit(0).cast("bigint")))


def _placed(firings: DataFrame, history: History) -> DataFrame:
    """Firings with their position: where the watermark fires the window, or the late record is."""
    if history.spec.fires_by.fires_early:
        turn = turn_of(F.col(_FIRING), history.axis)
        firings = firings.withColumn(_TURN, turn).withColumns(
            {
                c.FIRE_FROM: F.col(_TURN)[c.SEEN_FROM],
                c.RANK: F.col(_TURN)[c.RANK],
                c.FIRE_AT: F.col(_TURN)[c.FIRE_AT],
            }
        )
    fired_on = F.timestamp_millis(c.FIRE_AT).cast("date")
    return firings.withColumns(
        {
            _TIME: number_ms(F.col(_FIRING), history.grid),
            c.SEEN_FROM: _by_watermark_or_late(F.col(c.FIRE_FROM), F.col(c.INSTANT)),
            c.RANK: _by_watermark_or_late(F.col(c.RANK), F.lit(AFTER_CHANNELS)),
            c.ARRIVAL_DAY: _by_watermark_or_late(fired_on, F.col(c.ARRIVAL_DAY)),
        }
    ).withColumn("order_rank", F.col(c.RANK))


def _columns(spec: PipelineSpec) -> list[Column]:
    """The columns of `windows.firings`, but for what numbers the firings."""
    fired_at = F.timestamp_millis(_by_watermark_or_late(F.col(c.FIRE_AT), F.col(c.ARRIVAL)))
    # a watermark fires by rising times, a record its newest window first
    order_window = _by_watermark_or_late(F.col(_TIME) + 1, -F.col(c.SLOT_END))
    timing = F.when(F.col(_FIRING) < 0, "EARLY").otherwise(
        _by_watermark_or_late(F.lit("ON_TIME"), F.lit("LATE"))
    )
    return [
        *window_columns(c.SLOT, c.SLOT_END, spec),
        F.col("records"),
        timing.alias("timing"),
        fired_at.alias("fired_at"),
        F.col(c.RECORD_ID).alias("fired_by"),
        F.nullif(F.col(c.WATERMARK), F.lit(MIN_WATERMARK)).alias("watermark_ms"),
        F.col(c.SEEN_FROM).cast("decimal(38,0)").alias("order_instant"),
        F.col("order_rank"),
        F.col(c.SEQUENCE).alias("order_sequence"),
        F.col(c.TS).alias("order_ts_ms"),
        order_window.alias("order_window_ms"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    ]


def _by_watermark_or_late(by_watermark: Column, late: Column) -> Column:
    """What holds of a firing that the watermark has caused, or of one by a late record."""
    return F.when(F.col(_FIRING) <= 0, by_watermark).otherwise(late)
