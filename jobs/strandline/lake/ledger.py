"""The ledger: an append-only table with a row for each step of each run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import pyarrow as pa

from strandline.lake.store import Store, rows_of, storage_errors
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    TimeRange,
    datetime_of,
    instant_of,
    midnight_before,
)

_UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("run_id", pa.string()),
        ("attempt", pa.int64()),
        ("step", pa.string()),
        ("written_at", _UTC),
        ("kind", pa.string()),
        ("range_start", _UTC),
        ("range_end", _UTC),
        ("horizon", _UTC),
        ("closed", pa.bool_()),
        ("reopened", pa.bool_()),
        ("frontier", _UTC),
        ("spec_fingerprint", pa.string()),
        ("timeline_fingerprint", pa.string()),
        ("clock_start", _UTC),
        ("landing_version", pa.int64()),
        ("base", pa.int64()),
        ("books", pa.string()),
        ("diff", pa.string()),
        ("audit", pa.string()),
        ("versions", pa.string()),
        ("publish", pa.string()),
        ("gaps", pa.int64()),
        ("violations", pa.int64()),
        ("reason", pa.string()),
        ("requested_by", pa.string()),
        ("message", pa.string()),
    ]
)
FINAL = ("published", "rejected", "dropped", "failed")
_ENDS = ("published", "dropped")
"""What ends a publish that has begun."""


@dataclass(frozen=True)
class Entry:
    """A step of a run. Instants are in ms; `frontier_ms` is where the pipeline stands after it.

    `violations`: the records known at the horizon that came behind an earlier one of their channel;
    None where the watermark assumes no order, or ignores what breaks it.

    `versions`: of a `published` step those of all tables that belong together; of a `publishing`
    step those of the published tables before it, which `dropping` and `dropped` go back to.
    """

    run_id: str
    attempt: int
    step: str
    kind: str
    range: TimeRange | None = None
    horizon_ms: int | None = None
    closed: bool = False
    reopened: bool = False
    frontier_ms: int | None = None
    spec_fingerprint: str = ""
    timeline_fingerprint: str = ""
    clock_start_ms: int | None = None
    landing_version: int | None = None
    base: int = 0
    books: list[dict[str, Any]] | None = None
    diff: Mapping[str, Mapping[str, int]] | None = None
    audit: list[dict[str, Any]] | None = None
    versions: Mapping[str, int] | None = None
    publish: Mapping[str, list[str]] | None = None
    gaps: int | None = None
    violations: int | None = None
    reason: str | None = None
    requested_by: str | None = None
    message: str | None = None
    position: int = field(default=0)
    written_at: datetime | None = None


class Ledger:
    """Reads and appends the steps of a pipeline's runs."""

    def __init__(self, store: Store) -> None:
        """The ledger of a pipeline; reading needs no JVM."""
        self._store = store

    def entries(self) -> list[Entry]:
        """Every step, oldest first."""
        rows = rows_of(self._store.table("runs"))
        return [_entry(row) for row in sorted(rows, key=lambda row: row["position"])]

    def append(self, entry: Entry, written_at: datetime) -> int:
        """Append a step in one commit; returns its position."""
        with storage_errors(self._store.root), self._store.ledger_lock():
            entries = self.entries()
            position = entries[-1].position + 1 if entries else 1
            row = _row(entry, position, written_at)
            table = pa.Table.from_pylist([row], schema=SCHEMA)
            self._store.append("runs", table)
        return position


def published_into(entries: list[Entry], within: TimeRange) -> list[Entry]:
    """The published steps whose range shares an instant with one."""
    return [
        entry
        for entry in entries
        if entry.step == "published" and entry.range is not None and entry.range.overlaps(within)
    ]


def largest_horizon(entries: list[Entry], within: TimeRange) -> int | None:
    """The largest horizon published into any part of a range."""
    horizons = [entry.horizon_ms for entry in published_into(entries, within)]
    return max((ms for ms in horizons if ms is not None), default=None)


