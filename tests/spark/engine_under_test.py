"""The engine's answer to a stream, by the functions of a backfill, and the reference's beside it.

Both answers are plain values in the same shape, so that a law is an equation between them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.axis import Axis
from strandline.engine.duplicates import with_duplicates
from strandline.engine.firings import ORDER
from strandline.engine.history import Clock, Closure, History
from strandline.engine.identity import SourceColumns
from strandline.engine.observe import observe
from strandline.engine.observed import history_of
from strandline.engine.quarantine import quarantine_malformed
from strandline.engine.rebuild import Rebuild, Scope, close
from strandline.engine.source import on_days, read_records
from strandline.engine.violations import violations
from strandline.model.intervals import EVERYTHING
from strandline.model.lateness import MIN_WATERMARK
from strandline.reference import Tables
from strandline.reference.answer import Firing, Timing
from strandline.spec.window import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame, SparkSession
    from strategies import Stream

    from strandline.reference import Record
    from strandline.spec import PipelineSpec

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
AGGREGATES = {"count": "count(*)", "sum": "sum(value)", "ids": "array_sort(collect_list(id))"}
AT_ONCE = 4
"""How many streams run at the same time: Spark is mostly waiting for itself on small input."""


def law(examples: int) -> settings:
    """So many batches; one that fails is not shrunk, which would take hours on Spark."""
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Told:
    """What an engine tells of a stream; the rows of each part in an order of their own.

    Attributes:
        windows: what Flink has emitted: content, counts, state, moments.
        open: what the watermark has not reached: key, start and ids.
        late: the late records, each with the watermark that it met and the lateness it lacked.
        firings: all of them, in Flink's order.
        final_watermark: MIN_WATERMARK: none yet.
        violations: of an ascending order that the watermark assumes.
    """

    windows: list[dict[str, Any]]
    open: list[dict[str, Any]]
    late: list[dict[str, Any]]
    firings: list[dict[str, Any]]
    final_watermark: int
    violations: int


# ------------------------------------------------------------------------------------ the reference


def reference(stream: Stream) -> Told:
    """What the record-by-record reference tells."""
    told = stream.replay()
    tables = Tables(stream.spec, told)
    return Told(
        windows=_by_window(
            {
                "key": row.key[0],
                "start": row.window.start_ms,
                "end": row.window.end_ms,
                **_content(row.members),
                "late_accepted": row.late_accepted,
                "firings": row.firings,
                "state": row.state,
                "fired_at": row.fired_at_ms,
                "closed_at": row.closed_at_ms,
            }
            for row in tables.windows()
        ),
        open=_by_window(
            {
                "key": row.key[0],
                "start": row.window.start_ms,
                "end": row.window.end_ms,
                **_content(row.members),
            }
            for row in told.open_at_end
            if not row.end_passed
        ),
        late=_by_id(
            {
                "id": row.record.payload["id"],
                "reason": row.reason,
                "watermark": None if row.watermark_ms == MIN_WATERMARK else row.watermark_ms,
                "late_by": row.late_by_ms,
                "start": row.slot_start_ms,
                "missed": row.missed_windows,
            }
            for row in tables.quarantine()
        ),
        firings=_in_order(
            (
                _place(firing, stream.spec),
                {
                    "key": firing.key[0],
                    "start": firing.window.start_ms,
                    "end": firing.window.end_ms,
                    **_content(firing.members),
                    "timing": firing.timing.value,
                    "fired_at": firing.moment.at_ms,
                    "watermark": firing.watermark_ms,
                },
            )
            for firing in told.firings
        ),
        final_watermark=told.final_watermark_ms,
        violations=told.violations,
    )


def _place(firing: Firing, spec: PipelineSpec) -> tuple[Any, ...]:
    """Where a firing stands in Flink's order; those that stand at one place have no order."""
    if firing.timing is Timing.ON_TIME:
        return (firing.timing, firing.moment, firing.window.end_ms)
    cause = firing.moment.after_record
    sequence = cause.sequence if spec.source.sequence is not None else 0
    # a record fires its newest window first; of sessions it fires one, after those of shorter gaps
    last = cause.gap_ms if isinstance(spec.window, Session) else -firing.window.end_ms
    if isinstance(spec.window, Session) and spec.window.gap_ms is not None:
        last = 0
    return (firing.timing, cause.arrival_ms, sequence, cause.ts_ms, last)


def _content(members: Sequence[Record]) -> dict[str, Any]:
    return {
        "count": len(members),
        "sum": sum(record.payload["value"] for record in members),
        "ids": sorted(record.payload["id"] for record in members),
    }


