"""Records by arrival day, the partition column of the landing table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.records.arithmetic import midnight_ms
from strandline.engine.records.expressions import in_quotes, quoted
from strandline.model.intervals import DAY_MS, consecutive

_MOST_DAYS = 10_000
"""The largest number of days that are named one by one."""


def in_days(
    column: str, days: Iterable[date | None], among: Iterable[date | None] | None = None
) -> Column:
    """Whether a date column is one of some days; a None among the days means null.

    Written as one SQL text: a year of single literals would take seconds in Spark's gateway. Very
    many days are named as ranges: Sail ends the process, without a word, at a list of some 20,000.

    Args:
        column: the name of the column.
        days: the days.
        among: the days that exist, if known: ranges may then contain any other day.
    """
    wanted, name = set(days), in_quotes(column)
    dates = {day for day in wanted if day is not None}
    exist = None if among is None else (day for day in among if day is not None)
    if len(dates) > _MOST_DAYS:
        inside = F.expr(_in_any(name, consecutive(dates, exist)))
    else:
        named = ", ".join(f"DATE'{day}'" for day in dates)
        inside = F.expr(f"{name} IN ({named})") if dates else F.lit(False)
    return inside | quoted(column).isNull() if None in wanted else inside


def _in_any(name: str, ranges: Sequence[Sequence[date]]) -> str:
    """A condition for some ranges of days, halved again and again: a long chain is too deep."""
    if len(ranges) == 1:
        return f"{name} BETWEEN DATE'{ranges[0][0]}' AND DATE'{ranges[0][-1]}'"
    half = len(ranges) // 2
    return f"({_in_any(name, ranges[:half])} OR {_in_any(name, ranges[half:])})"


def on_days(
    records: DataFrame,
    days: Collection[date | None],
    among: Iterable[date | None] | None = None,
) -> DataFrame:
    """The records of some arrival days; a table partitioned by them reads no others.

    If these are all the days that exist (`among`), there is no filter: naming every day would only
    cost time in reading the Delta log.
    """
    if among is not None and set(days) >= set(among):
        return records
    return records.where(in_days(c.ARRIVAL_DAY, days, among))


def lies_in_its_day() -> Column:
    """Whether a row's arrival lies in the day of its partition; false if either is null."""
    since_midnight = F.col(c.ARRIVAL) - midnight_ms(F.col(c.ARRIVAL_DAY))
    return F.coalesce(since_midnight.between(0, DAY_MS - 1), F.lit(False))
