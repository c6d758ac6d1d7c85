"""A step of a run, and its row in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import date, datetime
from typing import Any, TypeVar

import pyarrow as pa

from strandline.lake.ledger.stored_json import Json, stored
from strandline.lake.ledger.to_publish import ToPublish
from strandline.model.books import Book
from strandline.model.intervals import END_OF_INSTANTS_MS, TimeRange

UPKEEP = ("maintain", "erase", "acknowledge")
"""Kinds of steps that do not belong to a run."""
T = TypeVar("T")
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
        ("first_accepted", _UTC),
        ("reason", pa.string()),
        ("requested_by", pa.string()),
        ("message", pa.string()),
        ("request_fingerprint", pa.string()),
        ("completes", _UTC),
        ("host", pa.string()),
        ("pid", pa.int64()),
        ("program_version", pa.string()),
        ("layout", pa.string()),
        ("recreated", pa.bool_()),
        ("overrides", pa.string()),
        ("engine", pa.string()),
        ("engine_version", pa.string()),
        ("reverts", pa.string()),
        ("landing_id", pa.string()),
        ("kept", pa.string()),
        ("dates", pa.string()),
        ("complete", _UTC),
        ("acknowledged", pa.string()),
        ("touched_until", _UTC),
    ]
)

_DATELESS = "arrival day unknown"
"""The prefix of the book of rows without an arrival day."""


def _dates(texts: Sequence[str]) -> list[date]:
    return [date.fromisoformat(text) for text in texts]


def _pairs(lists: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(start_ms, end_ms) for start_ms, end_ms in lists]


def _books(parsed: Sequence[Mapping[str, Any]]) -> list[Book]:
    return [Book.from_json(book) for book in parsed]


@dataclass(frozen=True)
class Driver:
    """The driver process of a run.

    Attributes:
        host: its machine.
        pid: its process id.
        program_version: the version of this program.
        engine: the engine of the run; None: written by the first release candidate, which had one.
        engine_version: the version of the engine.
    """

    host: str
    pid: int
    program_version: str
    engine: str | None = None
    engine_version: str | None = None


@dataclass(frozen=True)
class Entry:
    """A step of a run. Instants are in ms since 1970; `frontier_ms` is the frontier after the step.

    A column of the ledger has the name of its field, without `_ms`; the fields of the driver, and
    both ends of a range, have separate columns.

    Attributes:
        violations: the number of records, known at the horizon, that violate the ascending order of
            their channel; None if the watermark strategy assumes no order, or ignores violations.
        owed: (step `owed`) arrival days to recompute: their rows have changed since they were
            observed, or arrived behind the frontier.
        settled: (step `published`) the days to recompute that the run has recomputed; of step
            `acknowledged` the days whose missing rows are acknowledged.
        lost: arrival days of which the landing table has fewer rows than were observed.
        accepted_loss: the reason why a run accepts these missing rows; None: it does not.
        touched_from_ms: the start of the oldest slot that the run updates; null: of its range.
        touched_until_ms: the end of the slots that it updates; gaps are listed again up to it.
        first_open_ms: the start of the first slot that is not closed after the publication, or
            that has a session which can still change.
        first_accepted_ms: the start (for cumulative windows the end) of the first slot that
            accepted a record, after which empty slots are gaps; None: there is none, or the run
            has overridden rules.
        request_fingerprint: a hash of the request; None: the request is never a repetition.
        layout: the windows and the key of the published rows (`PipelineSpec.layout`), and the
            `rules` of the pipeline; None: the run reverts another run.
        recreated: whether the run replaces all that was published before.
        overrides: the rules that override the pipeline's file; None: there are none.
        versions: (step `published`) the versions of all tables after the run; (step `publishing`)
            the versions, before the run, of the tables that it writes, to which `dropping` and
            `dropped` restore them.
        publish: (step `publishing`, and steps that keep their staging) what is to be published.
        completes_ms: the midnight up to which the run publishes everything; None: it does not.
        driver: the process that has written the step; None: it needs no session.
        reverts: the run that this run reverts; None: it reverts none, or was written by the first
            release candidate.
        landing_id: the landing table's id, to which `landing_version` belongs; None: written by the
            first release candidate.
        kept: the windows, as [start, end) in ms, that a scheduled run has kept as a run with
            overridden rules had published them; of step `acknowledged` the acknowledged gaps.
        dates: (step `published`) the dates with changed rows of each table, as ranges; None:
            written by an earlier version of the program.
        complete_ms: the midnight before which all slots are closed, and no further slot can come.
        acknowledged: (step `acknowledged`) the acknowledged findings: a sentence for each name.
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
    books: Json[Sequence[Book]] = Json(_books)
    diff: Json[Mapping[str, Mapping[str, int]]] = Json()
    audit: Json[list[dict[str, Any]]] = Json()
    versions: Json[Mapping[str, int]] = Json()
    publish: Json[ToPublish] = Json(ToPublish.from_json)
    gaps: int | None = None
    violations: int | None = None
    owed: Json[Sequence[date]] = Json(_dates)
    settled: Json[Sequence[date]] = Json(_dates)
    lost: Json[Sequence[date]] = Json(_dates)
    accepted_loss: str | None = None
    touched_from_ms: int | None = None
    first_open_ms: int | None = None
    first_accepted_ms: int | None = None
    reason: str | None = None
    requested_by: str | None = None
    message: str | None = None
    request_fingerprint: str | None = None
    completes_ms: int | None = None
    driver: Driver | None = None
    layout: Json[Mapping[str, Any]] = Json()
    recreated: bool = False
    overrides: Json[Mapping[str, str]] = Json()
    reverts: str | None = None
    landing_id: str | None = None
    kept: Json[Sequence[tuple[int, int]]] = Json(_pairs)
    dates: Json[Mapping[str, Sequence[Sequence[str]]]] = Json()
    complete_ms: int | None = None
    acknowledged: Json[Mapping[str, str]] = Json()
    touched_until_ms: int | None = None
    position: int = 0
    written_at: datetime | None = None

    @property
    def to_publish(self) -> ToPublish:
        """`publish`; without any part if the step has none."""
        return self.publish or ToPublish()

    @property
    def is_scheduled(self) -> bool:
        """Whether it is of a scheduled run; one by hand over everything counts as one."""
        return self.kind == "advance" or self.completes_ms is not None

    @property
    def requested_until_ms(self) -> int:
        """The midnight that a scheduled run was requested for; 0: it has no horizon.

        Its horizon is a later one where a run by hand has published as of a later cut-off. A run
        that waits for missing rows completes nothing, and has its horizon alone.
        """
        until_ms = self.horizon_ms if self.completes_ms is None else self.completes_ms
        return 0 if until_ms is None else until_ms

    @property
    def changed(self) -> bool:
        """Whether anything published differs from before."""
        return any(any(counts.values()) for counts in (self.diff or {}).values())

    @property
    def touched(self) -> TimeRange | None:
        """The slots that the run updates: its range, older slots before it, and gaps around it."""
        within, from_ms, until_ms = self.range, self.touched_from_ms, self.touched_until_ms
        if within is None:
            return None
        start_ms = within.start_ms if from_ms is None else min(from_ms, within.start_ms)
        end_ms = within.end_ms if until_ms is None else max(until_ms, within.end_ms)
        return TimeRange(start_ms, end_ms)


