"""The firing history: every emission of every window, in Flink's order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.past.history import History
from strandline.engine.records.met import met_by
from strandline.engine.results.aggregates import Partial, with_contents_of_none
from strandline.engine.results.rows import fired_with, numbered, window_columns
from strandline.engine.values.emissions import Emissions
from strandline.engine.windows.assign import fires_at_once
from strandline.engine.windows.first_firings import NEXT, number_ms, turn_of, window_of
from strandline.engine.windows.last_firing import not_evicted
from strandline.engine.windows.units import FIRST_HELD_BY, LAST_FIRING, OF_CAUSE, is_late
from strandline.spec.pipeline import PipelineSpec

FIRING = "_strandline_nth_firing"
"""The number of a firing in its window: see `first_firings`."""
_TIME = "_strandline_time_ms"
"""The event time that the watermark has reached as it fires a window."""
_TURN = "_strandline_turn"


def firings(
    contents: DataFrame, windows: DataFrame, emitted: Emissions, history: History
) -> DataFrame:
    """One row for each firing of each window, with its content, its watermark and its position.

    A window fires when the watermark reaches its end (`ON_TIME`), or a time before that (`EARLY`),
    or at a record that comes before (`EARLY`) or after its end (`LATE`), as its trigger says.

    Args:
        contents: what each firing holds, and where the record is that causes it.
        windows: the windows of the range.
        emitted: the emissions of the days on which something fires.
        history: everything observed below the horizon.
    """
    spec = history.spec
    placed = _placed(contents.join(F.broadcast(windows), c.WINDOW), history)
    return numbered(emitted.at(placed).select(*_columns(spec), FIRING), [FIRING], spec).drop(FIRING)


def contents_of_firings(
    units: DataFrame,
    spec: PipelineSpec,
    aggregates: dict[str, Column],
    partials: dict[str, Partial] | None,
) -> DataFrame:
    """What the firings hold of windows that fire as the watermark and late records have them.

    All that has come by then; where windows are emptied, what has come since the firing before.

    Args:
        units: of the accepted records; RECORD_ID is the `fired_by` of a LATE firing.
        spec: the pipeline.
        aggregates: the content of a firing, over its units.
        partials: the same in two steps, where units hold the first; None: they are single records.
    """
    if partials is None or spec.empties_as_it_fires:
        return _contents(_members(units, spec), aggregates, spec)
    return _grown(units, spec, partials)


def _grown(units: DataFrame, spec: PipelineSpec, partials: dict[str, Partial]) -> DataFrame:
    """The same by running sums: each unit counts once, however many firings hold it."""
    window = Window.partitionBy(*window_of(spec)).orderBy(FIRST_HELD_BY)
    up_to_here = window.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    waits = [NEXT] if spec.fires_at_times else []
    sums = {name: partial.running(up_to_here) for name, partial in partials.items()}
    sums["records"] = F.sum(c.RECORDS).over(up_to_here)
    causes = {name: F.when(is_late(), F.col(name)) for name in OF_CAUSE}
    told = units.where(F.col(FIRST_HELD_BY) <= F.col(LAST_FIRING)).select(
        *(*window_of(spec), FIRST_HELD_BY, LAST_FIRING, *waits),
        *(column.alias(name) for name, column in (sums | causes).items()),
    )
    # until something new is held, a firing holds what the one before did
    until = F.coalesce(F.lead(FIRST_HELD_BY).over(window) - 1, LAST_FIRING)
    return (
        told.groupBy(*window_of(spec), FIRST_HELD_BY, LAST_FIRING)
        .agg(*(F.any_value(name).alias(name) for name in (*waits, *sums, *causes)))
        .withColumn(FIRING, until)
        .withColumn(FIRING, F.explode(F.sequence(FIRST_HELD_BY, FIRING)))
        .drop(FIRST_HELD_BY, LAST_FIRING)
    )


def _members(units: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The units of windows that have fired, once for each FIRING that holds them.

    A unit belongs to the first firing that holds it and, unless that empties the window, to all
    that follow.
    """
    last = F.col(FIRST_HELD_BY if spec.empties_as_it_fires else LAST_FIRING)
    return units.where(F.col(FIRST_HELD_BY) <= F.col(LAST_FIRING)).withColumn(
        FIRING, F.explode(F.sequence(FIRST_HELD_BY, last))
    )


