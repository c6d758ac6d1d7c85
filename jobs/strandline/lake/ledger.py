"""The ledger: an append-only table with a row for each step of each run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from threading import RLock
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from strandline.lake.store import Store, dataset_of_files, paths_of, storage_errors
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
        ("owed", pa.string()),
        ("settled", pa.string()),
        ("lost", pa.string()),
        ("accepted_loss", pa.string()),
        ("touched_from", _UTC),
        ("first_open", _UTC),
        ("reason", pa.string()),
        ("requested_by", pa.string()),
        ("message", pa.string()),
        ("request_fingerprint", pa.string()),
    ]
)
FINAL = ("published", "repeated", "rejected", "dropped", "failed")
_ENDS = ("published", "dropped")
"""What ends a publish that has begun."""


@dataclass(frozen=True)
class Entry:
    """A step of a run. Instants are in ms; `frontier_ms` is where the pipeline stands after it.

    Attributes:
        violations: the records known at the horizon that came behind an earlier one of their
            channel; None where the watermark assumes no order, or ignores what breaks it.
        owed: of a step `owed`: arrival days whose rows have changed since they were observed, or
            that came behind the frontier; what they change is still to be published.
        settled: of a step `published`: the owed days that the run has settled.
        lost: arrival days that were observed with more rows than the landing table now has.
        accepted_loss: why a run goes by what is left of them; None: it does not.
        touched_from_ms: the start of the oldest slot that the run brings up to date; its range
            where that is older. What others publish from here on makes the run stale.
        first_open_ms: the start of the first slot that was not closed once the run was published.
        request_fingerprint: of what was asked of whom; None: it cannot be asked again.
        versions: of a `published` step those of all tables that belong together; of a `publishing`
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
    owed: Sequence[date] | None = None
    settled: Sequence[date] | None = None
    lost: Sequence[date] | None = None
    accepted_loss: str | None = None
    touched_from_ms: int | None = None
    first_open_ms: int | None = None
    reason: str | None = None
    requested_by: str | None = None
    message: str | None = None
    request_fingerprint: str | None = None
    position: int = field(default=0)
    written_at: datetime | None = None

    @property
    def touched(self) -> TimeRange | None:
        """The slots that the run brings up to date: its range, and the older ones before it."""
        if self.range is None or self.touched_from_ms is None:
            return self.range
        return TimeRange(min(self.touched_from_ms, self.range.start_ms), self.range.end_ms)


class Ledger:
    """Reads and appends the steps of a pipeline's runs.

    A step is never changed, so that what was read once is remembered: the table is opened once,
    then only what its log has got since is read; and each file is read once.
    """

    def __init__(self, store: Store) -> None:
        """The ledger of a pipeline; reading needs no JVM."""
        self._store = store
        self._table: DeltaTable | None = None
        self._read: dict[str, list[Entry]] = {}
        self._one_thread = RLock()  # no two may use the open table at once

    def entries(self) -> list[Entry]:
        """Every step, oldest first."""
        with self._one_thread:
            table = self._newest()
            if table is None:
                return []
            self._read = {
                path: self._read.get(path) or _steps_of(table, path) for path in paths_of(table)
            }
            entries = [entry for steps in self._read.values() for entry in steps]
        return sorted(entries, key=lambda entry: entry.position)

    def _newest(self) -> DeltaTable | None:
        if self._table is None:
            self._table = self._store.table("runs")
        else:
            self._table.update_incremental()
        return self._table

    def append(self, entry: Entry, written_at: datetime) -> int:
        """Append a step in one commit; returns its position."""
        with self._one_thread, storage_errors(self._store.root), self._store.ledger_lock():
            entries = self.entries()
            position = entries[-1].position + 1 if entries else 1
            row = _row(entry, position, written_at)
            table = pa.Table.from_pylist([row], schema=SCHEMA)
            self._store.append("runs", table, to=self._table)
        return position


def _steps_of(table: DeltaTable, path: str) -> list[Entry]:
    rows = dataset_of_files(table, [path], SCHEMA).to_table()
    return [_entry(row) for row in rows.to_pylist()]


def published_into(entries: list[Entry], within: TimeRange) -> list[Entry]:
    """The published steps whose range shares an instant with one."""
    return [
        entry
        for entry in entries
        if entry.step == "published" and entry.range is not None and entry.range.overlaps(within)
    ]


def published_since(entries: list[Entry], run: Entry) -> list[Entry]:
    """The published steps since a run's base that touch slots which the run touches too."""
    mine = run.touched
    return [
        entry
        for entry in entries
        if entry.step == "published"
        and entry.position > run.base
        and entry.run_id != run.run_id
        and mine is not None
        and entry.touched is not None
        and entry.touched.overlaps(mine)
    ]


def owed_days(entries: list[Entry]) -> list[date]:
    """The arrival days that are still to be judged again.

    A run settles the days that it knew of: those noted before the ledger's position that it is
    based on, and those that it has noted itself.
    """
    noted: dict[date, Entry] = {}
    for entry in entries:
        if entry.step == "owed":
            noted |= dict.fromkeys(entry.owed or (), entry)
        if entry.step == "published":
            for day in entry.settled or ():
                note = noted.get(day)
                if note and (note.position <= entry.base or note.run_id == entry.run_id):
                    del noted[day]
    return sorted(noted)


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
        "touched_from": moment(entry.touched_from_ms),
        "first_open": moment(entry.first_open_ms),
    }
    for name in ("owed", "settled", "lost"):
        days = getattr(entry, name)
        row[name] = None if days is None else json.dumps([day.isoformat() for day in days])
    return row | {name: json.dumps(row[name]) if row[name] is not None else None for name in plain}


_LAST_MS = END_OF_INSTANTS_MS - 1


def _entry(row: Mapping[str, Any]) -> Entry:
    def ms(moment: datetime | None) -> int | None:
        return None if moment is None else instant_of(moment)

    def parsed(text: str | None) -> Any:
        return None if text is None else json.loads(text)

    def days(text: str | None) -> list[date] | None:
        return None if text is None else [date.fromisoformat(day) for day in json.loads(text)]

    # no run knows what comes after it: a ledger of before the clock was asked may say so
    written_ms = ms(row["written_at"])
    if written_ms is None:
        written_ms = END_OF_INSTANTS_MS - 1
    horizon_ms, frontier_ms = ms(row["horizon"]), ms(row["frontier"])
    start, end = ms(row["range_start"]), ms(row["range_end"])
    return Entry(
        run_id=row["run_id"],
        attempt=row["attempt"],
        step=row["step"],
        kind=row["kind"],
        range=TimeRange(start, end) if start is not None and end is not None else None,
        horizon_ms=None if horizon_ms is None else min(horizon_ms, written_ms),
        closed=bool(row["closed"]),
        reopened=bool(row["reopened"]),
        frontier_ms=(
            None if frontier_ms is None else min(frontier_ms, midnight_before(written_ms))
        ),
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
        violations=row["violations"],
        owed=days(row["owed"]),
        settled=days(row["settled"]),
        lost=days(row["lost"]),
        accepted_loss=row["accepted_loss"],
        touched_from_ms=ms(row["touched_from"]),
        first_open_ms=ms(row["first_open"]),
        reason=row["reason"],
        requested_by=row["requested_by"],
        message=row["message"],
        request_fingerprint=row["request_fingerprint"],
        position=row["position"],
        written_at=row["written_at"],
    )
