"""The landing of a single table: a version of it, reads of some days, and the facts of its days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.position.axis import Axis
from strandline.engine.records.days import lies_in_its_day, on_days
from strandline.engine.records.exact_json import OPTIONS, Field, exact_json
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import SourceColumns, kinds_to_write
from strandline.engine.records.quarantine import result_names
from strandline.engine.records.read import read_records
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.log import DeletedRows, LandingLog, file_name
from strandline.lake.store.commits import keeps_rows, only_moved
from strandline.lake.store.identities import in_order_of
from strandline.lake.store.places import table_at
from strandline.model.facts import DayFacts, KnownDays, LandedDays, LandingChanges, compare
from strandline.model.intervals import EVERYTHING, day_of, instant_of
from strandline.spec.used_expressions import TableName


@dataclass(frozen=True)
class TableLanding(Landing):
    """The landing of a single table; see `Landing`."""

    @cached_property
    def frame(self) -> DataFrame:
        """All rows of this version."""
        reader = self.spark.read.format("delta").option("versionAsOf", self.version)
        return reader.load(table_at(self.spark, self.log.uri, self.version))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's own columns."""
        return tuple(self.frame.columns)

    @property
    def source_columns(self) -> SourceColumns:
        """The table's own columns, which identify its rows."""
        results = result_names(self.columns).items()
        counted = frozenset(
            name for name, result in results if result.lower() in self.nulls_counted
        )
        names = in_order_of(self.published, self.columns)
        return SourceColumns(names, counted, kinds=kinds_to_write(self.frame))

    @cached_property
    def arrival_column(self) -> str | None:
        """The timestamp column `arrival_time`; None if it is an expression or a text."""
        kinds = {field.name: field.dataType for field in self.frame.schema.fields}
        name = self.spec.source.arrival_time
        return name if isinstance(kinds.get(name), T.TimestampType) else None

    @cached_property
    def facts(self) -> dict[date | None, DayFacts]:
        """The facts of each arrival day; the key None is for rows without a day.

        They come from the log if the table is partitioned by `arrival_date`, else from the rows.
        """
        name = self._day_partition
        if name is not None:
            return _facts_by_log(self.log, name)
        # whatever the pipeline leaves out of it
        every = self.spec.without_where
        records = read_records(self.frame, every)
        days_by = every.source.arrival_date or every.source.arrival_time
        return _facts_by_rows(records, self.log, days_by)

    @property
    def landed_days(self) -> LandedDays:
        """The facts of the arrival days that have begun, from files or rows, to be compared."""
        partition = self._day_partition
        moved = partial(only_moved, self.log.table, partition)
        kept = partial(keeps_rows, self.log.table)
        counts = [facts.rows for facts in self.facts.values()]
        rows = None if None in counts else sum(count or 0 for count in counts)
        return LandedDays(self.begun, moved, partition is None, kept, rows)

    @cached_property
    def _day_partition(self) -> str | None:
        return self.log.day_partition(self.spec.source.arrival_date)

    @cached_property
    def landed(self) -> dict[date | None, int] | None:
        """The number of rows of each arrival day by the log; None if the log lacks it.

        Rows deleted by deletion vectors are not counted.
        """
        log = self.log
        if self.spec.source.where or self._day_partition is None:
            return None
        if not log.deleted.keys() <= {*map(file_name, log.files["path"])}:
            return None  # some are of files that the log names otherwise
        rows = {day: facts.rows for day, facts in self.facts.items() if facts.rows is not None}
        return rows if len(rows) == len(self.facts) else None

    def weight(self, days: Sequence[date]) -> dict[str, int]:
        """See `Landing.weight`."""
        name = self.spec.source.arrival_date
        files = self.log.files
        values = files.get(f"partition.{name}") or [None] * len(files["path"])
        wanted = {str(day) for day in days}
        read = [i for i, v in enumerate(values) if v is None or str(v)[:10] in wanted]
        return {
            "files": len(read),
            "bytes": sum(files["size_bytes"][i] for i in read),
            "rows": sum(files["num_records"][i] or 0 for i in read),
        }

    def records(self, days: Sequence[date | None] | None = None) -> DataFrame:
        """See `Landing.records`."""
        records = read_records(self.frame, self.spec)
        return records if days is None else on_days(records, days, self.every_day)

    def changes(self, known: KnownDays) -> LandingChanges:
        """See `Landing.changes`."""
        return compare(known, self.landed_days)

    def horizon_after(self, axis: Axis) -> int:
        """See `Landing.horizon_after`."""
        last = self.last_arrival()
        return EVERYTHING.start_ms if last is None else axis.horizon_after(last)

    def last_arrival(self) -> int | None:
        """The last arrival, in ms, of rows in their day's partition; None if there is none."""
        for day in reversed([day for day in self.days if day is not None]):
            by_log = self._last_by_log(day)
            if by_log is not None:
                return by_log
            rows = self.records([day]).where(lies_in_its_day())
            last = rows.agg(F.max(c.ARRIVAL)).first()
            if last is not None and last[0] is not None:
                return int(last[0])
        return None

    def _last_by_log(self, day: date) -> int | None:
        """The last arrival of a day by the log's statistics; None if they lack it."""
        source = self.spec.source
        if source.where or self.arrival_column is None:
            return None
        files = self.log.files
        name, column = f"partition.{source.arrival_date}", f"max.{self.arrival_column}"
        if name not in files or column not in files:
            return None
        of_day = [i for i, value in enumerate(files[name]) if str(value)[:10] == str(day)]
        if any(file_name(files["path"][i]) in self.log.deleted for i in of_day):
            return None  # its statistics are those of the rows that are deleted, too
        unknown = [None] * len(files["path"])
        nulls = files.get(f"null_count.{source.arrival_time}", unknown)
        largest = [(files[column][i], nulls[i] == files["num_records"][i]) for i in of_day]
        known = [instant_of(latest) for latest, _ in largest if latest is not None]
        if not known or any(latest is None and not empty for latest, empty in largest):
            return None
        return max(known) if day_of(max(known)) == day else None

    @property
    def inputs(self) -> Mapping[str, TableLanding]:
        """See `Landing.inputs`."""
        return {"": self}

    def rows_over(self, table: TableName) -> DataFrame:
        """See `Landing.rows_over`."""
        return self.frame


