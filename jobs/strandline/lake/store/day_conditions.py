"""Conditions for the partitions of some days in delta-rs' SQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

from strandline.model.intervals import consecutive


def in_days(partition: str, days: Collection[date | None], of: str = "") -> str:
    """A condition for some partitions in delta-rs' SQL, in brackets; None: the rows without a day.

    Ranges without their ends, in pairs of pairs: from a list of 20,000 days, which it also makes of
    ranges of one day, or a chain of as many conditions, delta-rs ends the process, without a word.

    Args:
        partition: the partition column, a date.
        days: the days.
        of: the alias of the table in a merge, with its dot.
    """
    name = partition.replace('"', '""')
    column = f'{of}"{name}"'
    runs = consecutive(day for day in days if day is not None)
    conditions = [f"({column} >= {_sql(run[0])} AND {column} {_up_to(run[-1])})" for run in runs]
    conditions = conditions or ["false"]
    if None in days:
        conditions.append(f"{column} IS NULL")
    while len(conditions) > 1:
        firsts = range(0, len(conditions), 2)
        conditions = [f"({' OR '.join(conditions[at : at + 2])})" for at in firsts]
    return f"({conditions[0]})"


def _up_to(last: date) -> str:
    return f"<= {_sql(last)}" if last == date.max else f"< {_sql(last + timedelta(1))}"


def _sql(day: date) -> str:
    return f"CAST('{day}' AS DATE)"
