"""The firings of records that were walked over: what each told, and what they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import fields_of, long
from strandline.engine.position.axis import Axis
from strandline.engine.records.arithmetic import date_of
from strandline.engine.records.met import met_by, risen
from strandline.engine.results.aggregates import with_contents_of_none
from strandline.engine.results.rows import FIRED_AT
from strandline.engine.walks.in_workers import (
    CAUSES,
    FOUND_BY,
    GONE_BY,
    IN_END,
    IN_START,
    LATE,
    REACHES,
    SUPERSEDES,
    TIME,
    TOLD_BY,
)

LAST = "_strandline_last_firing"
"""The number of the last firing of a group that has happened; 0: there is none."""
OWN_END = "_strandline_own_end_ms"
"""The END of the record that causes a firing."""
PLACE = "_strandline_place"
"""Where a firing stands among all: a struct of the names of `ORDER`."""
_LATE_RECORDS = "_strandline_late_records"
_EARLIER = "_strandline_earlier"
_LATER = "_strandline_later"


def caused(records: DataFrame, group: Sequence[str]) -> DataFrame:
    """The firings, each with where the record stands that causes it, or that comes before it.

    Args:
        records: of `walked`.
        group: what the records of one walk have in common, and what else is carried.
    """
    of_record = (c.INSTANT, *risen(records), c.SEQUENCE, c.TS, c.ARRIVAL, c.RECORD_ID)
    own_end = F.col(c.END).alias(OWN_END)
    each = records.select(*group, *of_record, own_end, F.explode(CAUSES).alias(CAUSES))
    return each.select("*", *fields_of(each, CAUSES)).drop(CAUSES)


def is_by_record() -> Column:
    """Whether a record causes a firing, and not the watermark."""
    return F.col(REACHES).isNull()


def placed(firings: DataFrame, moment: Column, of_window: Column, axis: Axis) -> DataFrame:
    """The firings that have happened, with PLACE and FIRED_AT.

    Args:
        firings: of `caused`, with FIRE_FROM and RANK: where the watermark reaches REACHES.
        moment: the millisecond of that.
        of_window: what those go by that one record causes.
        axis: of instants.
    """

    def by(record: Column, watermark: Column) -> Column:
        return F.when(is_by_record(), record).otherwise(watermark)

    nothing, fire_from, met = F.lit(None), F.col(c.FIRE_FROM), met_by(firings)
    place = F.struct(
        by(met[c.SEEN_FROM], fire_from).alias("instant"),
        by(met[c.RANK], F.col(c.RANK)).alias("rank"),
        by(F.col(c.SEQUENCE), nothing).alias("sequence"),
        by(F.col(c.TS), nothing).alias("ts_ms"),
        by(of_window, F.col(TIME) + 1).alias("window_ms"),
    )
    told = {
        PLACE: place,
        FIRED_AT: by(F.col(c.ARRIVAL), moment),
        c.RECORD_ID: by(F.col(c.RECORD_ID), nothing),
    }
    return firings.where(is_by_record() | (fire_from < axis.literal(axis.never))).withColumns(told)


def as_probes(told: DataFrame) -> DataFrame:
    """The firings of `placed` as probes of the watermark: see `Emissions.at`."""
    position = {
        c.ARRIVAL_DAY: date_of(F.col(FIRED_AT)),
        c.SEEN_FROM: F.col(PLACE)["instant"],
        c.RANK: F.col(PLACE)["rank"],
    }
    return told.withColumns(position).drop(c.INSTANT, c.SEQUENCE)


def timing() -> Column:
    """EARLY, ON_TIME or LATE: before, at or after the window's end."""
    at_end = ~is_by_record() & (F.col(TIME) == F.col(c.END) - 1)
    early_or_on_time = F.when(at_end, "ON_TIME").otherwise("EARLY")
    return F.when(F.col(LATE), "LATE").otherwise(early_or_on_time)


def in_firings(records: DataFrame) -> DataFrame:
    """The records of `walked`, once for each FIRING that tells them."""
    return records.withColumn(c.FIRING, F.explode(TOLD_BY))


