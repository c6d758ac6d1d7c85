"""What the log of a landing table says without Spark: its days; whether its rows are the same."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from strandline.lake.deletions import deleted_rows


def day_partition(table: DeltaTable, name: str | None) -> str | None:
    """The partition that tells the arrival days; None: a text's or expression's rows do.

    Args:
        table: the landing table.
        name: the column that the pipeline gives as `source.arrival_date`, if it gives one.
    """
    if name is None or name not in table.metadata().partition_columns:
        return None
    kinds = {field.name: field.type for field in table.schema().fields}
    return name if kinds[name] == PrimitiveType("date") else None


def same_rows_since(
    table: DeltaTable, version: int, *, days_by: str | None, last_day: date | None
) -> bool:
    """Whether a table surely holds the rows that it held in an earlier version.

    It holds the same files then, so that rows which only moved into other files are told as if they
    were others. Where the earlier version cannot be opened any more, or rows are deleted by vectors
    that may have changed, the answer is no.

    Args:
        table: the landing table.
        version: the earlier one.
        days_by: the partition that tells the arrival days: see `day_partition`; None: none does.
        last_day: of the rows that arrived later nothing is asked; None: all are asked for.
    """
    if table.version() == version:
        return True
    try:
        then = DeltaTable(table.table_uri, version=version)
    except DeltaError:
        return False
    if then.schema() != table.schema() or deleted_rows(then) or deleted_rows(table):
        return False
    return _files(then, days_by, last_day) == _files(table, days_by, last_day)


def _files(table: DeltaTable, days_by: str | None, last_day: date | None) -> set[str]:
    files: dict[str, list[Any]] = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    if days_by is None or last_day is None:
        return set(files["path"])
    days = files[f"partition.{days_by}"]
    return {
        path
        for path, day in zip(files["path"], days, strict=True)
        if day is None or date.fromisoformat(str(day)[:10]) <= last_day
    }
