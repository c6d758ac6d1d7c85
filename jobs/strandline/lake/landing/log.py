"""The log of a landing table, read without Spark: its days, and whether its rows have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from strandline.lake.landing.open_table import open_table
from strandline.lake.ledger.entry import Entry
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import below
from strandline.lake.store.reads import is_whole
from strandline.model.intervals import last_day_before
from strandline.spec.pipeline import PipelineSpec


class DeletedRows(NamedTuple):
    """The rows of a file that are marked as deleted by a deletion vector.

    Attributes:
        rows: their number.
        digest: a hash that identifies them.
    """

    rows: int
    digest: str


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
        """The rows of each file that are marked as deleted, by the path of `file_name`.

        With deletion vectors, DELETE only marks rows: the file, and its number of records in the
        log, do not change. A file without deleted rows is not in the result.
        """
        if "deletionVectors" not in (self.table.protocol().reader_features or []):
            return {}
        deleted: dict[str, DeletedRows] = {}
        for batch in pa.RecordBatchReader.from_stream(self.table.deletion_vectors()):
            for uri, kept in zip(batch["filepath"], batch["selection_vector"], strict=True):
                rows = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False))
                digest = sha256(rows.astype("<i8").tobytes()).hexdigest()[:32]
                name = file_name(below(self.table.table_uri, uri.as_py()))
                deleted[name] = DeletedRows(len(rows), digest)
        return deleted

    def bytes_of(self, days_by: str | None, is_wanted: Callable[[date], bool]) -> int:
        """The bytes of files of some arrival days, and of rows without a day.

        Args:
            days_by: the partition column of the arrival days; None: there is none, and all count.
            is_wanted: selects days.
        """
        sizes = zip(self.days_of_files(days_by), self.files["size_bytes"], strict=True)
        return int(sum(size for day, size in sizes if day is None or is_wanted(day)))

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
        others = then._days_of_other_files(self, days_by)
        return not any(day is None or last_day is None or day <= last_day for day in others)

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
        last_day = last_day_before(before_ms)
        others = then._days_of_other_files(self, days_by)
        return sorted(day for day in others if day is not None and day <= last_day)

    def _days_of_other_files(self, now: LandingLog, days_by: str | None) -> set[date | None]:
        """The arrival days with different files in two versions; None: days are not known."""
        files = [
            {*zip(log.files["path"], log.days_of_files(days_by), strict=True)}
            for log in (self, now)
        ]
        return {day for _, day in files[0] ^ files[1]}

    def days_of_files(self, days_by: str | None) -> list[date | None]:
        """The arrival day of each file; None without a partition column."""
        days = self.files.get(f"partition.{days_by}") or [None] * len(self.files["path"])
        return [None if day is None else date.fromisoformat(str(day)[:10]) for day in days]


def file_name(path: str) -> str:
    """A file's path as a key of `deleted`, from its path in the log, which is URI-encoded."""
    return unquote(path)
