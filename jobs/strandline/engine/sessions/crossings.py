"""When the watermark reaches the times at which sessions fire and close."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import computed, long
from strandline.engine.position.axis import END_RANK, Axis
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import event_ms, first_of, happened_before
from strandline.engine.watermark_values.emissions import Emissions


def with_crossings(
    rows: DataFrame, fire: Column, emitted: Emissions, allowed_lateness_ms: int
) -> DataFrame:
    """Rows of sessions, with the instants at which the watermark fires and closes them.

    Args:
        rows: rows with END and ENDED.
        fire: the watermark that fires the session; null: none does.
        emitted: the emissions of the days on which something fires or closes.
        allowed_lateness_ms: how long a session stays in state after its end.

    Returns:
        The rows with FIRE_FROM, RANK, CLOSE_FROM and CLOSE_RANK; END_RANK: the input had ended.
    """
    axis, clock = emitted.history.axis, emitted.clock
    close = F.col(c.END) - 1 + F.lit(allowed_lateness_ms)
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
    of_fire = _bounded(c.FIRE_FROM, c.RANK, axis, clock)
    return timed.withColumns(of_fire | _bounded(c.CLOSE_FROM, c.CLOSE_RANK, axis, clock))


def _bounded(name: str, rank_name: str, axis: Axis, clock: Clock) -> dict[str, Column]:
    """The crossing of a session and its rank; at the latest, the end of its input."""
    seen_from, rank, ended = F.col(name), F.col(rank_name), first_of(axis, F.col(c.ENDED))
    is_by_channel = F.lit(clock.by_channel) & (F.col(c.ENDED) == clock.horizon_ms)
    is_at_end = F.col(c.ENDED).isNotNull() & ~happened_before(axis, ended, seen_from, rank)
    return {
        name: F.when(is_by_channel, F.least(seen_from, F.lit(axis.literal(axis.end))))
        .when(is_at_end, ended)
        .otherwise(seen_from),
        rank_name: F.when(is_at_end & ~is_by_channel, long(END_RANK)).otherwise(rank),
    }


def crossed_at_ms(seen_from: Column, rank: Column, axis: Axis, clock: Clock) -> Column:
    """The millisecond of a crossing; null if there was none."""
    never, end = F.lit(axis.literal(axis.never)), F.lit(axis.literal(axis.end))
    return (
        F.when(rank == END_RANK, F.col(c.ENDED) - 1)
        .when(seen_from < end, event_ms(axis, seen_from, rank))
        .when(seen_from < never, clock.horizon_ms - 1)
    )
