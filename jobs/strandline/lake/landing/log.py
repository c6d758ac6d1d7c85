"""The log of a landing table, read without Spark: its days, and whether its rows have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from strandline.lake.landing.deletions import DeletedRows, deleted_rows
from strandline.lake.landing.open_table import open_table
from strandline.lake.ledger.entry import Entry
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import is_whole
from strandline.model.intervals import last_day_before
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class LandingLog:
    """The log of one version of a landing table.

    Attributes:
        uri: the table's path or URI.
        table: the open Delta table.
    """

    uri: str
    table: DeltaTable

    @classmethod
    def open(cls, uri: str, place: str, name: str | None = None) -> LandingLog:
        """The log of the newest version of a table: see `open_table`."""
        return cls(uri, open_table(uri, place, name))

    @property
    def of_sides(self) -> Mapping[str, LandingLog]:
        """The logs of the landing tables by side; the side of a single table is the empty text."""
        return {"": self}

    @classmethod
    def of(cls, lake: Lake, spec: PipelineSpec) -> LandingLog | None:
        """The log of a pipeline's landing table; None if only a catalog knows its location.

        Raises:
            NoTableError, InputError, RetryableError: see `open_table`.
        """
        name = spec.source.table
        if lake.is_catalog_name(name):
            return None
        return cls.open(lake.resolve(name), f"{spec.pipeline}: source.table", name)

    @cached_property
    def version(self) -> int:
        """The table's version."""
        return self.table.version()

    @cached_property
    def table_id(self) -> str:
        """The table's id; a table that is created again has another id."""
        return str(self.table.metadata().id)

    @property
    def input_id(self) -> str:
        """The identity of the input apart from its rows, for repetitions: the table's id."""
        return self.table_id

    def is_another(self, table_id: str | None) -> bool:
        """Whether a remembered table id is another one; None if none was remembered."""
        return table_id not in {None, self.table_id}

    @property
    def is_newest(self) -> bool:
        """Whether the table has not been written or created again since."""
        newest = DeltaTable(self.uri)
        return (str(newest.metadata().id), newest.version()) == (self.table_id, self.version)

    @property
    def known_until_ms(self) -> int | None:
        """The midnight up to which all rows have landed; None: only the clock decides."""
        return None

    @property
    def horizon_ms(self) -> int | None:
        """The instant up to which all rows are known; None: only the clock decides."""
        return None

    @cached_property
    def files(self) -> dict[str, list[Any]]:
        """The files of the version as columns (`path`, `num_records`, …)."""
        return dict(pa.table(self.table.get_add_actions(flatten=True)).to_pydict())

    @cached_property
    def deleted(self) -> dict[str, DeletedRows]:
        """The rows of each file that are marked as deleted: see `deleted_rows`."""
        return deleted_rows(self.table)

    def bytes_of(self, days_by: str | None, is_wanted: Callable[[date], bool]) -> int:
        """The bytes of files of some arrival days, and of rows without a day.

        Args:
            days_by: the partition column of the arrival days; None: there is none, and all count.
            is_wanted: selects days.
        """
        sizes = self.files["size_bytes"]
        if days_by is None:
            return int(sum(sizes))
        days = zip(self.days_of_files(days_by), sizes, strict=True)
        return int(sum(size for day, size in days if day is None or is_wanted(day)))

    def day_partition(self, name: str | None) -> str | None:
        """The partition column of the arrival days; None if there is none.

        Args:
            name: the column in the pipeline's `source.arrival_date`, if it is given.
        """
        if name is None or name not in self.table.metadata().partition_columns:
            return None
        kinds = {field.name: field.type for field in self.table.schema().fields}
        return name if kinds[name] == PrimitiveType("date") else None

    def at(self, version: int) -> LandingLog | None:
        """The log of an earlier version; None if it has been cleaned up."""
        try:
            return LandingLog(self.uri, DeltaTable(self.uri, version=version))
        except DeltaError:
            return None

    def readable_at(self, version: int) -> LandingLog | None:
        """The log of an earlier version; None if it, or one of its files, has been removed."""
        then = self.at(version)
        return then if then is not None and is_whole(then.table, self.table) else None

    def nearest_to(self, version: int) -> LandingLog:
        """The log of an earlier version, or this one if that cannot be read any more."""
        return self.readable_at(version) or self

    def has_rows_read_by(
        self, step: Entry, arrival_date: str | None, known_before_ms: int | None
    ) -> bool:
        """Whether the table certainly has the rows that a run has read.

        Args:
            step: a step of the run; False if it names no version.
            arrival_date: the column in the pipeline's `source.arrival_date`.
            known_before_ms: compare only arrival days before this instant; None: all days.
        """
        if step.landing_version is None:
            return False
        return self.same_rows_since(
            step.landing_version,
            step.landing_id,
            days_by=self.day_partition(arrival_date),
            last_day=None if known_before_ms is None else last_day_before(known_before_ms),
        )

    def same_rows_since(
        self,
        version: int,
        table_id: str | None = None,
        *,
        days_by: str | None,
        last_day: date | None,
    ) -> bool:
        """Whether the table certainly has the same rows as in an earlier version.

        It compares files, so rows that were moved to other files count as different. It is False
        for a table that was created again, if the earlier version cannot be opened any more, or if
        deletion vectors may have changed.

        Args:
            version: the earlier version.
            table_id: the table's id at that version; None: not known.
            days_by: the partition column of the arrival days; None: there is none.
            last_day: the last arrival day to compare; None: all days.
        """
        if self.is_another(table_id):
            return False
        if self.version == version:
            return True
        then = self.at(version)
        if then is None:
            return False
        same_columns: bool = then.table.schema() == self.table.schema()
        if not same_columns or then.deleted or self.deleted:
            return False
        return then._paths(days_by, last_day) == self._paths(days_by, last_day)

    def days_with_other_files(
        self, step: Entry, arrival_date: str | None, before_ms: int
    ) -> Sequence[date]:
        """The arrival days whose files are others than a run has read, in ascending order.

        Empty if that is not known: the table is not partitioned by arrival days, was created again,
        or the run's version cannot be opened any more.

        Args:
            step: a step of the run.
            arrival_date: the column in the pipeline's `source.arrival_date`.
            before_ms: compare only arrival days before this instant.
        """
        days_by, version = self.day_partition(arrival_date), step.landing_version
        if days_by is None or version is None or self.is_another(step.landing_id):
            return []
        then = self.at(version)
        if then is None:
            return []
        files = then._files_and_days(days_by) ^ self._files_and_days(days_by)
        last_day = last_day_before(before_ms)
        return sorted({day for _, day in files if day is not None and day <= last_day})

    def _files_and_days(self, days_by: str) -> set[tuple[str, date | None]]:
        """The path and arrival day of each file."""
        return set(zip(self.files["path"], self.days_of_files(days_by), strict=True))

    def _paths(self, days_by: str | None, last_day: date | None) -> set[str]:
        """The files of the days up to a last day."""
        if days_by is None or last_day is None:
            return set(self.files["path"])
        return {
            path for path, day in self._files_and_days(days_by) if day is None or day <= last_day
        }

    def days_of_files(self, days_by: str) -> list[date | None]:
        """The arrival day of each file."""
        days = self.files[f"partition.{days_by}"]
        return [None if day is None else date.fromisoformat(str(day)[:10]) for day in days]
