"""The records of a run: well-formed, and arrived before its horizon."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.history import History
from strandline.engine.records.days import on_days
from strandline.engine.records.duplicates import with_duplicates
from strandline.model.intervals import DAY_MS, midnight_of


def known_records(
    records: DataFrame, history: History, horizon_ms: int, days: Collection[date]
) -> DataFrame:
    """The well-formed records of some arrival days that arrived before a horizon.

    A filter that would exclude nothing, by the observations, is left out: testing every record of
    the history for every way of being malformed costs half as much as a plain aggregation.

    Args:
        records: the landing as `read_records` reads it, at most the days of `DaysToRead`.
        history: everything observed below the horizon.
        horizon_ms: the horizon.
        days: the arrival days to read.
    """
    chosen = of_days(records, history, days)
    bad = history.days.with_malformed
    if bad and (chosen is records or bad & set(days)):
        chosen = chosen.where(F.col(c.REASON).isNull())
    if any(midnight_of(day) + DAY_MS > horizon_ms for day in days):
        chosen = chosen.where(F.col(c.ARRIVAL) < horizon_ms)
    return chosen


def of_days(records: DataFrame, history: History, days: Collection[date]) -> DataFrame:
    """The rows of some arrival days.

    Duplicates are marked only where observation has found some.
    """
    among = history.days.rebuilt
    if set(days) & history.days.with_duplicates:
        return with_duplicates(records, history.spec, days, among)
    return on_days(records, days, among)
