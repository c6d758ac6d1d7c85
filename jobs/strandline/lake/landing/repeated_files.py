"""Files of a landing table that look like another file of their arrival day, by its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import date
from typing import Any

from strandline.lake.landing.log import LandingLog, file_name
from strandline.spec.source import Source
from strandline.sql.column_types import column_named

_FACTS = ("size_bytes", "num_records")
_OF_COLUMNS = ("partition.", "null_count.", "min.", "max.")


def repeated_rows(log: LandingLog, source: Source, days: Collection[date]) -> dict[date, int]:
    """The rows of some arrival days in files like an earlier one, as a repeated load leaves them.

    They have its size, its number of rows, and its statistics of all columns. Files with deleted
    rows do not count, nor do files whose rows have one arrival time, such as a loader's batch: the
    statistics of their other rows may well be equal. A day without such files is not in the
    result, nor is any day if the table is not partitioned by them.

    Args:
        log: the table's log.
        source: its meaning. If the log has no statistics of the arrival time, as of an expression,
            the event time stands for it; without either the result is empty.
        days: the days.
    """
    days_by, column = log.day_partition(source.arrival_date), _timed_by(log, source)
    if days_by is None or column is None or not days:
        return {}
    names = [name for name in log.files if name in _FACTS or name.startswith(_OF_COLUMNS)]
    first, last = log.files[f"min.{column}"], log.files[f"max.{column}"]
    found: set[tuple[Any, ...]] = set()
    repeated: Counter[date] = Counter()
    for place, day in enumerate(log.days_of_files(days_by)):
        rows = log.files["num_records"][place] or 0
        if day is None or day not in days or first[place] == last[place]:
            continue
        if file_name(log.files["path"][place]) in log.deleted:
            continue
        facts = tuple(log.files[name][place] for name in names)
        if facts in found:
            repeated[day] += rows
        found.add(facts)
    return dict(repeated)


def _timed_by(log: LandingLog, source: Source) -> str | None:
    """The column of the arrival time, or else of the event time, with statistics in the log."""
    least = (name.removeprefix("min.") for name in log.files if name.startswith("min."))
    columns = [name for name in least if f"max.{name}" in log.files]
    named = (column_named(time, columns) for time in (source.arrival_time, source.event_time))
    return next((column for column in named if column is not None), None)
