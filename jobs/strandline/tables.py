"""The published tables: their columns, keys, partitions, and the column by which ranges go.

Types have Delta's names. In addition to the columns here, `windows` and `firings` have the key
columns and aggregates of their pipeline, and `quarantine` has all columns of the source row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedTable:
    """A table into which runs publish.

    Attributes:
        name: its folder below the pipeline's folder.
        columns: its columns with their types, without the columns that the pipeline defines.
        keys: the columns that identify a row; names are compared without case, as Spark does.
        partition: the date column by which it is partitioned.
        start: the instant that decides whether a row belongs to a range.
        has_older_slots: whether a run also changes rows of slots before its range, because late
            records have arrived for them.
        holds_source_rows: whether its other columns are the unchanged columns of landing rows.
    """

    name: str
    columns: Mapping[str, str]
    keys: tuple[str, ...]
    partition: str
    start: str
    has_older_slots: bool
    holds_source_rows: bool = False

    @property
    def has_pairs_of_windows(self) -> bool:
        """Whether its rows are pairs of records within windows, and belong to ranges by these."""
        return self.name == "pairs" and self.start != "pair_ts"

    def is_of_source(self, name: str) -> bool:
        """Whether a column, given in lower case, is a column of landing rows."""
        of_ours = {*self.columns, INPUT, *(key.lower() for key in self.keys)}
        return self.holds_source_rows and name not in of_ours


MALFORMED_REASONS = (
    "null_event_time",
    "unparsable_event_time",
    "null_arrival",
    "arrival_outside_partition",
    "ahead_of_arrival",
    "null_channel",
    "undeclared_channel",
    "null_key",
    "invalid",
    "event_time_out_of_range",
    "duplicate",
)
"""The reasons of quarantine for malformed rows: all but `late` and `no_window`."""

WINDOW_COLUMNS = {
    "window_start": "timestamp",
    "window_end": "timestamp",
    "window_date": "date",
    "records": "long",
    "late_accepted": "long",
    "firings": "long",
    "state": "string",
    "fired_at": "timestamp",
    "closed_at": "timestamp",
    "run_id": "string",
    "spec_fingerprint": "string",
}
FIRING_COLUMNS = {
    "firing": "long",
    "timing": "string",
    "fired_by": "string",
    "watermark_ms": "long",
    "supersedes": "long",
    "order_instant": "decimal(38,0)",
    "order_rank": "long",
    "order_sequence": "long",
    "order_ts_ms": "long",
    "order_window_ms": "long",
}
"""The columns of a firing in addition to its window's times and aggregates."""
PAIR_COLUMNS = {
    "pair_ts": "timestamp",
    "pair_date": "date",
    "left_record_id": "string",
    "right_record_id": "string",
    "pair": "long",
    "run_id": "string",
    "spec_fingerprint": "string",
}
"""The columns of a pair in addition to its key and the columns of both records."""
NOT_OF_A_FIRING = frozenset({"late_accepted", "firings", "state", "closed_at"})
"""The columns of a window that its single firings do not have."""
NOT_OF_A_RESULT = ("window_date", "supersedes", "supersedes_windows", "run_id", "spec_fingerprint")
"""The columns of a firing that it loses as an input record of another pipeline."""

COMPLETENESS = PublishedTable(
    name="completeness",
    columns={
        "slot_date": "date",
        "slot_start": "timestamp",
        "slot_end": "timestamp",
        "state": "string",
        "gap": "boolean",
        "fired_at": "timestamp",
        "closed_at": "timestamp",
        "on_time": "long",
        "late_accepted": "long",
        "late": "long",
        "no_window": "long",
        "missed_pairs": "long",
        "channels_heard": "array<string>",
        "slots": "long",
        "run_id": "string",
        "spec_fingerprint": "string",
    },
    keys=("slot_date", "slot_start", "slot_end"),
    partition="slot_date",
    start="slot_start",
    has_older_slots=True,
)
UNFIRED_COLUMN = {"unfired": "long"}
"""A column of `completeness` if windows can be dropped with records that no firing contained."""
INPUT = "input"
"""The column of quarantine with the side, `left` or `right`, if there are two sources."""
QUARANTINE = PublishedTable(
    name="quarantine",
    columns={
        "record_id": "string",
        "reason": "string",
        "watermark_ms": "long",
        "late_by_ms": "long",
        "slot_start": "timestamp",
        "missed_windows": "long",
        "quarantine_date": "date",
        "run_id": "string",
        "spec_fingerprint": "string",
    },
    keys=("quarantine_date", "slot_start", "record_id"),
    partition="quarantine_date",
    start="slot_start",
    has_older_slots=True,
    holds_source_rows=True,
)


def windows_table(key: Iterable[str]) -> PublishedTable:
    """The table `windows` of a pipeline with these key columns."""
    return PublishedTable(
        name="windows",
        columns=WINDOW_COLUMNS,
        keys=("window_date", "window_start", "window_end", *key),
        partition="window_date",
        start="window_start",
        has_older_slots=False,
    )


def firings_table(key: Iterable[str]) -> PublishedTable:
    """The table `firings` of a pipeline with these key columns."""
    of_window = {name: of for name, of in WINDOW_COLUMNS.items() if name not in NOT_OF_A_FIRING}
    return PublishedTable(
        name="firings",
        columns=of_window | FIRING_COLUMNS,
        keys=("window_date", "window_start", "window_end", *key, "firing"),
        partition="window_date",
        start="window_start",
        has_older_slots=False,
    )


def pairs_table(key: Iterable[str], *, of_windows: bool = False) -> PublishedTable:
    """The table `pairs` of a join with these key columns.

    A pair of an interval join belongs to a range by its own time. A pair of windows (`of_windows`)
    belongs to it by the start of the window whose last firing contained the pair; it may belong to
    several windows.
    """
    window = ("window_start", "window_end") if of_windows else ()
    return PublishedTable(
        name="pairs",
        columns={name: WINDOW_COLUMNS[name] for name in window} | PAIR_COLUMNS,
        keys=("pair_date", "pair_ts", *window, *key, "left_record_id", "right_record_id", "pair"),
        partition="pair_date",
        start="window_start" if of_windows else "pair_ts",
        has_older_slots=False,
        holds_source_rows=True,
    )


def tables_of(key: Iterable[str], *, pairs_of_windows: bool = False) -> dict[str, PublishedTable]:
    """All tables in the order of publishing: the rows that explain a window precede the window."""
    names = tuple(key)
    pairs = pairs_table(names, of_windows=pairs_of_windows)
    tables = (QUARANTINE, COMPLETENESS, firings_table(names), pairs, windows_table(names))
    return {table.name: table for table in tables}
