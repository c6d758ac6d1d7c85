"""Conditions for the partitions of some days in delta-rs' SQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

from strandline.model.intervals import consecutive

_MOST_LISTED = 1_000
"""The single days up to which delta-rs is given a list."""


def in_days(partition: str, days: Collection[date | None], of: str = "") -> str:
    """A condition for some partitions in delta-rs' SQL, in brackets; None: the rows without a day.

    A list of single days costs delta-rs a fourth of their ranges, but a long one, which it also
    makes of ranges of one day or of several lists, ends the process without a word, as does a chain
    of as many conditions: 20,000 days on the main thread, 5,000 on a thread with a stack of 1 MiB.
    More days are ranges without their ends, in pairs of pairs.

    Args:
        partition: the partition column, a date.
        days: the days.
        of: the alias of the table in a merge, with its dot.
    """
    name = partition.replace('"', '""')
    column = f'{of}"{name}"'
    runs = consecutive(day for day in days if day is not None)
    single = [_sql(run[0]) for run in runs if len(run) == 1]
    listed = single if len(single) <= _MOST_LISTED else []
    conditions = [
        f"({column} >= {_sql(run[0])} AND {column} {_up_to(run[-1])})"
        for run in runs
        if len(run) > 1 or not listed
    ]
    if listed:
        conditions.append(f"{column} IN ({', '.join(listed)})")
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
