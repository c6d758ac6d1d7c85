"""The values of the watermark on some days: of records, of steps, or forwarded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.history.history import History
from strandline.engine.idleness.steps import Steps
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark_values.by_records import record_emissions
from strandline.engine.watermark_values.emissions import UNTIL, Emissions
from strandline.model.intervals import DAY_MS, midnight_of


def emissions(
    records: DataFrame, history: History, clock: Clock, days: Sequence[date]
) -> Emissions:
    """The emissions of some arrival days, by the class of the history's crossings.

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
        return _step_emissions(records.sparkSession, steps, history, clock, days)
    if isinstance(crossings, RecordCrossings):
        return record_emissions(records, history, crossings.order, clock, days)
    msg = f"{type(crossings).__name__} has no values of its own"
    raise TypeError(msg)


def _step_emissions(
    spark: SparkSession,
    steps: Steps,
    history: History,
    clock: Clock,
    days: Sequence[date],
) -> Emissions:
    """The emissions of some arrival days, from the steps known at the horizon."""
    axis = history.axis
    seen = steps.table["seen_from"].to_numpy()
    until = steps.table["until"].to_numpy()
    parts = []
    for day in days:
        start = axis.first_of(midnight_of(day))
        # a watermark emitted at a day's last instant counts from the next midnight on
        chosen = (until >= start) & (seen <= start + DAY_MS * axis.scale)
        earlier = np.flatnonzero(until < start)
        chosen[earlier[-1:]] = True
        parts.append(steps.table[chosen].assign(day=day))
        if clock.ends_by_channel:
            parts.append(
                pd.DataFrame(steps.at_end, columns=["rank", "watermark_ms"]).assign(
                    day=day, seen_from=axis.end, until=axis.end
                )
            )
    rows = pd.concat(parts, ignore_index=True) if parts else steps.table.assign(day=None)[:0]
    columns = {
        c.ARRIVAL_DAY: rows["day"],
        c.SEEN_FROM: axis.column(rows["seen_from"]),
        UNTIL: axis.column(rows["until"]),
        c.RANK: rows["rank"],
        c.CANDIDATE: rows["watermark_ms"],
    }
    return Emissions(
        small_table(spark, columns),
        history,
        clock,
        runs=steps.table if history.spec.watermark.goes_by_the_clock else None,
        at_end=steps.at_end,
        is_computed=True,
    )
