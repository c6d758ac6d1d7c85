"""The columns that result rows of all kinds of windows have, and the order of firings."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import up_to_here
from strandline.engine.position.axis import END_RANK
from strandline.engine.records.arithmetic import advance_column, arrival_probe, date_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

ORDER = ("order_instant", "order_rank", "order_sequence", "order_ts_ms", "order_window_ms")
"""The columns that order firings as Flink emits them; among equal ones Flink defines no order."""
FIRED_AT = "_strandline_fired_at_ms"
POSITION = "_strandline_position"
"""The position of a firing among all: a struct with the names of ORDER without `order_`."""
_LAST = "_strandline_last"


def window_columns(start: str, end: str, spec: PipelineSpec) -> list[Column]:
    """The columns of a window of a key, and its aggregates; `start` and `end` are columns in ms."""
    return [
        F.timestamp_millis(start).cast("date").alias("window_date"),
        F.timestamp_millis(start).alias("window_start"),
        F.timestamp_millis(end).alias("window_end"),
        *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
        *(F.col(name) for name in spec.aggregates),
    ]


def window_key(spec: PipelineSpec) -> list[str]:
    """The columns of published rows that identify a window of a key."""
    return ["window_start", "window_end", *spec.source.key]


def numbered(firings: DataFrame, order: Sequence[str], spec: PipelineSpec) -> DataFrame:
    """Firings with their number in their window, `firing`, from 1.

    Args:
        firings: rows with `window_columns`.
        order: the columns that order the firings of a window.
        spec: the pipeline.
    """
    in_window = up_to_here(Window.partitionBy(*window_key(spec)).orderBy(*order))
    return firings.withColumn("firing", F.row_number().over(in_window).cast("bigint"))


def last_firings(firings: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The last firing of each window, from `numbered` firings."""
    last = F.max("firing").over(Window.partitionBy(*window_key(spec)))
    return firings.withColumn(_LAST, last).where(F.col("firing") == F.col(_LAST)).drop(_LAST)


def fired_with() -> Column:
    """The `watermark_ms` of firings: the WATERMARK looked up at their POSITION; null: none yet.

    A firing by the end of the input of a range has MAX_WATERMARK.
    """
    is_at_end = F.col(POSITION)["rank"] == END_RANK
    watermark = F.when(is_at_end, F.lit(MAX_WATERMARK)).otherwise(F.col(c.WATERMARK))
    return F.nullif(watermark, F.lit(MIN_WATERMARK)).alias("watermark_ms")


def window_rows(
    windows: DataFrame,
    bounds: tuple[str, str],
    fired_at_ms: Column,
    closed_at_ms: Column,
    spec: PipelineSpec,
) -> DataFrame:
    """Windows with their contents and counts as rows of `windows`.

    Args:
        windows: `records`, `late_accepted` and `firings` of each, and the aggregates.
        bounds: the columns of its start and end, in ms.
        fired_at_ms: when it first fired; null: it has not.
        closed_at_ms: when the watermark closed it; null: it has not.
        spec: the pipeline.
    """
    return windows.select(
        *window_columns(*bounds, spec),
        "records",
        "late_accepted",
        "firings",
        state_of(fired_at_ms, closed_at_ms).alias("state"),
        F.timestamp_millis(fired_at_ms).alias("fired_at"),
        F.timestamp_millis(closed_at_ms).alias("closed_at"),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    )


def state_of(fired_at_ms: Column, closed_at_ms: Column) -> Column:
    """The state of a window, by when it fired and closed: `closed`, else `fired`, else `open`."""
    fired_or_open = F.when(fired_at_ms.isNotNull(), "fired").otherwise("open")
    return F.when(closed_at_ms.isNotNull(), "closed").otherwise(fired_or_open)


def causes_of(spec: PipelineSpec) -> list[str]:
    """The columns of a record that decide where its firings are placed."""
    return [c.INSTANT, *advance_column(spec), c.SEQUENCE, c.TS, c.ARRIVAL]


def with_position(
    firings: DataFrame,
    by_watermark: Column,
    at_ms: Column,
    of_window: tuple[Column, Column],
    spec: PipelineSpec,
) -> DataFrame:
    """Firings with POSITION and FIRED_AT; RECORD_ID is null in a firing by the watermark.

    Args:
        firings: each with the columns of the record, or FIRE_FROM and RANK of the watermark
            advance, that causes it.
        by_watermark: whether the watermark causes a firing, instead of a record.
        at_ms: when the watermark causes it, in ms.
        of_window: the columns that order the firings by one watermark, and by one record.
        spec: the pipeline.
    """

    def by(watermark: Column, record: Column) -> Column:
        return F.when(by_watermark, watermark).otherwise(record)

    nothing, at_arrival = F.lit(None), arrival_probe(spec)
    place = F.struct(
        by(F.col(c.FIRE_FROM), at_arrival[c.SEEN_FROM]).alias("instant"),
        by(F.col(c.RANK), at_arrival[c.RANK]).alias("rank"),
        by(nothing, F.col(c.SEQUENCE)).alias("sequence"),
        by(nothing, F.col(c.TS)).alias("ts_ms"),
        by(*of_window).alias("window_ms"),
    )
    columns = {
        POSITION: place,
        FIRED_AT: by(at_ms, F.col(c.ARRIVAL)),
        c.RECORD_ID: by(nothing, F.col(c.RECORD_ID)),
    }
    return firings.withColumns(columns)


def as_probes(firings: DataFrame) -> DataFrame:
    """The firings of `with_position` as probes: rows whose watermark `Emissions.at` looks up."""
    position = {
        c.ARRIVAL_DAY: date_of(F.col(FIRED_AT)),
        c.SEEN_FROM: F.col(POSITION)["instant"],
        c.RANK: F.col(POSITION)["rank"],
    }
    return firings.withColumns(position).drop(c.INSTANT, c.SEQUENCE)


def firing_columns(timing: Column, spec: PipelineSpec) -> list[Column]:
    """The columns of firings, except their numbers; includes `window_columns`.

    The rows have the POSITION of each firing. `timing`: EARLY, ON_TIME or LATE.
    """
    order = F.col(POSITION)
    names = ("rank", "sequence", "ts_ms", "window_ms")
    return [
        *window_columns(c.START, c.END, spec),
        F.col("records"),
        timing.alias("timing"),
        F.timestamp_millis(FIRED_AT).alias("fired_at"),
        F.col(c.RECORD_ID).alias("fired_by"),
        fired_with(),
        order["instant"].cast("decimal(38,0)").alias("order_instant"),
        *(order[name].alias(f"order_{name}") for name in names),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
    ]
