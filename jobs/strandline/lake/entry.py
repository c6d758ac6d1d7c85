"""A step of a run, and the row of the ledger that keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import date, datetime
from typing import Any, Generic, TypeVar, overload

import pyarrow as pa

from strandline.model.intervals import END_OF_INSTANTS_MS, TimeRange

UPKEEP = ("maintain", "erase")
"""Kinds of steps that no run has made."""
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
    ]
)


T = TypeVar("T")


class Json(Generic[T]):
    """A field that a row keeps as JSON: its text is parsed once somebody asks for the value.

    Most steps are read for the few fields that later runs go by, and their audits are long.
    """

    def __init__(self, of: Callable[[Any], T] = lambda parsed: parsed) -> None:
        """A field whose value follows from what the text is parsed into."""
        self._of = of

    def __set_name__(self, owner: type, name: str) -> None:
        """The name of the field."""
        self._name = name

    @overload
    def __get__(self, step: None, owner: type) -> None: ...

    @overload
    def __get__(self, step: object, owner: type) -> T | None: ...

    def __get__(self, step: object | None, owner: type) -> T | None:
        """The value; None: nothing is said, as by default."""
        if step is None:
            return None
        value: T | str | None = vars(step).get(self._name)
        if isinstance(value, str):
            value = vars(step)[self._name] = self._of(json.loads(value))
        return value

    def __set__(self, step: object, value: T | str | None) -> None:
        """Keep a value, or the JSON of one."""
        vars(step)[self._name] = value


def _dates(texts: Sequence[str]) -> list[date]:
    return [date.fromisoformat(text) for text in texts]


def _pairs(lists: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(start_ms, end_ms) for start_ms, end_ms in lists]


@dataclass(frozen=True)
class Driver:
    """The process that drives a run.

    Attributes:
        host: where it runs.
        pid: its number there.
        program_version: of this program.
        engine: on which the run is computed; None: the first release candidate knew only one.
        engine_version: of the engine.
    """

    host: str
    pid: int
    program_version: str
    engine: str | None = None
    engine_version: str | None = None


@dataclass(frozen=True)
class Entry:
    """A step of a run. Instants are in ms; `frontier_ms` is where the pipeline stands after it.

    A column of the ledger has the name of its field, without `_ms`; what a driver says has columns
    of its own, and so have both ends of a range.

    Attributes:
        violations: the records known at the horizon that came behind an earlier one of their
            channel; None where the watermark assumes no order, or ignores what breaks it.
        owed: of a step `owed`: arrival days whose rows have changed since they were observed, or
            that came behind the frontier; what they change is still to be published.
        settled: of a step `published`: the days to recompute that the run has settled.
        lost: arrival days that were observed with more rows than the landing table now has.
        accepted_loss: why a run goes by what is left of them; None: it does not.
        touched_from_ms: the start of the oldest slot that the run brings up to date; its range
            where that is older. What others publish from here on makes the run stale.
        first_open_ms: the start of the first slot that was not closed once the run was published.
        first_accepted_ms: the start (of cumulative windows the end) of the first slot that accepted
            a record; gaps lie behind it. None: none has, or the run goes by rules of its own.
        request_fingerprint: of what was asked of whom; None: it cannot be asked again.
        layout: the windows and the key of what the run publishes (`PipelineSpec.layout`); None: it
            reverts another run.
        recreated: whether the run publishes in place of all that was published before.
        overrides: what the run went by in place of what the pipeline's file says; None: nothing.
        versions: of a `published` step those of all tables that belong together; of a `publishing`
            step those of the tables that it writes, from before it, which `dropping` and `dropped`
            go back to.
        publish: of a `publishing` step, and of one that keeps its staging: which of what is staged
            there is to be published, and how.
        completes_ms: the midnight up to which the run publishes everything, if it does.
        driver: the process that has written the step; None: one that needs no session.
        reverts: the run whose publish a run takes back; None: it takes back none, or is of the
            first release candidate.
        landing_id: the landing table's own id, which `landing_version` is a version of; None: of
            the first release candidate.
        kept: the windows, as [start, end) in ms, that a scheduled run has left as a run by rules of
            its own had published them.
        dates: of a `published` step the dates of each table whose rows the run has changed, as
            ranges of neighbours; None: an earlier version of the program has written it.
        complete_ms: the midnight before which every slot is closed, and none is to come.
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
    books: Json[list[dict[str, Any]]] = Json()
    diff: Json[Mapping[str, Mapping[str, int]]] = Json()
    audit: Json[list[dict[str, Any]]] = Json()
    versions: Json[Mapping[str, int]] = Json()
    publish: Json[Mapping[str, list[str]]] = Json()
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
    position: int = 0
    written_at: datetime | None = None

    @property
    def changed(self) -> bool:
        """Whether anything published differs from before."""
        return any(any(counts.values()) for counts in (self.diff or {}).values())

    @property
    def touched(self) -> TimeRange | None:
        """The slots that the run brings up to date: its range, and the older ones before it."""
        if self.range is None or self.touched_from_ms is None:
            return self.range
        return TimeRange(min(self.touched_from_ms, self.range.start_ms), self.range.end_ms)


