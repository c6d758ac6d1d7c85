"""What a landing table says of its arrival days, so that a later run sees whether they changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.source import quoted
from strandline.model.facts import DayFacts

_KEEP_ROWS = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "ADD COLUMNS")
"""Operations of Delta that leave every row as it is, or put it into another file."""


def facts_by_log(
    files: Mapping[str, Sequence[Any]], partition: str, version: int
) -> dict[date | None, DayFacts]:
    """The facts of each arrival day by a table's files.

    Args:
        files: as the table's log lists them: a list for each fact (`path`, `num_records`, …).
        partition: the column that tells the arrival day.
        version: of the table.
    """
    deleted = [name for name in files if "deletion" in name.lower()]
    of_day: dict[date | None, list[tuple[str, int | None]]] = {}
    for place, value in enumerate(files[f"partition.{partition}"]):
        day = None if value is None else date.fromisoformat(str(value)[:10])
        file = "|".join(str(files[name][place]) for name in ("path", *deleted))
        of_day.setdefault(day, []).append((file, files["num_records"][place]))
    return {
        day: DayFacts(_sum(rows for _, rows in found), _digest(file for file, _ in found), version)
        for day, found in of_day.items()
    }


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
    told = len(since) == table.version() - version  # else its log has been cleaned up
    return told and all(_keeps_rows(commit) for commit in since)


def _keeps_rows(commit: Mapping[str, Any]) -> bool:
    mode = str(commit.get("operationParameters", {}).get("mode", "")).lower()
    operation = commit.get("operation")
    return operation in _KEEP_ROWS or (operation == "WRITE" and mode == "append")


def _hashable(field: T.StructField) -> Any:
    column = quoted(field.name)
    plain = isinstance(field.dataType, T.AtomicType)
    return column if plain else F.to_json(F.struct(column), {"ignoreNullFields": "true"})


def _sum(rows: Any) -> int | None:
    counts = list(rows)
    return None if None in counts else sum(counts)


def _digest(files: Any) -> str:
    return sha256("\n".join(sorted(files)).encode()).hexdigest()[:32]
