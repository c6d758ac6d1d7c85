"""The timeline table: its kinds of rows, and reads of them without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import ColumnProperties, WriterProperties

from strandline.engine.timeline import CellQuery
from strandline.lake.store.reads import dataset_by_day, rows_on_days
from strandline.lake.store.store import Store
from strandline.lake.timeline.narrow import MOST_NOT_KEPT, WIDE, NarrowRows
from strandline.model.intervals import DAY_MS, EVERYTHING

_LONG = pa.int64()
SCHEMA = pa.schema(
    [
        ("arrival_date", pa.date32()),
        ("kind", pa.string()),
        ("reason", pa.string()),
        ("channel", pa.string()),
        ("event_date", pa.date32()),
        ("slot_ms", _LONG),
        ("threshold_ms", _LONG),
        ("pending", pa.bool_()),
        ("records", _LONG),
        ("least_ts_ms", _LONG),
        ("largest_ts_ms", _LONG),
        ("largest_end_ms", _LONG),
        ("largest_candidate_ms", _LONG),
        ("first_arrival_ms", _LONG),
        ("first_sequence", _LONG),
        ("last_arrival_ms", _LONG),
        ("arrival_hours", _LONG),
        ("settled_ms", _LONG),
        ("pending_ms", _LONG),
        ("violations", _LONG),
        ("until_arrival_ms", _LONG),
        ("rank", _LONG),
        ("watermark_ms", _LONG),
        ("source_state", pa.string()),
        ("files_digest", pa.string()),
        ("landing_version", _LONG),
        ("timeline_fingerprint", pa.string()),
        ("landing_id", pa.string()),
    ]
)
"""Kinds of rows: cell, channel and day; where channels can go idle also step (`first_*`: the first
instant that sees it) and source (where the source stands after the day). Of no fingerprint, and
kept under every one: landed (what the landing table said of the day, see `DayFacts`) and lost (the
event times of a day whose rows have gone, by event date)."""
_BY_DIFFERENCE = ColumnProperties(encoding="DELTA_BINARY_PACKED", dictionary_enabled=False)
"""The steps of a day by the clock, one for each tick, differ by the interval: 0.5 and not 12 MB."""
WRITTEN = WriterProperties(
    max_row_group_size=4_096,  # so that readers can skip groups
    column_properties=dict.fromkeys(
        ("first_arrival_ms", "until_arrival_ms", "watermark_ms"), _BY_DIFFERENCE
    ),
)
"""How its files are written, also where they are compacted."""


def cells_wanted(asked: CellQuery) -> ds.Expression:
    """A condition for the cells of well-formed records in a query, on any days."""
    wanted = ds.field("reason").is_null()
    if asked.slots != EVERYTHING:
        wanted &= ds.field("slot_ms") >= asked.slots.start_ms
        wanted &= ds.field("slot_ms") < asked.slots.end_ms
    if asked.least_threshold_ms is not None:
        wanted &= ds.field("threshold_ms") >= asked.least_threshold_ms
    return wanted


_OF_WIDE_ROWS = frozenset(
    {"slot_ms", "threshold_ms", "pending", "largest_candidate_ms", "rank", "source_state"}
)
"""Columns that only rows of the kinds `WIDE` have, and the state of the watermark's source, which
is read for a few days only."""


_NARROW = pa.schema([field for field in SCHEMA if field.name not in _OF_WIDE_ROWS])
"""The columns of rows of narrow kinds."""


def _no_rows() -> NarrowRows:
    return NarrowRows.none(_NARROW)


@dataclass(frozen=True)
class TimelineTable:
    """The open timeline table, whose rows of narrow kinds are read once.

    Attributes:
        dataset: its files; None: the table does not exist.
        version: its version; None: the table does not exist.
        days: a condition on the days of all rows that are read; None: all days.
        known: the narrow rows of files that need not be read.
    """

    dataset: ds.FileSystemDataset | None
    version: int | None = None
    days: ds.Expression | None = None
    known: Callable[[], NarrowRows] = _no_rows

    @classmethod
    def open(
        cls, store: Store, days: ds.Expression | None = None, version: int | None = None
    ) -> TimelineTable:
        """A version of a pipeline's timeline.

        Args:
            store: the pipeline's tables.
            days: a condition on the days of the rows; None: all days.
            version: the version; None: the newest.
        """
        table = store.table("timeline", version)
        if table is None:
            return cls(None)
        dataset = dataset_by_day(table, "arrival_date", SCHEMA)
        return cls(dataset, table.version(), days, partial(NarrowRows.kept, store, _NARROW))

    def newest(self, store: Store) -> TimelineTable:
        """The newest version of the table; itself if there is no newer one.

        Of a newer one only files are read that this version does not have.
        """
        if store.version("timeline") == self.version:
            return self
        return replace(TimelineTable.open(store), known=lambda: self._by_file)

    def keep_narrow(self, store: Store, written: int) -> None:
        """Keep the narrow rows for later runs if many files would be read; call it under the lock.

        Args:
            store: the pipeline's tables.
            written: the number of days that were written after this version.
        """
        files = frozenset() if self.dataset is None else frozenset(self.dataset.files)
        if len(files - self._kept.files) + written > MOST_NOT_KEPT:
            self.newest(store)._by_file.keep(store)

    def rows(
        self,
        kind: str,
        names: Sequence[str],
        fingerprint: str | None = None,
        *,
        before_ms: int | None = None,
        of_days: Collection[date] | None = None,
        wanted: ds.Expression | None = None,
    ) -> pa.Table:
        """Some columns of the rows of a kind; null for columns that an older table lacks.

        Args:
            kind: the kind of rows; `malformed`: the cells of malformed rows.
            names: the names of the columns.
            fingerprint: the fingerprint under which the days were observed; None: any.
            before_ms: only days that ended by this instant; None: all days.
            of_days: only these days; None: all days.
            wanted: a further condition; None: all rows of the kind.
        """
        of_kind = ds.field("kind") == ("cell" if kind == "malformed" else kind)
        wanted = of_kind if wanted is None else of_kind & wanted
        if fingerprint is not None:
            wanted &= ds.field("timeline_fingerprint") == fingerprint
        if before_ms is not None:
            wanted &= ds.field("arrival_date") < pa.scalar(before_ms // DAY_MS, pa.date32())
        if of_days is not None:
            wanted &= rows_on_days("arrival_date", of_days)
        if self.dataset is None:
            return pa.schema([SCHEMA.field(name) for name in names]).empty_table()
        if kind in WIDE or not set(names) <= set(_NARROW.names):
            wanted = wanted if self.days is None else wanted & self.days
            return self._files_of(self.dataset, of_days).to_table(list(names), filter=wanted)
        return self.narrow.filter(wanted).select(list(names))

    def _files_of(
        self, dataset: ds.FileSystemDataset, days: Collection[date] | None
    ) -> ds.FileSystemDataset:
        """The files of some days; Arrow would compare the days with each file of the table."""
        if days is None:
            return dataset
        some = [one for day in sorted(days) for one in self._of_day.get(day, ())]
        return ds.FileSystemDataset(some, dataset.schema, dataset.format, dataset.filesystem)

    @cached_property
    def _of_day(self) -> dict[date, list[ds.Fragment]]:
        """The files of each day."""
        files: dict[date, list[ds.Fragment]] = {}
        for one in () if self.dataset is None else self.dataset.get_fragments():
            day = ds.get_partition_keys(one.partition_expression)["arrival_date"]
            files.setdefault(day, []).append(one)
        return files

    @cached_property
    def narrow(self) -> pa.Table:
        """All rows of narrow kinds, without the columns that only other kinds have."""
        rows = self._by_file.in_order()
        return rows if self.days is None else rows.filter(self.days)

    @cached_property
    def _by_file(self) -> NarrowRows:
        if self.dataset is None:
            return _no_rows()
        return self._kept.of(self.dataset, self.days)

    @cached_property
    def _kept(self) -> NarrowRows:
        return self.known()
