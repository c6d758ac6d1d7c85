"""Observation of channels that can go idle: the ticks that show their records, and the offers."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected
from strandline.engine.idleness.activity import SILENCE, Activity
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.records.arithmetic import tick_after
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

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
    offered = F.max(c.CANDIDATE) if not by_records else F.lit(None).cast("bigint")
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
        .select(
            F.col(c.ARRIVAL_DAY).alias("arrival_date"),
            F.col(c.CHANNEL).alias("channel"),
            F.col(_TICK).alias("tick_ms"),
            F.col(_BEFORE).alias("before_ms"),
            F.col(c.CANDIDATE).alias("candidate_ms"),
        )
    )
    discovers = spec.source.declared_channels is None
    return Activity(
        on_ticks=collected(on_ticks),
        at_once=_at_once(records.withColumn(_TICK, tick)) if by_records else SILENCE.at_once,
        first=_first(records) if discovers else SILENCE.first,
    )


def _at_once(records: DataFrame) -> pd.DataFrame:
    """The rising offers of punctuated records, and the first offer before each tick."""
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
        .select(
            F.col(c.ARRIVAL_DAY).alias("arrival_date"),
            F.col(c.CHANNEL).alias("channel"),
            (F.col(c.INSTANT) + 1).alias("seen_from"),
            F.col(c.CANDIDATE).alias("candidate_ms"),
        )
    )
    return _with_whole_numbers(collected(offers), "seen_from")


def _first(records: DataFrame) -> pd.DataFrame:
    """The first record of each channel on each day."""
    first = (
        records.groupBy(c.ARRIVAL_DAY, c.CHANNEL)
        .agg(F.min(F.struct(c.INSTANT, c.SEQUENCE, c.TS)).alias("first"))
        .select(
            F.col(c.ARRIVAL_DAY).alias("arrival_date"),
            F.col(c.CHANNEL).alias("channel"),
            F.col(f"first.{c.INSTANT}").alias("instant"),
            F.col(f"first.{c.SEQUENCE}").alias("sequence"),
            F.col(f"first.{c.TS}").alias("ts_ms"),
        )
    )
    return _with_whole_numbers(collected(first), "instant")


def _largest_before(of_day: object) -> Column:
    before = of_day.rowsBetween(Window.unboundedPreceding, -1)  # type: ignore[attr-defined]
    return F.coalesce(F.max(c.CANDIDATE).over(before), F.lit(MIN_WATERMARK))


def _with_whole_numbers(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows with a column of instants as integers: with a sequence they arrive as decimals."""
    if rows[name].dtype == object:
        return rows.assign(**{name: pd.Series([int(v) for v in rows[name]], dtype=object)})
    return rows.astype({name: "int64"})
