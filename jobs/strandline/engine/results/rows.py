"""What rows of all kinds of windows have in common: their columns, and the order of firings."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.spec.pipeline import PipelineSpec

ORDER = ("order_instant", "order_rank", "order_sequence", "order_ts_ms", "order_window_ms")
"""Flink's order of firings is that of these columns; equal ones have no defined order."""


def window_columns(start: str, end: str, spec: PipelineSpec) -> list[Column]:
    """What tells a window of a key, and its aggregates; `start` and `end` are columns in ms."""
    return [
        F.timestamp_millis(start).cast("date").alias("window_date"),
        F.timestamp_millis(start).alias("window_start"),
        F.timestamp_millis(end).alias("window_end"),
        *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
        *(F.col(name) for name in spec.aggregates),
    ]
