"""The watermark's values on some days, by the kind of the pipeline's crossings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame

from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark_values.by_records import record_emissions
from strandline.engine.watermark_values.by_steps import step_emissions
from strandline.engine.watermark_values.emissions import Emissions


def emissions(
    records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> Emissions:
    """The emissions of some arrival days.

    Args:
        records: the well-formed records, at least of these days and of the days on which a
            discovered channel joined.
        history: everything observed below the horizon.
        clock: the horizon and the inputs that have ended.
        days: the days of the positions to look up.

    Raises:
        TypeError: the watermark follows from two inputs.
    """
    while history.upstream is not None:
        records, history = history.upstream.records, history.upstream.history
    crossings = history.crossings
    if isinstance(crossings, StepCrossings):
        steps = crossings.on_days(days, clock.horizon_ms)
        return step_emissions(records.sparkSession, steps, history, clock, days)
    if isinstance(crossings, RecordCrossings):
        return record_emissions(records, history, crossings.order, clock, days)
    msg = f"{type(crossings).__name__} has no values of its own"
    raise TypeError(msg)
