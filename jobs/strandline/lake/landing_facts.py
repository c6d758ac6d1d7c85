"""What a landing table says of its arrival days, so that a later run sees whether they changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Any, NamedTuple

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.records.expressions import quoted
from strandline.lake.deletions import file_name
from strandline.model.facts import DayFacts

_KEEP_ROWS = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "ADD COLUMNS")
"""Operations of Delta that leave every row as it is, or put it into another file."""


def facts_by_log(
    files: Mapping[str, Sequence[Any]],
    deleted: Mapping[str, int],
    partition: str,
    version: int,
) -> dict[date | None, DayFacts]:
    """The facts of each arrival day by a table's files.

    Args:
        files: as the table's log lists them: a list for each fact (`path`, `num_records`, …).
        deleted: how many rows of each file are deleted: see `deleted_rows`.
        partition: the column that tells the arrival day.
        version: of the table.
    """
    of_day: dict[date | None, list[_File]] = {}
    for path, rows, value in zip(
        files["path"], files["num_records"], files[f"partition.{partition}"], strict=True
    ):
        day = None if value is None else date.fromisoformat(str(value)[:10])
        gone = deleted.get(file_name(path), 0)
        of_day.setdefault(day, []).append(
            _File(f"{path}|{gone}", None if rows is None else rows - gone)
        )
    return {
        day: DayFacts(_sum(file.rows for file in found), _digest(f.name for f in found), version)
        for day, found in of_day.items()
    }


class _File(NamedTuple):
    """A file of a day: its name with how many of its rows are deleted, and those that are left."""

    name: str
    rows: int | None


def facts_by_rows(records: DataFrame, version: int) -> dict[date | None, DayFacts]:
    """The facts of each arrival day by the rows themselves, where the log cannot tell days.

    A column that is null everywhere changes nothing: rows stay what they were as columns come.
    """
    own = [field for field in records.schema.fields if not c.is_ours(field.name)]
    # of columns that Spark cannot hash (maps) the text counts
    hashed = F.xxhash64(*(_hashable(field) for field in own))
    counted = records.groupBy(c.ARRIVAL_DAY).agg(
        F.count(F.lit(1)), F.sum(hashed.cast("decimal(38,0)")).cast("string")
    )
    return {row[0]: DayFacts(int(row[1]), str(row[2]), version) for row in counted.collect()}


def only_rewritten(table: DeltaTable, version: int) -> bool:
    """Whether since a version rows were only added to a table, or put into other files."""
    since = [commit for commit in table.history() if commit["version"] > version]
    is_whole = len(since) == table.version() - version  # else its log has been cleaned up
    return is_whole and all(_keeps_rows(commit) for commit in since)


def _keeps_rows(commit: Mapping[str, Any]) -> bool:
    mode = str(commit.get("operationParameters", {}).get("mode", "")).lower()
    operation = commit.get("operation")
    return operation in _KEEP_ROWS or (operation == "WRITE" and mode == "append")


def _hashable(field: T.StructField) -> Any:
    column = quoted(field.name)
    plain = isinstance(field.dataType, T.AtomicType)
    return column if plain else F.to_json(F.struct(column), {"ignoreNullFields": "true"})


def _sum(rows: Iterable[int | None]) -> int | None:
    counts = list(rows)
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _digest(files: Iterable[str]) -> str:
    return sha256("\n".join(sorted(files)).encode()).hexdigest()[:32]
