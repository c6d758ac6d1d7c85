"""The days whose windows were published before a column was added, mostly by the table's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.schema import PrimitiveType

from strandline.lake.store.reads import dataset_of

Days = tuple[date, date]
"""The first day, and the day after the last one; for the last day of the calendar, that day."""


def days_lacking(
    windows: DeltaTable | None, names: Sequence[str], spec_fingerprint: str
) -> dict[str, list[Days]]:
    """For each column, the runs of days published before the pipeline had it; a backfill fills it.

    On such a day the column is null in all rows of a file, or of one older fingerprint in a file
    with several; only such a mixed file is read, for all others the statistics of the table's log
    suffice. A column without statistics in any file is left out.

    Args:
        windows: the table `windows`; None: it does not exist yet.
        names: the columns to search; only lacking columns are in the result.
        spec_fingerprint: the current rules; rows published by them have all columns.
    """
    if windows is None:
        return {}
    files = pa.table(windows.get_add_actions(flatten=True)).to_pydict()
    # of arrays the log counts no nulls
    simple = [f for f in windows.schema().fields if isinstance(f.type, PrimitiveType)]
    counted = {f.name.lower(): f.name for f in simple if f"null_count.{f.name}" in files}
    found = {
        name: list(_runs_of_days(_by_day(windows, files, counted[name.lower()], spec_fingerprint)))
        for name in names
        if name.lower() in counted
    }
    return {name: days for name, days in found.items() if days}


def _by_day(
    windows: DeltaTable, files: Mapping[str, list[Any]], name: str, fingerprint: str
) -> dict[date, bool]:
    """Whether each day has a file, or an older fingerprint in one, with only nulls in a column."""
    count = len(files["path"])
    nulls, least, most = (
        files.get(fact, [None] * count)
        for fact in (f"null_count.{name}", "min.spec_fingerprint", "max.spec_fingerprint")
    )
    days: dict[date, bool] = {}
    for i, day in enumerate(files["partition.window_date"]):
        is_current = least[i] == most[i] == fingerprint
        is_mixed = least[i] != most[i]
        rows = files["num_records"][i]
        # no count of nulls: the file was written without the column
        lacks = rows is not None and nulls[i] in {None, rows} and not is_current
        if is_mixed and nulls[i] and not lacks:
            lacks = _lacks_in_rows(windows, day, name, fingerprint)
        days[day] = days.get(day, False) or lacks
    return days


def _lacks_in_rows(windows: DeltaTable, day: date, name: str, fingerprint: str) -> bool:
    """Whether a day has an older fingerprint with only nulls in a column, by reading the rows."""
    of_day = dataset_of(windows, f"window_date = '{day}'").to_table(
        columns=[name, "spec_fingerprint"], filter=ds.field("window_date") == day
    )
    values = of_day.group_by("spec_fingerprint").aggregate([(name, "count")]).to_pylist()
    return any(
        one[f"{name}_count"] == 0 and one["spec_fingerprint"] != fingerprint for one in values
    )


def _runs_of_days(days: Mapping[date, bool]) -> Iterator[Days]:
    for lacks, run_of_days in groupby(sorted(days), key=lambda day: days[day]):
        if lacks:
            first, *rest = run_of_days
            last = rest[-1] if rest else first
            yield first, min(last, date.max - timedelta(1)) + timedelta(1)
