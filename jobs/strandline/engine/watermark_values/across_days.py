"""The watermarks that a day begins with, from the arrivals of earlier days.

A channel has emitted them before the day, or emits them on the first tick of the day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.history.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.engine.timeline import concatenated
from strandline.engine.watermark.channels import ProbeOrder, with_ends
from strandline.engine.watermark_values.emissions import CARRIED
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MAX_WATERMARK


def carried(
    spark: SparkSession, history: History, order: ProbeOrder, clock: Clock, days: Sequence[date]
) -> DataFrame:
    """The watermarks that channels emit on some days by earlier arrivals, and by the input's end.

    The columns are ARRIVAL_DAY, CHANNEL, SEEN_FROM, RANK and CANDIDATE.
    """
    axis, channels = history.axis, order.channels
    offers = _offers_across_days(history, order, clock)
    parts = [part.assign(day=day) for day in days for part in _carried_into(day, offers, axis)]
    if clock.ends_by_channel:
        parts += [_at_end(day, axis, order).assign(seen_from=axis.end, day=day) for day in days]
    rows = concatenated(offers.assign(day=None)[:0], *parts)
    names = [channels[number] for number in rows["number"]]
    columns = {
        c.ARRIVAL_DAY: rows["day"],
        c.CHANNEL: names,
        c.SEEN_FROM: axis.column(rows["seen_from"]),
        c.CANDIDATE: rows["candidate_ms"],
        c.RANK: rows["rank"],
    }
    return small_table(spark, columns)


def _at_end(day: date, axis: Axis, order: ProbeOrder) -> pd.DataFrame:
    """The offers of the end of the input, for channels that have joined by the end of a day."""
    over = axis.end_of(day)
    joined = [number for number, at in enumerate(order.joined) if at < over]
    return pd.DataFrame({"number": joined, "rank": joined, "candidate_ms": MAX_WATERMARK})


def _carried_into(day: date, offers: pd.DataFrame, axis: Axis) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The offers of earlier days' arrivals up to the start of a day, and during the day."""
    start, end = (axis.first_of(midnight_of(day) + ahead) for ahead in (0, DAY_MS))
    seen, is_settled = offers["seen_from"], offers["rank"] == CARRIED
    earlier = (seen < start) | ((seen == start) & is_settled)
    largest = offers[earlier].groupby("number", as_index=False)["candidate_ms"].max()
    return largest.assign(seen_from=start, rank=CARRIED), offers[~earlier & (seen < end)]


def _offers_across_days(history: History, order: ProbeOrder, clock: Clock) -> pd.DataFrame:
    """The watermarks that the arrivals of each day offer to later days.

    The columns are `number` (of the channel), `seen_from`, `rank` and `candidate_ms`. A settled
    watermark counts at the latest from the midnight that ends the day; a pending one from the first
    tick at or after that midnight, if the tick comes before the horizon: see `Timeline`.
    """
    axis = history.axis
    days = with_ends(history.timeline, history.spec, axis).channel_days
    numbers = {channel: number for number, channel in enumerate(order.channels)}
    days = days[days["channel"].isin(numbers)]
    ends = {day: midnight_of(day) + DAY_MS for day in days["arrival_date"].unique()}
    seen = _by_day(days, {day: axis.first_of(at) for day, at in ends.items()})
    offers = days[[]].assign(number=days["channel"].map(numbers))
    parts = [offers.assign(seen_from=seen, rank=CARRIED, candidate_ms=days["settled_ms"])]
    if axis.ticks is not None:
        tick = _by_day(days, {day: axis.ticks.after(at - 1) for day, at in ends.items()})
        pending = offers.assign(seen_from=tick, rank=offers["number"])
        pending = pending.assign(candidate_ms=days["pending_ms"])
        parts.append(pending[(tick < axis.known_below(clock.horizon_ms)).astype(bool)])
    return pd.concat(parts, ignore_index=True).dropna(subset=["candidate_ms"])


def _by_day(days: pd.DataFrame, instants: Mapping[date, int]) -> pd.Series[Any]:
    """The instant of the arrival day of each row, as Python integers: some exceed a long."""
    of_rows = [instants[day] for day in days["arrival_date"]]
    return pd.Series(of_rows, days.index, dtype=object)