def frontier(entries: list[Entry]) -> int | None:
    """The midnight up to which everything that Flink would have said is published."""
    return next((e.frontier_ms for e in reversed(entries) if e.step == "published"), None)


def frontier_after(entries: list[Entry], run: Entry, completes_ms: int | None) -> int | None:
    """The frontier once a run is published.

    Args:
        entries: the ledger before it is.
        run: the run; one by hand that has changed something as of an earlier horizon takes
            knowledge back, and the frontier with it, so that the next scheduled run heals that.
        completes_ms: the midnight up to which the run itself publishes everything.
    """
    reached = frontier(entries)
    if reached is None or completes_ms is None:
        after = completes_ms if reached is None else reached
    else:
        after = max(reached, completes_ms)
    changed = any(any(counts.values()) for counts in (run.diff or {}).values())
    if after is None or run.horizon_ms is None or run.kind == "advance" or not changed:
        return after
    return min(after, midnight_before(run.horizon_ms))


def clock_start(entries: list[Entry]) -> int | None:
    """When the job's clock started, as the first observation has fixed it."""
    return next((e.clock_start_ms for e in entries if e.clock_start_ms is not None), None)


def unfinished_publish(entries: list[Entry]) -> Entry | None:
    """A publish that began, and neither ended nor was dropped: who takes the lock next finishes it.

    A failure on the way is no end: some tables may be written, and others not.
    """
    last: Entry | None = None
    for entry in entries:
        if entry.step == "publishing":
            last = entry
        elif last is not None and entry.run_id == last.run_id and entry.step in _ENDS:
            last = None
    return last


def begun_drop(entries: list[Entry], begun: Entry) -> Entry | None:
    """The step that began to drop a publish: from then on it is taken back, and not finished."""
    return next(
        (e for e in reversed(entries) if e.run_id == begun.run_id and e.step == "dropping"), None
    )


def _row(entry: Entry, position: int, written_at: datetime) -> dict[str, Any]:
    def moment(ms: int | None) -> datetime | None:
        return None if ms is None else datetime_of(ms)

    plain = {"books", "diff", "audit", "versions", "publish"}
    row = {f.name: getattr(entry, f.name) for f in fields(entry) if f.name in SCHEMA.names} | {
        "position": position,
        "written_at": written_at,
        "range_start": moment(entry.range.start_ms) if entry.range else None,
        "range_end": moment(min(entry.range.end_ms, _LAST_MS)) if entry.range else None,
        "horizon": moment(entry.horizon_ms),
        "frontier": moment(entry.frontier_ms),
        "clock_start": moment(entry.clock_start_ms),
    }
    return row | {name: json.dumps(row[name]) if row[name] is not None else None for name in plain}


_LAST_MS = END_OF_INSTANTS_MS - 1


def _entry(row: Mapping[str, Any]) -> Entry:
    def ms(moment: datetime | None) -> int | None:
        return None if moment is None else instant_of(moment)

    def parsed(text: str | None) -> Any:
        return None if text is None else json.loads(text)

    start, end = ms(row["range_start"]), ms(row["range_end"])
    return Entry(
        run_id=row["run_id"],
        attempt=row["attempt"],
        step=row["step"],
        kind=row["kind"],
        range=TimeRange(start, end) if start is not None and end is not None else None,
        horizon_ms=ms(row["horizon"]),
        closed=bool(row["closed"]),
        reopened=bool(row.get("reopened")),
        frontier_ms=ms(row["frontier"]),
        spec_fingerprint=row["spec_fingerprint"],
        timeline_fingerprint=row["timeline_fingerprint"],
        clock_start_ms=ms(row["clock_start"]),
        landing_version=row["landing_version"],
        base=row["base"],
        books=parsed(row["books"]),
        diff=parsed(row["diff"]),
        audit=parsed(row["audit"]),
        versions=parsed(row["versions"]),
        publish=parsed(row["publish"]),
        gaps=row["gaps"],
        violations=row.get("violations"),
        reason=row["reason"],
        requested_by=row["requested_by"],
        message=row["message"],
        position=row["position"],
        written_at=row["written_at"],
    )
