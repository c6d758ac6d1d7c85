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
"""The first day, and the day after the last one (the largest date stands for itself)."""


def lacking(
    windows: DeltaTable | None, names: Sequence[str], spec_fingerprint: str
) -> dict[str, list[Days]]:
    """The days, by column, on which it is null in all rows of older rules.

    They were published before the pipeline had the column; rebuilding them fills it. Of a column
    without statistics in any file nothing is known. Only where rows of several rules are in one
    file, as on the day on which the column came, is that file read.

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
    """Whether each day has rows of older rules none of which has a value of a column."""
    count = len(files["path"])
    nulls, least, most = (
        files.get(fact, [None] * count)
        for fact in (f"null_count.{name}", "min.spec_fingerprint", "max.spec_fingerprint")
    )
    days: dict[date, bool] = {}
    for i, day in enumerate(files["partition.window_date"]):
        of_today = least[i] == most[i] == fingerprint
        rows = files["num_records"][i]
        lacks = rows is not None and nulls[i] in {None, rows} and not of_today
        if nulls[i] and not lacks and least[i] != most[i]:
            lacks = _lacks_in_rows(windows, day, name, fingerprint)
        days[day] = days.get(day, False) or lacks
    return days


def _lacks_in_rows(windows: DeltaTable, day: date, name: str, fingerprint: str) -> bool:
    """Whether a column is null in all rows of some older rules of a day, by the rows themselves."""
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