_DIGITS_OF_A_LONG = 18
"""Spark hashes a DECIMAL of more digits by its bytes, and Sail otherwise."""


def _facts_by_log(log: LandingLog, days_by: str) -> dict[date | None, DayFacts]:
    """The facts of each arrival day, from the files of a table that is partitioned by it."""
    of_day: dict[date | None, list[_File]] = {}
    files, days = log.files, log.days_of_files(days_by)
    for path, rows, day in zip(files["path"], files["num_records"], days, strict=True):
        of_day.setdefault(day, []).append(_File(path, rows, log.deleted.get(file_name(path))))
    return {day: _facts(found, log) for day, found in of_day.items()}


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


def _facts(files: Sequence[_File], log: LandingLog) -> DayFacts:
    rows = [file.left for file in files]
    known = [left for left in rows if left is not None]
    identity = "\n".join(sorted(file.identity for file in files))
    return DayFacts(
        sum(known) if len(known) == len(rows) else None,
        sha256(identity.encode()).hexdigest()[:32],
        log.version,
        table_id=log.table_id,
    )


def _facts_by_rows(
    records: DataFrame, log: LandingLog, days_by: str
) -> dict[date | None, DayFacts]:
    """The facts of each arrival day, from the rows, for tables that are not partitioned by it.

    A column that is null in all rows does not change them, so that adding columns does not either.

    Args:
        records: the rows.
        log: the log of the table's version.
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
        row[0]: DayFacts(int(row[1]), f"{by}:{row[2]}", log.version, table_id=log.table_id)
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
