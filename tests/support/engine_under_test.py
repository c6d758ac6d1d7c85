"""The engine's answer to a stream, by the functions of a backfill, each part for whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from answers import Answer, by_id, by_window, in_order
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import from_arrow
from strandline.engine.history.history import History
from strandline.engine.history.observed import observed_history, violations
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.days import on_days
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.quarantine import quarantine_malformed
from strandline.engine.records.read import read_records
from strandline.engine.result_rows import ORDER
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.watermark.cells import observe
from strandline.model.intervals import EVERYTHING
from strandline.model.lateness import MIN_WATERMARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame, SparkSession
    from strategies import Stream

LANDING = pa.schema(
    [
        ("arrival_ms", pa.int64()),
        ("seq", pa.int64()),
        ("ts_ms", pa.int64()),
        ("channel", pa.string()),
        ("k", pa.string()),
        ("id", pa.int64()),
        ("value", pa.int64()),
        ("marker", pa.bool_()),
        ("candidate_ms", pa.int64()),
        ("gap_ms", pa.int64()),
    ]
)
AGGREGATES = {
    "count": "count(*)",
    "sum": "sum(value)",
    "ids": "array_sort(collect_list(id))",
}
AT_ONCE = 4
"""How many streams run at the same time: Spark is mostly waiting for itself on small input."""


@dataclass(frozen=True)
class Engine:
    """The engine on one landing table.

    Attributes:
        landing: the rows of the stream, and whatever else has landed.
        stream: the pipeline, and what a run of it knows.
    """

    spark: SparkSession
    landing: DataFrame
    stream: Stream

    @classmethod
    def on(
        cls,
        spark: SparkSession,
        stream: Stream,
        *,
        beside: Sequence[dict[str, Any]] = (),
        arranged: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list,
        partitions: int = 1,
    ) -> Engine:
        """The engine on a stream's landing table.

        Args:
            spark: the session.
            stream: the stream.
            beside: further rows that have landed.
            arranged: the order of the rows.
            partitions: into how many parts they are dealt.
        """
        rows = arranged([*stream.rows(), *beside])
        landing = from_arrow(spark, pa.Table.from_pylist(rows, schema=LANDING))
        spec = stream.spec.model_copy(update={"aggregates": AGGREGATES, "firings": True})
        if partitions > 1:
            landing = landing.repartition(partitions)
        return cls(spark, landing, replace(stream, spec=spec))

    @cached_property
    def axis(self) -> Axis:
        return Axis.of(self.stream.spec, self.stream.start_ms)

    @cached_property
    def records(self) -> DataFrame:
        return read_records(self.landing, self.stream.spec)

    @property
    def clock(self) -> Clock:
        ended = (Closure(EVERYTHING, self.stream.horizon_ms),) if self.stream.end_of_input else ()
        return Clock(self.stream.horizon_ms, ended, by_channel=True)

    def marked(self, *days: date) -> DataFrame:
        """The rows of some arrival days (none named: of all), duplicates marked."""
        return with_duplicates(self.records, self.stream.spec, days, None if days else ())

    def observed(self) -> DataFrame:
        """The cells below the horizon; malformed rows are known with their day."""
        return observe(self.known, self.stream.spec, self.axis)

    @cached_property
    def known(self) -> DataFrame:
        return self.marked().where(F.col(c.ARRIVAL) < self.stream.horizon_ms)

    def history(self) -> History:
        return observed_history(self.known, self.stream.spec, self.axis, self.stream.horizon_ms)

    def rebuild(
        self,
        scope: Scope = Scope(EVERYTHING),  # noqa: B008 - frozen
        *,
        history: History | None = None,
        clock: Clock | None = None,
        tie_breaker: str | None = "id",
    ) -> Rebuild:
        """A rebuild; the numbers of a column order records of one position, or their identity."""
        number = None if tie_breaker is None else F.format_string("%04d", tie_breaker)
        known = history or self.history()
        return rebuild_of_scope(
            self.observed_records(known),
            SourceColumns.of(self.landing),
            known,
            clock or self.clock,
            scope,
            tie_breaker=number,
        )

    def observed_records(self, history: History) -> DataFrame:
        """The records of observed days: what else has landed is not read."""
        return on_days(self.records, history.days.every)

    def answer(self, scope: Scope = Scope(EVERYTHING)) -> Answer:  # noqa: B008 - frozen
        """The whole answer; of a range, where the scope is one."""
        rebuild = self.rebuild(scope)
        emitted, still_open = windows_of(rebuild)
        return Answer(
            windows=emitted,
            open=still_open,
            late=late_of(rebuild),
            firings=firings_of(rebuild),
            final_watermark=rebuild.final_watermark(),
            violations=self.violations(rebuild.history),
        )

    def violations(self, history: History, day: date | None = None) -> int:
        """The violations below the horizon, of one arrival day or all; 0: they do not count."""
        if self.stream.spec.watermark.violation_handler is None:
            return 0
        known = self.known
        if day is not None:
            known = known.where(F.col(c.ARRIVAL_DAY) == F.lit(day))
        broken = violations(known, history).toArrow().to_pylist()
        return sum(row["violations"] for row in broken)

    def malformed(self) -> dict[int, str]:
        """The reason of every malformed row, by id."""
        columns = SourceColumns.of(self.landing)
        rows = quarantine_malformed(self.marked(), self.stream.spec, columns)
        return {row["id"]: row["reason"] for row in rows.toArrow().to_pylist()}


def windows_of(rebuild: Rebuild) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The windows that have been emitted, and those that are open."""
    letting_go = rebuild.history.spec.last_may_lack_records
    windows = rebuild.windows()
    rows = windows.select(
        F.col("k").alias("key"),
        _ms("window_start", "start"),
        _ms("window_end", "end"),
        *contents_of(windows),
        *("records", "late_accepted", "firings", "state"),
        _ms("fired_at", "fired_at"),
        _ms("closed_at", "closed_at"),
    )
    emitted, still_open = [], []
    for row in rows.toArrow().to_pylist():
        if not row["firings"]:
            continue  # not fired yet, or only pairs that were missed
        assert row.pop("records") == row["count"]
        row["sum"] = row["sum"] or 0  # of no record it is null
        if row["state"] == "open":
            assert (row["fired_at"], row["closed_at"]) == (None, None)
            shown = ("key", "start", "end", "count", "sum", "ids")
            still_open.append({name: row[name] for name in shown if name in row})
        else:
            emitted.append(row)
    return by_window(emitted), open_of(rebuild) if letting_go else by_window(still_open)