# --------------------------------------------------------------------------------------- the engine


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
        landing = spark.createDataFrame(pa.Table.from_pylist(rows, schema=LANDING))
        spec = stream.spec.model_copy(update={"aggregates": AGGREGATES, "firings": True})
        if partitions > 1:
            landing = landing.repartition(partitions)
        return cls(spark, landing, replace(stream, spec=spec))

    @property
    def axis(self) -> Axis:
        return Axis.of(self.stream.spec, self.stream.start_ms)

    @property
    def records(self) -> DataFrame:
        return read_records(self.landing, self.stream.spec, self.axis)

    @property
    def clock(self) -> Clock:
        ended = (Closure(EVERYTHING, self.stream.horizon_ms),) if self.stream.end_of_input else ()
        return Clock(self.stream.horizon_ms, ended)

    def marked(self, *days: date) -> DataFrame:
        """The rows of some arrival days (none named: of all), duplicates marked."""
        return with_duplicates(self.records, self.stream.spec, days, None if days else ())

    def observed(self) -> DataFrame:
        """The cells below the horizon; malformed rows are known with their day."""
        return observe(self.known, self.stream.spec, self.axis)

    @property
    def known(self) -> DataFrame:
        return self.marked().where(F.col(c.ARRIVAL) < self.stream.horizon_ms)

    def history(self) -> History:
        return history_of(self.known, self.stream.spec, self.axis, self.stream.horizon_ms)

    def rebuild(
        self,
        scope: Scope = Scope(EVERYTHING),  # noqa: B008 - frozen
        *,
        history: History | None = None,
        clock: Clock | None = None,
    ) -> Rebuild:
        known = history or self.history()
        return close(
            self.spark,
            self.observed_records(known),
            SourceColumns(tuple(self.landing.columns)),
            known,
            clock or self.clock,
            scope,
        )

    def observed_records(self, history: History) -> DataFrame:
        """The records of observed days: what else has landed is not read."""
        return on_days(self.records, set(history.well_formed["arrival_date"]))

    def told(self) -> Told:
        """Everything that the engine tells of the stream."""
        rebuild = self.rebuild()
        emitted, still_open = windows_of(rebuild)
        return Told(
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
        broken = violations(self.spark, known, history).toArrow().to_pylist()
        return sum(row["violations"] for row in broken)

    def malformed(self) -> dict[int, str]:
        """The reason of every malformed row, by id."""
        columns = SourceColumns(tuple(self.landing.columns))
        rows = quarantine_malformed(self.marked(), self.stream.spec, columns)
        return {row["id"]: row["reason"] for row in rows.toArrow().to_pylist()}


def windows_of(rebuild: Rebuild) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The windows that have been emitted, and those that are open."""
    rows = rebuild.windows().select(
        F.col("k").alias("key"),
        _ms("window_start", "start"),
        _ms("window_end", "end"),
        *("count", "sum", "ids", "records", "late_accepted", "firings", "state"),
        _ms("fired_at", "fired_at"),
        _ms("closed_at", "closed_at"),
    )
    emitted, still_open = [], []
    for row in rows.toArrow().to_pylist():
        if not row["records"]:
            continue  # only pairs that were missed
        assert row.pop("records") == row["count"]
        if row["state"] == "open":
            assert (row["fired_at"], row["closed_at"]) == (None, None)
            shown = ("key", "start", "end", "count", "sum", "ids")
            still_open.append({name: row[name] for name in shown})
        else:
            emitted.append(row)
    return _by_window(emitted), _by_window(still_open)


def late_of(rebuild: Rebuild) -> list[dict[str, Any]]:
    """The late records."""
    rows = rebuild.late().select(
        *("id", "reason"),
        F.col("watermark_ms").alias("watermark"),
        F.col("late_by_ms").alias("late_by"),
        _ms("slot_start", "start"),
        F.col("missed_windows").alias("missed"),
    )
    return _by_id(rows.toArrow().to_pylist())


def firings_of(rebuild: Rebuild) -> list[dict[str, Any]]:
    """The firings in Flink's order."""
    rows = rebuild.firings(F.format_string("%04d", "id")).select(
        F.col("k").alias("key"),
        _ms("window_start", "start"),
        _ms("window_end", "end"),
        *("count", "sum", "ids", "timing"),
        _ms("fired_at", "fired_at"),
        F.coalesce("watermark_ms", F.lit(MIN_WATERMARK)).alias("watermark"),
        F.struct(*(F.coalesce(name, F.lit(0)) for name in ORDER)).alias("order"),
    )
    ordered = [(tuple(row.pop("order").values()), row) for row in rows.toArrow().to_pylist()]
    return _in_order(sorted(ordered, key=lambda pair: pair[0]))


def each(streams: Iterable[Stream], told: Callable[[Stream], Any]) -> list[tuple[Stream, Any]]:
    """What is told of each stream, several at once."""
    given = list(streams)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(zip(given, pool.map(told, given), strict=True))


# ---------------------------------------------------------------------------------------- the shape


def _ms(name: str, alias: str) -> Column:
    return F.unix_millis(name).alias(alias)


def _by_window(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["start"], row["end"], row["key"]))


def _by_id(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def _in_order(ordered: Iterable[tuple[Any, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows as ordered; neighbours whose places are equal have no order: they go by content."""
    rows = []
    for _, tied in groupby(ordered, key=lambda pair: pair[0]):
        rows += sorted((row for _, row in tied), key=lambda row: (row["key"], row["ids"]))
    return rows
