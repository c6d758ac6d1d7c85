"""A line on a real lake: a landing table, a pipeline, and its runs, for these tests."""

from __future__ import annotations

import random
import shutil
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request
from strandline.pipeline.run import run
from strandline.quality.audit import wording
from strandline.quality.audit.result import Audit, AuditResult
from strandline.spec import PipelineSpec, parse_spec
from strandline.spec.values import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from strandline.quality.audit.run import AuditInput


INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("arrived_at", INSTANT),
        ("happened_at", INSTANT),
        ("source", pa.string()),
        ("device", pa.string()),
        ("amount", pa.int64()),
        ("position", pa.int64()),
        ("arrived_on", pa.date32()),
    ]
)
RESULTS = ("windows", "quarantine", "completeness")
FIRST_DAY = date(2024, 3, 1)
SPEC: dict[str, Any] = {
    "pipeline": "meter",
    "source": {
        "table": "landing/meter",
        "arrival_date": "arrived_on",
        "arrival_time": "arrived_at",
        "event_time": "happened_at",
        "channel": "source",
        "channels": ["a", "b"],
        "key": ["device"],
    },
    "watermark": {
        "strategy": "bounded_out_of_orderness",
        "bound": "30m",
        "emit": {"every": "200ms"},
    },
    "window": {"tumbling": "1h", "offset": "15m"},
    "allowed_lateness": "1h",
    "aggregates": {"total": "sum(amount)", "mean": "avg(amount)"},
    "quality": {"gaps": "warn"},
    # more than one, however few the rows: where a row lies must not matter
    "spark": {"spark.sql.shuffle.partitions": "2"},
}


def at(text: str) -> datetime:
    """An instant, by the month's day and the time in March 2024: `4 06:30`."""
    day, _, time = text.partition(" ")
    return datetime.fromisoformat(f"2024-03-{int(day):02d}T{time or '00:00'}").replace(tzinfo=UTC)


def a_record(arrived: str, happened: str, source: str = "a", **changed: Any) -> dict[str, Any]:
    """A row of the landing table, in the partition of its arrival."""
    arrived_at = at(arrived)
    row = {
        "arrived_at": arrived_at,
        "happened_at": at(happened),
        "source": source,
        "device": "d1",
        "amount": 1,
        "position": 0,
        "arrived_on": arrived_at.date(),
    }
    return {**row, **changed}


def of_one(*times: str, first: int = 0, **changed: Any) -> list[dict[str, Any]]:
    """Records of one source: of each its arrival and, after a comma, its event time if another."""
    parts = [one.split(", ") for one in times]
    return [a_record(one[0], one[-1], position=first + n, **changed) for n, one in enumerate(parts)]


def a_week(seed: int = 1, days: int = 8) -> list[dict[str, Any]]:
    """Records of two sources: mostly in order, some hours or days late, b silent for a day.

    At night there are none. Some rows of every day are malformed, each in its own way.
    """
    chance = random.Random(seed)
    rows = []
    for day in range(days):
        midnight = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day + day, tzinfo=UTC)
        for source in "ab":
            for _ in range(40):
                happened = midnight + timedelta(seconds=chance.randrange(5 * 3600, 22 * 3600))
                lag = chance.choices((20, 180, 2000, 5000), (90, 6, 3, 1))[0]
                arrived = happened + timedelta(minutes=chance.randrange(lag))
                if source == "b" and arrived.day == 4:
                    continue
                rows.append(
                    {
                        "arrived_at": arrived,
                        "happened_at": happened,
                        "source": source,
                        "device": chance.choice(("d1", "d2", "d3")),
                        "amount": chance.randrange(100),
                        "position": len(rows),
                        "arrived_on": arrived.date(),
                    }
                )
        noon = midnight + timedelta(hours=12)
        good = {**rows[-1], "arrived_at": noon, "happened_at": noon, "arrived_on": noon.date()}
        rows += [
            {**good, "happened_at": None},
            {**good, "arrived_at": None},
            {**good, "arrived_at": noon + timedelta(days=1)},
            {**good, "source": "z"},
            {**good, "device": None},
        ]
    last = FIRST_DAY + timedelta(days=days)
    return [row for row in rows if row["arrived_on"] < last]


def a_spec(**changes: Any) -> PipelineSpec:
    """The pipeline `meter`; a change is a dotted path: `source__valid='amount > 0'`."""
    content = deepcopy(SPEC)
    for path, value in changes.items():
        *above, name = path.split("__")
        place = content
        for step in above:
            place = place.setdefault(step, {})
        if value is ...:
            place.pop(name, None)
        else:
            place[name] = value
    return parse_spec(content, origin="meter.yaml")


