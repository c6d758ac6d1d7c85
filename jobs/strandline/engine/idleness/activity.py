"""The activity of channels that can go idle: ticks on which records count, and watermarks offered.

A record counts (*becomes visible*) on the first tick after its arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import before_here, collected, long, named
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.records.arithmetic import tick_after
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

TICK_COLUMNS = ("arrival_date", "channel", "tick_ms", "before_ms", "candidate_ms")
_OFFER_COLUMNS = ("arrival_date", "channel", "seen_from", "candidate_ms")
_FIRST_COLUMNS = ("arrival_date", "channel", "instant", "sequence", "ts_ms")


@dataclass(frozen=True)
class Activity:
    """The activity of channels on some arrival days.

    Attributes:
        on_ticks: `arrival_date`, `channel`, `tick_ms` (the tick at which a record becomes visible),
            `before_ms` (the tick of the record before it; null: none on that day), `candidate_ms`
            (the largest candidate offered at the tick; null: none).
        at_once: `arrival_date`, `channel`, `seen_from`, `candidate_ms`: offers visible at once.
        first: `arrival_date`, `channel`, `instant`, `sequence`, `ts_ms` of a day's first record;
            for discovered channels only.
    """

    on_ticks: pd.DataFrame
    at_once: pd.DataFrame
    first: pd.DataFrame

    @property
    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """All three tables."""
        return self.on_ticks, self.at_once, self.first

    def of(self, day: date) -> Activity:
        """The activity of one day."""
        return Activity(*(part[part["arrival_date"] == day] for part in self.parts))


SILENCE = Activity(
    pd.DataFrame(columns=[*TICK_COLUMNS]),
    pd.DataFrame(columns=[*_OFFER_COLUMNS]),
    pd.DataFrame(columns=[*_FIRST_COLUMNS]),
)
"""The activity of channels on days without a record."""


_TICK = "_strandline_tick_ms"
_BEFORE = "_strandline_before_ms"
_LARGEST = "_strandline_largest_ms"


def observe_activity(records: DataFrame, spec: PipelineSpec, rules: IdlenessRules) -> Activity:
    """The activity of channels on the arrival days of some well-formed records.

    Only rows that can move the watermark come to the driver: the first and last rows of a channel
    and day, rows that raise its watermark, and rows before which it may have become idle.
    """
    by_records = rules.offers_at_once
    tick = tick_after(F.col(c.ARRIVAL), rules.ticks)
    offered = F.max(c.CANDIDATE) if not by_records else long(None)
    of_day = Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL).orderBy(_TICK)
    on_ticks = (
        records.withColumn(_TICK, tick)
        .groupBy(c.ARRIVAL_DAY, c.CHANNEL, _TICK)
        .agg(offered.alias(c.CANDIDATE))
        .withColumns(
            {
                _BEFORE: F.lag(_TICK).over(of_day),
                _LARGEST: _largest_before(of_day),
                "last": F.lead(_TICK).over(of_day).isNull(),
            }
        )
        .where(
            F.col("last")
            | F.col(_BEFORE).isNull()
            | (F.col(_TICK) - F.col(_BEFORE) > rules.timeout_ms)
            | (F.col(c.CANDIDATE) > F.col(_LARGEST))
        )
    )
    shown = {"tick_ms": _TICK, "before_ms": _BEFORE, "candidate_ms": c.CANDIDATE}
    discovers = spec.source.declared_channels is None
    return Activity(
        on_ticks=_collected(on_ticks, {name: F.col(own) for name, own in shown.items()}),
        at_once=_at_once(records.withColumn(_TICK, tick)) if by_records else SILENCE.at_once,
        first=_first(records) if discovers else SILENCE.first,
    )


def _at_once(records: DataFrame) -> pd.DataFrame:
    """The watermarks of punctuated records: each new highest of a day, and each tick's first."""
    of_day = Window.partitionBy(c.ARRIVAL_DAY, c.CHANNEL).orderBy(c.INSTANT)
    offers = (
        records.where(F.col(c.CANDIDATE).isNotNull())
        .groupBy(c.ARRIVAL_DAY, c.CHANNEL, c.INSTANT)
        .agg(F.max(c.CANDIDATE).alias(c.CANDIDATE), F.first(_TICK).alias(_TICK))
        .withColumns({_BEFORE: F.lag(_TICK).over(of_day), _LARGEST: _largest_before(of_day)})
        .where(
            F.col(_BEFORE).isNull()
            | (F.col(_BEFORE) < F.col(_TICK))
            | (F.col(c.CANDIDATE) > F.col(_LARGEST))
        )
    )
    seen = {"seen_from": F.col(c.INSTANT) + 1, "candidate_ms": F.col(c.CANDIDATE)}
    return _with_whole_numbers(_collected(offers, seen), "seen_from")


def _first(records: DataFrame) -> pd.DataFrame:
    """The first record of each channel on each day."""
    own = {"instant": c.INSTANT, "sequence": c.SEQUENCE, "ts_ms": c.TS}
    least = F.min(F.struct(*own.values())).alias("first")
    first = records.groupBy(c.ARRIVAL_DAY, c.CHANNEL).agg(least)
    found = _collected(first, {name: F.col("first")[of] for name, of in own.items()})
    return _with_whole_numbers(found, "instant")


def _collected(rows: DataFrame, columns: Mapping[str, Column]) -> pd.DataFrame:
    """Columns of each arrival day and channel, on the driver."""
    of_day = {"arrival_date": F.col(c.ARRIVAL_DAY), "channel": F.col(c.CHANNEL), **columns}
    return collected(rows.select(*named(of_day)))


def _largest_before(of_day: WindowSpec) -> Column:
    largest = F.max(c.CANDIDATE).over(before_here(of_day))
    return F.coalesce(largest, F.lit(MIN_WATERMARK))


def _with_whole_numbers(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows with a column of instants as integers: with a sequence they arrive as decimals."""
    if rows[name].dtype == object:
        return rows.assign(**{name: pd.Series([int(v) for v in rows[name]], dtype=object)})
    return rows.astype({name: "int64"})
