"""A pipeline over the results of another one on a real lake, and what the reference says of it."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lakes import Line, a_spec, instant, ms
from replayed import assert_books_balance, replay_of

from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.plan.results_changed import of_changed_results
from strandline.pipeline.request.request import Request
from strandline.reference.chained import replay_chained
from strandline.reference.tables import Tables
from strandline.spec import parse_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from strandline.reference.answer import Firing
    from strandline.reference.records import Record
    from strandline.spec import PipelineSpec
    from strandline.spec.chained import ChainedSpec

HOURS = a_spec(firings=True)
DAYS: dict[str, Any] = {
    "pipeline": "days",
    "source": {"pipeline": "meter", "key": ["device"]},
    "window": {"tumbling": "1d", "offset": "15m"},
    "allowed_lateness": "0s",
    "aggregates": {"total": "sum(total)", "hours": "count(*)"},
    "spark": {"spark.sql.shuffle.partitions": "2"},
}


class Chain:
    """Both pipelines over one lake."""

    def __init__(
        self, spark: SparkSession, folder: Path, hours: PipelineSpec = HOURS, **changed: Any
    ) -> None:
        self.then = cast("ChainedSpec", parse_any(DAYS | changed, origin="days.yaml"))
        self.hours = Line(spark, folder, hours)
        self.days = self.hours.of(self.then.over(hours))

    def of(self, line: Line) -> Chain:
        """The same pipelines over the lake of another line."""
        other = copy(self)
        other.hours, other.days = line.of(self.hours.spec), line.of(self.days.spec)
        return other

    def to_rebuild(self, night: str) -> list[Request]:
        """What a scheduled run of the days rebuilds first, since results have changed."""
        days = self.days
        landing = open_landing(days.spark, days.lake, days.spec)
        asked, state = Request("advance", to_ms=instant(night)), PipelineState.of(days.ledger)
        store = days.lake.pipeline(days.spec.pipeline)
        return list(of_changed_results(landing, asked, state, store))


def told(chain: Chain, rows: Iterable[Mapping[str, Any]], horizon: str) -> dict[str, list[Any]]:
    """The tables of the days by the reference."""
    upstream = replay_of(chain.hours.spec, rows, horizon)
    times: Counter[Any] = Counter()
    numbers = {}
    for firing in upstream.firings:
        times[firing.key, firing.window] += 1
        numbers[firing.seq] = times[firing.key, firing.window]

    def result(firing: Firing, record: Record) -> Record:
        total = sum(member.payload["amount"] for member in firing.members)
        window = (firing.window.start_ms, firing.key[0], numbers[firing.seq])
        return replace(record, key=firing.key, payload={"total": total, "window": window})

    replayed = replay_chained(chain.then, upstream, result)
    tables = Tables(chain.days.spec, replayed)
    return {
        "firings": sorted(
            (
                (firing.window.start_ms, firing.key[0], firing.origin.at_ms, firing.watermark_ms),
                (sum(r.payload["total"] for r in firing.members), len(firing.members)),
            )
            for firing in (replayed.firings if chain.then.firings else ())
        ),
        "windows": sorted(
            (
                (row.window.start_ms, row.window.end_ms, row.key[0]),
                (sum(r.payload["total"] for r in row.members), len(row.members)),
                (row.late_accepted, row.firings, row.state, row.fired_at_ms, row.closed_at_ms),
            )
            for row in tables.windows()
        ),
        "quarantine": sorted(
            (row.record.payload["window"], row.reason, row.watermark_ms, row.late_by_ms)
            for row in tables.quarantine()
        ),
        "completeness": sorted(
            (
                (row.window.start_ms, row.slot.state, row.slot.fired_at_ms),
                (row.on_time, row.late_accepted, row.late, row.no_window),
            )
            for row in tables.completeness()
        ),
    }


def found(chain: Chain) -> dict[str, list[Any]]:
    """What is published of the days."""
    days = chain.days
    return {
        "firings": sorted(
            (
                (ms(row["window_start"]), row["device"], ms(row["fired_at"]), row["watermark_ms"]),
                (row["total"], row["hours"]),
            )
            for row in (days.rows("firings") if chain.then.firings else ())
        ),
        "windows": sorted(
            (
                (ms(row["window_start"]), ms(row["window_end"]), row["device"]),
                (row["total"], row["hours"]),
                (
                    *(row[name] for name in ("late_accepted", "firings", "state")),
                    *(ms(row[name]) for name in ("fired_at", "closed_at")),
                ),
            )
            for row in days.rows("windows")
        ),
        "quarantine": sorted(
            (
                (ms(row["window_start"]), row["device"], row["firing"]),
                *(row[name] for name in ("reason", "watermark_ms", "late_by_ms")),
            )
            for row in days.rows("quarantine")
        ),
        "completeness": sorted(
            (
                (ms(row["slot_start"]), row["state"], ms(row["fired_at"])),
                tuple(row[name] for name in ("on_time", "late_accepted", "late", "no_window")),
            )
            for row in days.rows("completeness")
            if not row["gap"]
        ),
    }


def assert_told(chain: Chain, rows: Iterable[Mapping[str, Any]], horizon: str) -> None:
    expected, published = told(chain, rows, horizon), found(chain)
    for name, of_table in expected.items():
        assert published[name] == of_table, name
    assert_books_balance(chain.days)
