"""Files of a landing table that look like another file of their arrival day, by its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import date
from typing import Any

from strandline.lake.landing.log import LandingLog, file_name

_FACTS = ("size_bytes", "num_records")
_OF_COLUMNS = ("partition.", "null_count.", "min.", "max.")


def repeated_rows(
    log: LandingLog, arrival_date: str | None, days: Collection[date]
) -> dict[date, int]:
    """The rows of some arrival days in files like an earlier one, as a repeated load leaves them.

    They have its size, its number of rows, and its statistics of all columns. Files of a single
    row, without statistics, or with deleted rows do not count. A day without such files is not in
    the result, nor is any day if the table is not partitioned by them.

    Args:
        log: the table's log.
        arrival_date: the column in the pipeline's `source.arrival_date`.
        days: the days.
    """
    days_by = log.day_partition(arrival_date)
    if days_by is None or not days:
        return {}
    names = [name for name in log.files if name in _FACTS or name.startswith(_OF_COLUMNS)]
    least = [log.files[name] for name in names if name.startswith("min.")]
    found: set[tuple[Any, ...]] = set()
    repeated: Counter[date] = Counter()
    for place, day in enumerate(log.days_of_files(days_by)):
        rows = log.files["num_records"][place] or 0
        has_statistics = any(column[place] is not None for column in least)
        if day is None or day not in days or rows < 2 or not has_statistics:
            continue
        if file_name(log.files["path"][place]) in log.deleted:
            continue
        facts = tuple(log.files[name][place] for name in names)
        if facts in found:
            repeated[day] += rows
        found.add(facts)
    return dict(repeated)
