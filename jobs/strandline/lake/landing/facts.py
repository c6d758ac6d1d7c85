"""The facts of a landing table's arrival days, by which later runs recognize changed days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.records.exact_json import OPTIONS, Field, exact_json
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import kinds_to_write
from strandline.lake.landing.log import DeletedRows, LandingLog, file_name
from strandline.model.facts import DayFacts

_DIGITS_OF_A_LONG = 18
"""Spark hashes a DECIMAL of more digits by its bytes, and Sail otherwise."""


def facts_by_log(log: LandingLog, days_by: str) -> dict[date | None, DayFacts]:
    """The facts of each arrival day, from the files of a table that is partitioned by it."""
    of_day: dict[date | None, list[_File]] = {}
    files, days = log.files, log.days_of_files(days_by)
    for path, rows, day in zip(files["path"], files["num_records"], days, strict=True):
        of_day.setdefault(day, []).append(_File(path, rows, log.deleted.get(file_name(path))))
    return {day: _facts(found, log.version, log.table_id) for day, found in of_day.items()}


class _File(NamedTuple):
    """A file of a day, with its number of rows and its deleted rows."""

    path: str
    rows: int | None
    deleted: DeletedRows | None

    @property
    def left(self) -> int | None:
        """The number of rows that are not deleted; None if the log does not have it."""
        deleted = 0 if self.deleted is None else self.deleted.rows
        return None if self.rows is None else self.rows - deleted

    @property
    def identity(self) -> str:
        """Its path, with the number and the digest of its deleted rows."""
        if self.deleted is None:
            return f"{self.path}|0"
        return f"{self.path}|{self.deleted.rows}|{self.deleted.digest}"


def _facts(files: Sequence[_File], version: int, table_id: str) -> DayFacts:
    return DayFacts(
        _sum(file.left for file in files),
        _digest(file.identity for file in files),
        version,
        table_id=table_id,
    )


def facts_by_rows(
    records: DataFrame, version: int, table_id: str, days_by: str
) -> dict[date | None, DayFacts]:
    """The facts of each arrival day, from the rows, for tables that are not partitioned by it.

    A column that is null in all rows does not change them, so that adding columns does not either.

    Args:
        records: the rows.
        version: the version of the table.
        table_id: its id.
        days_by: the expression that gives the day of a row.
    """
    by = sha256(days_by.encode()).hexdigest()[:8]
    own = [field for field in records.schema.fields if not c.is_ours(field.name)]
    is_exact = bool(kinds_to_write(records))
    hashed = F.xxhash64(*(hashable(field, is_exact=is_exact) for field in own))
    counted = records.groupBy(c.ARRIVAL_DAY).agg(
        F.count(F.lit(1)), F.sum(hashed.cast("decimal(38,0)")).cast("string")
    )
    return {
        row[0]: DayFacts(int(row[1]), f"{by}:{row[2]}", version, table_id=table_id)
        for row in counted.collect()
    }


def hashable(field: T.StructField, *, is_exact: bool) -> Column:
    """A column that each engine hashes to the same number.

    It is JSON for types that Spark cannot hash (maps), or that Sail hashes otherwise; a null stays
    null, which no hash counts.

    Args:
        field: the column.
        is_exact: whether the engine writes JSON differently from Spark.
    """
    column, kind = quoted(field.name), field.dataType
    is_long = isinstance(kind, T.DecimalType) and kind.precision > _DIGITS_OF_A_LONG
    if isinstance(kind, T.AtomicType) and not is_long:
        return column
    if is_exact:
        written = exact_json([Field(field.name, column, kind)], nulls=False)
    else:
        written = F.to_json(F.struct(column), OPTIONS)
    return F.when(column.isNotNull(), written)


def _sum(rows: Iterable[int | None]) -> int | None:
    counts = list(rows)
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _digest(files: Iterable[str]) -> str:
    return sha256("\n".join(sorted(files)).encode()).hexdigest()[:32]