def land(
    lake: Path,
    rows: Iterable[Mapping[str, Any]] | pa.Table,
    *,
    mode: str = "overwrite",
    table: str = "landing/meter",
    partition_by: list[str] | None = None,
) -> None:
    """Write rows into a landing table, partitioned by `arrived_on` unless told otherwise."""
    content = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), SCHEMA)
    by = ["arrived_on"] if partition_by is None else partition_by
    write_deltalake(str(lake / table), content, mode=mode, partition_by=by or None)


def books_alone(spec: PipelineSpec, staged: AuditInput, **_: Any) -> Audit:
    """In place of an audit by Great Expectations, which takes longer than all else of a run."""
    books = staged.books
    balanced, said = all(book.balanced for book in books), wording.of_books(books)
    result = AuditResult("expect_books_to_balance", "books", "critical", balanced, said)
    return Audit((result,))


@contextmanager
def few_at_once(records: int = 60) -> Iterator[None]:
    """As on a driver that holds no more: days are observed in staging, ranges rebuilt in pieces."""
    with (
        patch("strandline.pipeline.observe.observation._AT_ONCE", records),
        patch("strandline.pipeline.rebuild.rebuild._MOST_CELLS", records),
        patch("strandline.lake.timeline.commit._AT_ONCE", records),
    ):
        yield


@dataclass(frozen=True)
class Line:
    """A pipeline over a lake in a folder.

    Its runs have the whole audit where `audited` says so, or where the pipeline itself asks for
    more than balanced books; else that of `books_alone`.
    """

    spark: SparkSession
    folder: Path
    spec: PipelineSpec
    audited: bool = False

    @property
    def lake(self) -> Lake:
        return Lake.at(str(self.folder))

    @property
    def root(self) -> Path:
        return self.folder / self.spec.pipeline

    @property
    def results(self) -> tuple[str, ...]:
        """The tables of results that the pipeline publishes."""
        return (*RESULTS, "firings") if self.spec.firings else RESULTS

    @property
    def ledger(self) -> list[Entry]:
        return Ledger(self.lake.pipeline(self.spec.pipeline)).entries()

    def of(self, spec: PipelineSpec) -> Line:
        """The same lake under another spec."""
        return replace(self, spec=spec)

    def copy(self, folder: Path) -> Line:
        """A lake of its own that begins as this one stands."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return replace(self, folder=folder)

    def advance(self, to: str, **more: Any) -> Outcome:
        return self.run(Request("advance", to_ms=instant(to), **more))

    def backfill(self, start: str, end: str, *, as_of: str | None = None, **more: Any) -> Outcome:
        within = TimeRange(instant(start), instant(end))
        horizon_ms = None if as_of is None else instant(as_of)
        return self.run(Request("backfill", within, as_of_ms=horizon_ms, **more))

    def run(self, request: Request, progress: Any = lambda step: None) -> Outcome:
        with self._audit():
            return run(self.spec, self.lake, request, self.spark, progress)

    def _audit(self) -> AbstractContextManager[Any]:
        asked = self.spec.quality
        more = asked.max_late_share is not None or asked.gaps == "fail" or asked.expectations
        if self.audited or more:
            return nullcontext()
        return patch("strandline.quality.audit.run.audit", books_alone)

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(str(self.root / name))

    def rows(self, name: str, *, run_id: bool = False) -> list[dict[str, Any]]:
        """The rows of a table as delta-rs reads them, in a fixed order; without `run_id`."""
        found = self.table(name).to_pyarrow_table().to_pylist()
        left_out = set() if run_id else {"run_id"}
        kept = [{k: v for k, v in sorted(row.items()) if k not in left_out} for row in found]
        return sorted(kept, key=lambda row: [(v is not None, str(v)) for v in row.values()])

    def published(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of windows, quarantine and completeness."""
        return {name: self.rows(name) for name in RESULTS}

    def versions(self) -> dict[str, int]:
        """The version of every table but the ledger."""
        found = self.lake.pipeline(self.spec.pipeline).versions()
        return {name: version for name, version in found.items() if name != "runs"}

    def files(self) -> dict[str, int]:
        """Every file of the lake with its size."""
        found = self.folder.rglob("*")
        return {str(p.relative_to(self.folder)): p.stat().st_size for p in found if p.is_file()}


def instant(text: str) -> int:
    """The milliseconds of an ISO instant, or of a day of March 2024 with a time: `4 06:30`."""
    if "-" in text:
        return parse_instant(text)
    return int(at(text).timestamp() * 1000)


def ms(moment: datetime | None) -> int | None:
    """The milliseconds of a time that a table holds."""
    return None if moment is None else round(moment.timestamp() * 1000)
