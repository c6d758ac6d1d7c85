"""Which days of the published windows are from before a column came, by the table's log alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import PrimitiveType

Days = tuple[date, date]
"""The first day, and the day after the last one (the last day that there is has none after it)."""


def lacking(
    windows: DeltaTable | None, names: Sequence[str], spec_fingerprint: str
) -> dict[str, list[Days]]:
    """The days, by column, that hold rows of other rules in which the column is null throughout.

    They were published before the pipeline had it; rebuilding them fills it.

    Args:
        windows: the table `windows`; None: it does not exist yet.
        names: of the columns that are looked for; others of them are not named.
        spec_fingerprint: the rules of today: what was published under them has all columns.
    """
    if windows is None:
        return {}
    files = pa.table(windows.get_add_actions(flatten=True)).to_pydict()
    # of arrays the log counts no nulls
    simple = [f for f in windows.schema().fields if isinstance(f.type, PrimitiveType)]
    there = {field.name.lower(): field.name for field in simple}
    found = {
        name: list(_runs_of_days(_by_day(files, there[name.lower()], spec_fingerprint)))
        for name in names
        if name.lower() in there
    }
    return {name: days for name, days in found.items() if days}


def _by_day(files: Mapping[str, list[Any]], name: str, fingerprint: str) -> dict[date, bool]:
    """Whether each day has a file, not of today's rules alone, without any value of a column."""
    count = len(files["path"])
    nulls, least, most = (
        files.get(fact, [None] * count)
        for fact in (f"null_count.{name}", "min.spec_fingerprint", "max.spec_fingerprint")
    )
    days: dict[date, bool] = {}
    for i, day in enumerate(files["partition.window_date"]):
        of_today = least[i] == most[i] == fingerprint
        rows = files["num_records"][i]
        empty = rows is not None and nulls[i] in {None, rows}
        days[day] = days.get(day, False) or (empty and not of_today)
    return days


def _runs_of_days(days: Mapping[date, bool]) -> Iterator[Days]:
    for lacks, run_of_days in groupby(sorted(days), key=lambda day: days[day]):
        if lacks:
            first, *rest = run_of_days
            last = rest[-1] if rest else first
            yield first, min(last, date.max - timedelta(1)) + timedelta(1)