def open_of(rebuild: Rebuild) -> list[dict[str, Any]]:
    """What windows hold that the watermark has not ended, be it that records have fired them."""
    held = rebuild.in_state().where(F.col("state") == "open")
    shown = held.select(
        F.col("k").alias("key"),
        _ms("window_start", "start"),
        _ms("window_end", "end"),
        *contents_of(held),
    )
    rows = shown.toArrow().to_pylist()
    return by_window(row | {"sum": row["sum"] or 0} for row in rows)


def late_of(rebuild: Rebuild) -> list[dict[str, Any]]:
    """The late records."""
    rows = rebuild.late().select(
        *("id", "reason"),
        F.col("watermark_ms").alias("watermark"),
        F.col("late_by_ms").alias("late_by"),
        _ms("slot_start", "start"),
        F.col("missed_windows").alias("missed"),
    )
    return by_id(rows.toArrow().to_pylist())


def firings_of(rebuild: Rebuild) -> list[dict[str, Any]]:
    """The firings in Flink's order."""
    firings = rebuild.firings()
    rows = firings.select(
        F.col("k").alias("key"),
        _ms("window_start", "start"),
        _ms("window_end", "end"),
        *contents_of(firings),
        "firing",
        F.coalesce("supersedes", F.lit(0)).alias("supersedes"),
        "timing",
        _ms("fired_at", "fired_at"),
        F.coalesce("watermark_ms", F.lit(MIN_WATERMARK)).alias("watermark"),
        F.struct(*(F.coalesce(name, F.lit(0)) for name in ORDER)).alias("order"),
    )
    ordered = [
        (tuple(row.pop("order").values()), row | {"sum": row["sum"] or 0})
        for row in rows.toArrow().to_pylist()
    ]
    # of one moment those of overlapping windows have no defined order: here the earlier one first
    return in_order(sorted(ordered, key=lambda pair: (pair[0], pair[1]["start"])))


def contents_of(windows: DataFrame) -> list[str]:
    """The aggregates of windows: those of AGGREGATES that the pipeline has."""
    return [name for name in AGGREGATES if name in windows.columns]


def each(streams: Iterable[Stream], asked: Callable[[Stream], Any]) -> list[tuple[Stream, Any]]:
    """What is asked of each stream, of several at once."""
    given = list(streams)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(zip(given, pool.map(asked, given), strict=True))


def _ms(name: str, alias: str) -> Column:
    return F.unix_millis(name).alias(alias)