def with_contents(
    rows: DataFrame, members: DataFrame, by: Sequence[str], aggregates: Mapping[str, Column]
) -> DataFrame:
    """Rows with the aggregates, and `records`, of their members; of none, where they have none.

    Args:
        rows: firings, say.
        members: records.
        by: what a row has in common with its members, and with no other one's.
        aggregates: the content of a row.
    """
    contents = {**aggregates, "records": F.count(F.lit(1))}
    found = members.groupBy(*by).agg(*(column.alias(name) for name, column in contents.items()))
    return with_contents_of_none(rows.join(found, [*by], "left"), members, contents, "records")


def last_told(told: DataFrame, records: DataFrame, group: Sequence[str]) -> DataFrame:
    """The windows that have been emitted and that no later firing has superseded.

    Args:
        told: the firings that have happened, with FIRED_AT and what they told.
        records: of `walked`.
        group: what the records of one walk have in common.
    """
    window = Window.partitionBy(*group, c.START, c.END)
    taken = [F.col(IN_START).alias(c.START), F.col(IN_END).alias(c.END)]
    late = records.where(LATE).groupBy(*group, *taken).agg(F.count(F.lit(1)).alias(_LATE_RECORDS))
    superseded = told.select(*group, F.explode(SUPERSEDES).alias(c.FIRING))
    return (
        told.withColumns(
            {
                "firings": F.count(F.lit(1)).over(window),
                FIRED_AT: F.min(FIRED_AT).over(window),
                LAST: F.max(c.FIRING).over(window),
            }
        )
        .where(F.col(c.FIRING) == F.col(LAST))
        .join(superseded, [*group, c.FIRING], "left_anti")
        .join(late, [*group, c.START, c.END], "left")
        .withColumn("late_accepted", F.coalesce(_LATE_RECORDS, long(0)))
        .drop(LAST, _LATE_RECORDS)
    )


def up_to_last(records: DataFrame, told: DataFrame, group: Sequence[str]) -> DataFrame:
    """The records of `walked` with LAST.

    Args:
        records: of `walked`.
        told: the firings that have happened.
        group: what the records of one walk have in common.
    """
    last = told.groupBy(*group).agg(F.max(c.FIRING).alias(LAST))
    both = records.join(last, [*group], "left")
    return both.withColumn(LAST, F.coalesce(LAST, long(0)))


def is_left() -> Column:
    """Whether no firing that has happened has taken a record of `up_to_last` out of its window."""
    return F.col(GONE_BY).isNull() | (F.col(GONE_BY) > F.col(LAST))


def is_unfired() -> Column:
    """Whether no firing that has happened has found a record of `up_to_last` in its window."""
    return F.col(FOUND_BY).isNull() | (F.col(FOUND_BY) > F.col(LAST))


def numbered(told: DataFrame, group: Sequence[str]) -> DataFrame:
    """The firings with their number in their window, `firing`, and the one before, `supersedes`.

    Args:
        told: the firings that have happened.
        group: what the records of one walk have in common.
    """
    in_window = Window.partitionBy(*group, c.START, c.END).orderBy(c.FIRING)
    number = F.row_number().over(in_window).cast("bigint")
    replaces = F.array_contains(SUPERSEDES, F.lag(c.FIRING).over(in_window))
    rows = told.withColumn("firing", number)
    return rows.withColumn("supersedes", F.when(replaces, F.col("firing") - 1))


def with_superseded(rows: DataFrame, group: Sequence[str]) -> DataFrame:
    """The firings of `numbered` with all that each takes the place of: `supersedes_windows`."""
    edges = {"window_start": c.START, "window_end": c.END}
    earlier = (F.timestamp_millis(column).alias(name) for name, column in edges.items())
    of_earlier = F.struct(*earlier, "firing").alias(_EARLIER)
    superseded = (
        rows.select(*group, F.col(c.FIRING).alias(_LATER), F.explode(SUPERSEDES).alias(c.FIRING))
        .join(rows.select(*group, c.FIRING, of_earlier), [*group, c.FIRING])
        .groupBy(*group, F.col(_LATER).alias(c.FIRING))
        .agg(F.array_sort(F.collect_list(_EARLIER)).alias("supersedes_windows"))
    )
    return rows.join(superseded, [*group, c.FIRING], "left")