_INSTANTS = {f.name for f in SCHEMA if f.type == _UTC} - {"written_at"}
_FIELD_OF = {one.name.removesuffix("_ms"): one.name for one in fields(Entry)}
"""The field of a column."""
_DEFAULTS = {one.name: None if one.default is MISSING else one.default for one in fields(Entry)}
_TEXTS = [one.name for one in fields(Entry) if isinstance(vars(Entry).get(one.name), Json)]


def _with_instants_as(kind: pa.DataType) -> pa.Schema:
    return pa.schema([f.with_type(kind) if f.name in _INSTANTS else f for f in SCHEMA])


_IN_MS, _AS_NUMBERS = _with_instants_as(pa.timestamp("ms", tz="UTC")), _with_instants_as(pa.int64())


def row_of(entry: Entry, position: int, written_at: datetime) -> pa.Table:
    """The row that keeps a step."""
    kept = replace(entry, position=position, written_at=written_at)
    row = {column: getattr(kept, name) for column, name in _FIELD_OF.items()}
    row |= {} if entry.driver is None else asdict(entry.driver)
    row |= {name: None if row[name] is None else _text_of(row[name]) for name in _TEXTS}
    if entry.range is not None:
        row["range_start"] = entry.range.start_ms
        row["range_end"] = min(entry.range.end_ms, END_OF_INSTANTS_MS - 1)
    return pa.Table.from_pylist([row], schema=_IN_MS).cast(SCHEMA)


def _text_of(value: Any) -> str:
    return json.dumps(value, default=str, separators=(",", ":"), ensure_ascii=False)


def entries_of(rows: pa.Table) -> list[Entry]:
    """The steps that rows of the ledger keep; what is null in one is as if it had not been said."""
    numbers = rows.cast(_IN_MS, safe=False).cast(_AS_NUMBERS)
    values: dict[str, list[Any]] = {}
    for column, name in _FIELD_OF.items():
        if column in SCHEMA.names and numbers[column].null_count < len(rows):
            default = _DEFAULTS[name]
            kept = numbers[column] if default is None else numbers[column].fill_null(default)
            values[name] = kept.to_pylist()
    values["range"] = _parts(numbers, TimeRange, ["range_start", "range_end"])
    values["driver"] = _parts(numbers, Driver, [one.name for one in fields(Driver)])
    return [_entry_of(values, row) for row in zip(*values.values(), strict=True)]


def _parts(rows: pa.Table, kind: Callable[..., T], columns: Sequence[str]) -> list[T | None]:
    """The value of each row that has columns of its own; None: the first of them is null."""
    values = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return [None if row[0] is None else kind(*row) for row in values]


def _entry_of(names: Iterable[str], row: Sequence[Any]) -> Entry:
    """A step with these values, and defaults: not by `__init__`, which is slow for thousands."""
    entry = object.__new__(Entry)
    vars(entry).update(zip(names, row, strict=True))
    return entry