def rows_without_day(steps: Sequence[Entry]) -> int:
    """The number of rows without an arrival day, by the last of some steps that counted rows."""
    books = next((step.books for step in reversed(steps) if step.books is not None), ())
    return sum(book.total for book in books if book.name.startswith(_DATELESS))


_INSTANTS = {f.name for f in SCHEMA if f.type == _UTC} - {"written_at"}
_FIELD_OF = {one.name.removesuffix("_ms"): one.name for one in fields(Entry)}
"""The field of a column."""
_DEFAULTS = {one.name: None if one.default is MISSING else one.default for one in fields(Entry)}
_TEXTS = [one.name for one in fields(Entry) if isinstance(vars(Entry).get(one.name), Json)]


_MS = pa.timestamp("ms", tz="UTC")
_IN_MS = pa.schema([f.with_type(_MS) if f.name in _INSTANTS else f for f in SCHEMA])


def row_of(entry: Entry, position: int, written_at: datetime) -> pa.Table:
    """The ledger's row of a step."""
    kept = replace(entry, position=position, written_at=written_at)
    row = {column: getattr(kept, name) for column, name in _FIELD_OF.items()}
    row |= {} if entry.driver is None else asdict(entry.driver)
    row |= {name: None if row[name] is None else stored(row[name]) for name in _TEXTS}
    if entry.range is not None:
        row["range_start"] = entry.range.start_ms
        row["range_end"] = min(entry.range.end_ms, END_OF_INSTANTS_MS - 1)
    return pa.Table.from_pylist([row], schema=_IN_MS).cast(SCHEMA)


def entries_of(rows: pa.Table) -> list[Entry]:
    """The steps in rows of the ledger; a null is the field's default."""
    values: dict[str, list[Any]] = {}
    for column, name in _FIELD_OF.items():
        if column in SCHEMA.names and rows[column].null_count < len(rows):
            default, kept = _DEFAULTS[name], _in_ms(rows, column)
            values[name] = (kept if default is None else kept.fill_null(default)).to_pylist()
    values["range"] = _parts(rows, TimeRange, ["range_start", "range_end"])
    values["driver"] = _parts(rows, Driver, [one.name for one in fields(Driver)])
    return [_entry_of(values, row) for row in zip(*values.values(), strict=True)]


def _in_ms(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """The values of a column; instants but for `written_at` as milliseconds since 1970."""
    values = rows[column]
    return values.cast(_MS, safe=False).cast(pa.int64()) if column in _INSTANTS else values


def _parts(rows: pa.Table, kind: Callable[..., T], columns: Sequence[str]) -> list[T | None]:
    """The values with several columns, for each row; None if the first column is null."""
    values = zip(*(_in_ms(rows, name).to_pylist() for name in columns), strict=True)
    return [None if row[0] is None else kind(*row) for row in values]


def _entry_of(names: Iterable[str], row: Sequence[Any]) -> Entry:
    """A step with these values and defaults, made without `__init__`, which is too slow."""
    entry = object.__new__(Entry)
    vars(entry).update(zip(names, row, strict=True))
    return entry
