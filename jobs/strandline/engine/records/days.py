"""Records by arrival day, the partition column of the landing table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.records.arithmetic import midnight_ms
from strandline.engine.records.expressions import in_quotes, quoted
from strandline.model.intervals import DAY_MS

_IN_ONE_LIST = 5_000
"""The largest number of days in one list: Sail's server crashes, without a message, at 20,000."""


def in_days(column: str, days: Iterable[date | None]) -> Column:
    """Whether a date column is one of some days; a None among the days means null.

    Written as one SQL text: a year of single literals would take seconds in Spark's gateway. As
    lists and not as ranges: Spark's parser takes minutes for some hundreds of ranges in brackets.
    """
    wanted, name = set(days), in_quotes(column)
    literals = [f"DATE'{day}'" for day in wanted if day is not None]
    lists = [
        f"{name} IN ({', '.join(literals[begin : begin + _IN_ONE_LIST])})"
        for begin in range(0, len(literals), _IN_ONE_LIST)
    ]
    inside = F.expr(" OR ".join(lists)) if lists else F.lit(False)
    return inside | quoted(column).isNull() if None in wanted else inside


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
    return records.where(in_days(c.ARRIVAL_DAY, days))


def lies_in_its_day() -> Column:
    """Whether a row's arrival lies in the day of its partition; false if either is null."""
    since_midnight = F.col(c.ARRIVAL) - midnight_ms(F.col(c.ARRIVAL_DAY))
    return F.coalesce(since_midnight.between(0, DAY_MS - 1), F.lit(False))
