"""When the watermark fires and closes windows that are no slots of the calendar.

These are sessions, and windows that a trigger fires before their end. A window also fires and
closes as its input ends. For the slots of a calendar, `calendar.slot_times` gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import computed, long
from strandline.engine.position.axis import END_RANK, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import event_ms, first_of, happened_before
from strandline.engine.watermark_values.emissions import Emissions

FIRES = (c.FIRE_FROM, c.RANK)
"""The columns of the crossing that fires a window: the instant, and the rank of the advance."""
CLOSES = (c.CLOSE_FROM, c.CLOSE_RANK)
"""The columns of the crossing that closes a window."""


def with_crossings(
    rows: DataFrame, thresholds: Mapping[tuple[str, str], Column], emitted: Emissions
) -> DataFrame:
    """Rows of windows, with the positions at which the watermark reaches thresholds of each.

    Args:
        rows: rows with ENDED: when the input of the window has ended, in ms; null: it has not.
        thresholds: each threshold in ms, by the names of the columns of its crossing (FIRES,
            CLOSES); null: none is looked up.
        emitted: the emissions of the days on which they may be reached.

    Returns:
        The rows with the columns of the crossings. If the input of the window ends before, its end
        is the crossing, with END_RANK, or with the channel if the input ends channel by channel.
    """
    asked = F.explode(F.array_compact(F.array(*thresholds.values()))).alias(c.THRESHOLD)
    reached = emitted.crossings(rows.select(asked))
    if len(thresholds) > 1:
        reached = computed(reached)
    for (instant, rank), threshold in thresholds.items():
        crossing = reached.select(
            c.THRESHOLD, F.col(c.SEEN_FROM).alias(instant), F.col(c.RANK).alias(rank)
        )
        rows = rows.withColumn(c.THRESHOLD, threshold).join(crossing, c.THRESHOLD, "left")
        rows = rows.withColumns(_bounded(instant, rank, emitted.history.axis, emitted.clock))
    return rows.drop(c.THRESHOLD)


def _bounded(name: str, rank_name: str, axis: Axis, clock: Clock) -> dict[str, Column]:
    """A crossing and its rank; at the latest, the end of the input of the window."""
    seen_from, rank, ended = F.col(name), F.col(rank_name), first_of(axis, F.col(c.ENDED))
    is_by_channel = F.lit(clock.by_channel) & (F.col(c.ENDED) == clock.horizon_ms)
    is_at_end = F.col(c.ENDED).isNotNull() & ~happened_before(axis, ended, seen_from, rank)
    return {
        name: F.when(is_by_channel, F.least(seen_from, F.lit(axis.literal(axis.end))))
        .when(is_at_end, ended)
        .otherwise(seen_from),
        rank_name: F.when(is_at_end & ~is_by_channel, long(END_RANK)).otherwise(rank),
    }


def crossed_at_ms(crossing: tuple[str, str], emitted: Emissions) -> Column:
    """The millisecond of a crossing of `with_crossings`; null if there was none."""
    axis, seen_from, rank = emitted.history.axis, *map(F.col, crossing)
    never, end = F.lit(axis.literal(axis.never)), F.lit(axis.literal(axis.end))
    return (
        F.when(rank == END_RANK, F.col(c.ENDED) - 1)
        .when(seen_from < end, event_ms(axis, seen_from, rank))
        .when(seen_from < never, emitted.clock.horizon_ms - 1)
    )
