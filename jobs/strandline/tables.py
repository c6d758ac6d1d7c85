"""The published tables, each said once: their columns, their keys, and by what ranges go.

Types are named as Delta names them. `windows` and `firings` have the key columns and the aggregates
of their pipeline beside these, `quarantine` the whole source row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedTable:
    """A table that runs publish into.

    Attributes:
        name: below the pipeline's folder.
        columns: its own columns with their types, those of the pipeline left out.
        keys: the columns that identify a row, as Spark compares names: without case.
        partition: the date that it is partitioned by.
        start: the instant by which a row belongs to a range.
        has_older_slots: whether a run also changes rows of slots before its range, to which late
            records have come.
        holds_source_rows: whether its other columns are those of landing rows, as they landed.
    """

    name: str
    columns: Mapping[str, str]
    keys: tuple[str, ...]
    partition: str
    start: str
    has_older_slots: bool
    holds_source_rows: bool = False

    def is_of_source(self, name: str) -> bool:
        """Whether a column, by its name in lower case, is one of landing rows."""
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
"""Why a row is malformed: the reasons of quarantine but for `late` and `no_window`."""

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
"""What a firing has beside the content and the times of its window."""
PAIR_COLUMNS = {
    "pair_ts": "timestamp",
    "pair_date": "date",
    "left_record_id": "string",
    "right_record_id": "string",
    "pair": "long",
    "run_id": "string",
    "spec_fingerprint": "string",
}
"""What a pair has beside its key and the columns of both records."""
NOT_OF_A_FIRING = frozenset({"late_accepted", "firings", "state", "closed_at"})
"""What only the last firing of a window knows."""
NOT_OF_A_RESULT = ("window_date", "supersedes", "supersedes_windows", "run_id", "spec_fingerprint")
"""What a firing has that it does not have as a record of another pipeline."""

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
"""Counted in `completeness`, too, where windows can be dropped with records that no firing held."""
INPUT = "input"
"""Column of quarantine where there are two sources: `left` or `right`."""
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
    """The windows of a pipeline with these key columns."""
    return PublishedTable(
        name="windows",
        columns=WINDOW_COLUMNS,
        keys=("window_date", "window_start", "window_end", *key),
        partition="window_date",
        start="window_start",
        has_older_slots=False,
    )


def firings_table(key: Iterable[str]) -> PublishedTable:
    """The firings of a pipeline with these key columns."""
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
    """The pairs of a join with these key columns.

    Those of an interval join belong to a range by their own time; those `of_windows` by the start
    of the window whose last firing held them, and one pair may be of several windows.
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
    """All of them, in the order of publishing: who sees a window can see what it left behind."""
    names = tuple(key)
    pairs = pairs_table(names, of_windows=pairs_of_windows)
    tables = (QUARANTINE, COMPLETENESS, firings_table(names), pairs, windows_table(names))
    return {table.name: table for table in tables}


def of_windows(tables: Iterable[PublishedTable]) -> list[str]:
    """What a step's `publish` names under this word: `pairs`, if they are those of windows."""
    return [table.name for table in tables if table.name == "pairs" and table.start != "pair_ts"]


def tables_begun(publish: Mapping[str, Sequence[str]] | None) -> dict[str, PublishedTable]:
    """The tables of a run, as its ledger step says in `publish` what it brings in."""
    said = publish or {}
    return tables_of(said.get("key", ()), pairs_of_windows="pairs" in said.get("of_windows", ()))
