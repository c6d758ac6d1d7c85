"""The days of a pipeline's tables: the selection of days to read, and rows by day from the logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.lake.store.reads import columns_of, dataset_by_day
from strandline.lake.store.store import PUBLISHED, Store
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    consecutive,
    midnight_of,
)
from strandline.tables import tables_of

PARTITIONS = {
    "timeline": "arrival_date",
    **{name: tables_of(())[name].partition for name in PUBLISHED},
}
"""The partition column of each table, a date."""


@dataclass(frozen=True)
class Days:
    """The days from `since` to `until`, both inclusive; None: unbounded on that side."""

    since: date | None = None
    until: date | None = None

    def rows_of(self, table: str) -> ds.Expression:
        """The rows of a table on these days or without a day; no file of another day is opened."""
        day = ds.field(PARTITIONS[table])
        rows = ds.scalar(True)
        if self.since is not None:
            rows &= day >= self.since
        if self.until is not None:
            rows &= day <= self.until
        return rows | day.is_null()

    def __contains__(self, day: date) -> bool:
        """Whether a day is one of these."""
        return (self.since or date.min) <= day <= (self.until or date.max)

    @property
    def within(self) -> TimeRange:
        """The instants of these days."""
        start_ms = LEAST_INSTANT_MS if self.since is None else midnight_of(self.since)
        end_ms = END_OF_INSTANTS_MS if self.until is None else midnight_of(self.until) + DAY_MS
        return TimeRange(start_ms, end_ms)

    @property
    def named(self) -> dict[str, str | None]:
        """The days under the names of the command's options."""
        edges = {"since": self.since, "until": self.until}
        return {name: None if day is None else day.isoformat() for name, day in edges.items()}


def read_days(
    store: Store, name: str, columns: Sequence[str], days: Days, wanted: ds.Expression | None = None
) -> pa.Table | None:
    """Some columns of a table's rows on some days; None if the table does not exist.

    Columns that the table of an earlier version lacks are left out. `wanted` is a further condition
    on the rows.
    """
    table = store.table(name)
    if table is None:
        return None
    dataset, rows = days_of(table, name, days)
    there = [column for column in columns if column in dataset.schema.names]
    return dataset.to_table(columns=there, filter=rows if wanted is None else rows & wanted)


def days_of(table: DeltaTable, name: str, days: Days) -> tuple[ds.Dataset, ds.Expression]:
    """A dataset of an open table in the order of its days, and a condition for some days."""
    return dataset_by_day(table, PARTITIONS[name], columns_of(table)), days.rows_of(name)


def slots_beyond_rows(slots: pa.ChunkedArray) -> int:
    """The number of slots without a row of their own, by the column `slots`; null: one slot."""
    return int(pc.sum(pc.subtract(slots, 1)).as_py() or 0)


def rows_by_day(store: Store, name: str) -> dict[date | None, int]:
    """The number of rows of a table by day."""
    found: dict[date | None, int] = {}
    files = facts_of_files(store, name)
    for day, rows in zip(files.get("day", ()), files.get("num_records", ()), strict=True):
        found[day] = found.get(day, 0) + (rows or 0)
    return {day: rows for day, rows in found.items() if rows}


def rows_by_date(store: Store, name: str) -> dict[date, int]:
    """`rows_by_day`, without the rows that have no day."""
    return {day: rows for day, rows in rows_by_day(store, name).items() if day is not None}


def facts_of_files(store: Store, name: str) -> dict[str, list[Any]]:
    """The log's entries of a table's files, with the partition as `day`; empty without files."""
    return _facts_of(store.table(name), PARTITIONS[name])


def _facts_of(table: DeltaTable | None, partition: str) -> dict[str, list[Any]]:
    if table is None or not table.file_uris():
        return {}
    facts: dict[str, list[Any]] = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    return facts | {"day": facts[f"partition.{partition}"]}


def days_of_other_files(
    partition: str, then: DeltaTable | None, now: DeltaTable
) -> set[date | None]:
    """The dates with different files in two versions of a table; all dates if `then` is None."""
    facts = [_facts_of(table, partition) for table in (then, now)]
    files = [{*zip(of.get("path", ()), of.get("day", ()), strict=True)} for of in facts]
    return {day for _, day in files[0] ^ files[1]}


def dates_between(
    store: Store, before: Mapping[str, int], after: Mapping[str, int]
) -> dict[str, list[list[str]]]:
    """The dates of each published table that differ between two states of all tables, as ranges.

    Rows without a date are ignored.

    Raises:
        DeltaError: the log of a version has been cleaned up.
    """
    found = {}
    for name in PUBLISHED:
        now = None if before.get(name) == after.get(name) else store.table(name, after.get(name))
        if now is not None:
            then = store.table(name, before[name]) if name in before else None
            days = days_of_other_files(PARTITIONS[name], then, now)
            found[name] = in_ranges(day for day in days if day is not None)
    return {name: ranges for name, ranges in found.items() if ranges}


def in_ranges(days: Iterable[date]) -> list[list[str]]:
    """Days as inclusive ranges of consecutive days: `[["2024-03-01", "2024-03-04"]]`."""
    return [[one[0].isoformat(), one[-1].isoformat()] for one in consecutive(days)]