def _contents(members: DataFrame, aggregates: dict[str, Column], spec: PipelineSpec) -> DataFrame:
    """What each FIRING of each window holds; of a late one, where the record that causes it is."""
    firing = [*window_of(spec), FIRING]
    is_cause = is_late() & (F.col(FIRST_HELD_BY) == F.col(FIRING))
    causes = [F.max(F.when(is_cause, F.col(name))).alias(name) for name in OF_CAUSE]
    causes += [F.max(NEXT).alias(NEXT)] if spec.fires_at_times else []
    contents = [
        *(column.alias(name) for name, column in aggregates.items()),
        F.sum(c.RECORDS).alias("records"),
    ]
    if spec.evicts_by is None:
        return members.groupBy(*firing).agg(*contents, *causes)
    # a record may be evicted by the very firing that it causes
    kept = not_evicted(members, firing, F.col(FIRING), spec).groupBy(*firing).agg(*contents)
    if not spec.fires_empty:
        return kept.join(members.groupBy(*firing).agg(*causes), firing)
    found = members.groupBy(*firing).agg(*causes).join(kept, firing, "left")
    found = with_contents_of_none(found, members, aggregates, "records")
    return found.withColumn("records", F.coalesce("records", long(0)))


def _placed(firings: DataFrame, history: History) -> DataFrame:
    """Firings with their position: where the watermark fires the window, or the record is."""
    seen_from = F.col(c.FIRE_FROM)
    if history.spec.fires_at_times:
        firings = firings.withColumn(_TURN, turn_of(F.col(FIRING), history.axis))
        firings = firings.withColumns({n: F.col(_TURN)[n] for n in (c.RANK, c.FIRE_AT)})
        seen_from = F.col(_TURN)[c.SEEN_FROM]
    met = met_by(firings)
    fired_on = F.timestamp_millis(c.FIRE_AT).cast("date")
    return firings.withColumns(
        {
            _TIME: number_ms(F.col(FIRING), history.grid),
            c.SEEN_FROM: _by_watermark_or_record(seen_from, met[c.SEEN_FROM]),
            c.RANK: _by_watermark_or_record(F.col(c.RANK), met[c.RANK]),
            c.ARRIVAL_DAY: _by_watermark_or_record(fired_on, F.col(c.ARRIVAL_DAY)),
        }
    ).withColumn("order_rank", F.col(c.RANK))


def _columns(spec: PipelineSpec) -> list[Column]:
    """The columns of `windows.firings`, but for what numbers the firings."""
    fired_at = F.timestamp_millis(_by_watermark_or_record(F.col(c.FIRE_AT), F.col(c.ARRIVAL)))
    # a watermark fires by rising times, a record its newest window first
    order_window = _by_watermark_or_record(F.col(_TIME) + 1, -F.col(c.SLOT_END))
    early_or_on_time = F.when(F.col(FIRING) < 0, "EARLY").otherwise("ON_TIME")
    late_or_early = F.when(fires_at_once(), "LATE").otherwise("EARLY")
    return [
        *window_columns(c.SLOT, c.SLOT_END, spec),
        F.col("records"),
        _by_watermark_or_record(early_or_on_time, late_or_early).alias("timing"),
        fired_at.alias("fired_at"),
        F.col(c.RECORD_ID).alias("fired_by"),
        fired_with(F.col(FIRING) <= 0, F.col(_TIME)),
        F.col(c.SEEN_FROM).cast("decimal(38,0)").alias("order_instant"),
        F.col("order_rank"),
        F.col(c.SEQUENCE).alias("order_sequence"),
        F.col(c.TS).alias("order_ts_ms"),
        order_window.alias("order_window_ms"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    ]


def _by_watermark_or_record(by_watermark: Column, by_record: Column) -> Column:
    """What holds of a firing that the watermark has caused, or of one that a record has."""
    return F.when(F.col(FIRING) <= 0, by_watermark).otherwise(by_record)
