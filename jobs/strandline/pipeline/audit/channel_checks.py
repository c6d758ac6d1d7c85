"""The `quality` rules about channels: silent channels, and records that raised the watermark."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.history import History
from strandline.engine.history.inputs import OfInput
from strandline.engine.timeline import Timeline
from strandline.model.intervals import DAY_MS, HOUR_MS, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.pipeline.observe.observation import known_rows
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.views.channels import with_emissions
from strandline.quality.findings.ahead import (
    CHANNEL_AHEAD_MS,
    Raised,
    check_of_one_channel,
    check_of_watermark,
    raised_in_words,
)
from strandline.quality.findings.check import BY_QUALITY, Check
from strandline.quality.findings.epoch import FROM_MS, UNTIL_MS, LastDay, check_of_1970
from strandline.quality.findings.silence import (
    FOUR_WEEKS_MS,
    ChannelArrivals,
    Pause,
    check_of_silence,
    longest_pauses,
)
from strandline.quality.report.held_back_by import held_back_by, name_of
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import QUARANTINE

_OFFERS = ["settled_ms", "pending_ms"]


def check_of_channels(spec: PipelineSpec, planned: PlannedRun) -> Check | None:
    """The check for silent channels; None: not configured, no channels, or the input has ended."""
    asked = spec.quality.silent_after
    if asked is None or not spec.has_channels or planned.plan.closes_now:
        return None
    channels, start_ms = _arrivals(spec, planned), planned.observation.history.axis.start_ms
    return check_of_silence(channels, asked, planned.horizon_ms, start_ms)


def check_of_ahead(ctx: Context, planned: PlannedRun, staged: Staged) -> Check | None:
    """The check whether the watermark is ahead of the horizon, and by which records or pipeline.

    If the combined watermark is not, the check is whether a single channel's is, by more than
    `CHANNEL_AHEAD_MS`. None: not configured, or the input has ended.
    """
    asked, horizon_ms = ctx.spec.quality.watermark_ahead, planned.horizon_ms
    if planned.plan.closes_now or BY_QUALITY[asked] is None:
        return None
    own, behind = planned.observation.history, ""
    history = _of_the_watermark(own)
    watermark_ms = _watermark_at(history, horizon_ms)
    if watermark_ms is not None and watermark_ms > horizon_ms:
        if history is not own:
            first = history.spec.pipeline
            behind = f"it is the watermark of {first}: see strandline status {first}"
        elif raised := _raised_by(ctx, planned, watermark_ms, horizon_ms):
            behind = raised_in_words(raised, _late_behind(staged, horizon_ms))
    elif history is own:
        far_ms = horizon_ms + CHANNEL_AHEAD_MS
        if raised := _raised_by(ctx, planned, far_ms, far_ms):
            return check_of_one_channel(asked, raised[0], horizon_ms)
    waits = watermark_ms is not None and _waits_for_a_tick(history, watermark_ms, horizon_ms)
    return check_of_watermark(asked, watermark_ms, horizon_ms, behind, waits=waits)


def check_of_epoch(spec: PipelineSpec, planned: PlannedRun) -> Check | None:
    """The check for channels whose events are of early 1970; None: not configured.

    Channels without an arrival day in the four weeks before the newest arrival day of any channel
    are not checked, unless the watermark itself is of 1970.
    """
    asked = spec.quality.events_of_1970
    if BY_QUALITY[asked] is None:
        return None
    history = planned.observation.history
    days = history.timeline.channel_days
    newest_ms = midnight_of(max(days["arrival_date"], default=date.min))
    found = _last_days_of_1970(days, spec, planned.horizon_ms)
    recent = [one for one in found if midnight_of(one.day) >= newest_ms - FOUR_WEEKS_MS]
    if len(recent) < len(found):
        watermark_ms = history.crossings.watermark_reached(planned.horizon_ms)
        recent = found if FROM_MS <= watermark_ms < UNTIL_MS else recent
    return check_of_1970(asked, recent)


def _last_days_of_1970(days: pd.DataFrame, spec: PipelineSpec, horizon_ms: int) -> list[LastDay]:
    """The last arrival day of each channel that has an event before the end of early 1970."""
    early = {*days["channel"][days["largest_ts_ms"] < UNTIL_MS]} - spec.retired_by(horizon_ms)
    of_channels = days[days["channel"].isin(early)].sort_values("arrival_date")
    last = of_channels.drop_duplicates("channel", keep="last")
    facts = zip(last["channel"], last["arrival_date"], last["largest_ts_ms"], strict=True)
    return [LastDay(name_of(str(name), spec), day, int(ts_ms)) for name, day, ts_ms in facts]


def _of_the_watermark(history: History) -> History:
    """The history whose records determine the watermark; over results, the first pipeline's."""
    upstream = history.upstream
    return history if upstream is None else _of_the_watermark(upstream.history)


def _watermark_at(history: History, horizon_ms: int) -> int | None:
    """The combined watermark at a horizon, including the next tick's; None: none yet."""
    spec = history.spec
    if not spec.waits_for_all:
        reached_ms = history.crossings.watermark_reached(horizon_ms)
        return None if reached_ms == MIN_WATERMARK else reached_ms
    channels = with_emissions(history.timeline.channel_days, spec, history.axis.start_ms)
    found = held_back_by(channels, spec, retired=spec.retired_by(horizon_ms))
    return None if found is None else found.watermark_ms


def _waits_for_a_tick(history: History, watermark_ms: int, horizon_ms: int) -> bool:
    """Whether the watermark has not reached, at a horizon, each window that it reaches."""
    (threshold_ms,) = history.grid.largest_thresholds(pd.Series([watermark_ms]))
    if pd.isna(threshold_ms):
        return False
    return history.crossings.watermark_reached(horizon_ms) < int(threshold_ms)


def _late_behind(staged: Staged, horizon_ms: int) -> int:
    """The number of staged late records that a watermark ahead of the horizon has refused."""
    ahead = ds.field("watermark_ms") > horizon_ms
    return replace(staged.parts[QUARANTINE.name], wanted=ahead).count()


def _raised_by(
    ctx: Context, planned: PlannedRun, watermark_ms: int, ahead_of_ms: int
) -> list[Raised]:
    """The record that first offered the watermark, or the next higher one that was offered.

    One record for each of two sources; for a source that has offered less, its largest offer ahead
    of an instant. A cell does not say which of its records it was, so they are read.
    """
    timeline, found = planned.observation.history.timeline, []
    for side, spec in ctx.spec.sides.items():
        own = OfInput(timeline, side) if side else timeline
        offer = _first_offer(own, spec, watermark_ms, ahead_of_ms)
        record = None if offer is None else _first_record(ctx, planned, side, offer)
        if record is not None:
            found.append(record)
    return found


def _first_offer(
    timeline: Timeline, spec: PipelineSpec, watermark_ms: int, ahead_of_ms: int
) -> tuple[date, str, int] | None:
    """The day, the channel and the least value of a source's offer; retired channels do not count.

    None: it has offered nothing ahead of an instant.
    """
    ahead = _offers_ahead(timeline, spec, ahead_of_ms)
    if ahead.empty:
        return None
    enough = ahead[ahead["offered"] >= watermark_ms]
    offered_ms = int(ahead["offered"].max() if enough.empty else enough["offered"].min())
    of_day = ahead[ahead["offered"] == offered_ms].sort_values("arrival_date").iloc[0]
    return of_day["arrival_date"], str(of_day["channel"]), min(watermark_ms, offered_ms)


def _first_record(
    ctx: Context, planned: PlannedRun, side: str, offer: tuple[date, str, int]
) -> Raised | None:
    """The first record of a day and a channel that offers a watermark; None: it is not there.

    The day is read once more for the records that a `max_ahead` would have quarantined with it.
    """
    day, channel, least_ms = offer
    known = known_rows(ctx.landing.inputs[side], [day], planned.horizon_ms)
    records = known.where(F.col(c.REASON).isNull())
    offers = (F.col(c.CHANNEL) == channel) & (F.col(c.CANDIDATE) >= least_ms)
    in_order = records.where(offers).orderBy(c.INSTANT, F.desc(c.CANDIDATE))
    first = in_order.select(c.TS, c.ARRIVAL).first()
    if first is None:
        return None
    raised = Raised(int(first[0]), int(first[1]), channel, side)
    ahead_ms = F.col(c.TS) - F.col(c.ARRIVAL)
    refused = [F.count(F.when(ahead_ms > bound_ms, 1)) for bound_ms in raised.bounds_ms]
    counts = records.agg(F.count(F.lit(1)), *refused).first()
    return raised if counts is None else replace(raised, records=counts[0], refused=counts[1:])


def _offers_ahead(timeline: Timeline, spec: PipelineSpec, horizon_ms: int) -> pd.DataFrame:
    """The days of channels whose watermark (`offered`) is ahead of the horizon; none without ticks.

    As in `_watermark_at`, what waits for the next tick counts.
    """
    days = timeline.channel_days
    if spec.watermark.emission_interval_ms == 0:
        days = days.iloc[:0]
    days = days[~days["channel"].isin(spec.retired_by(horizon_ms))]
    offers = days.assign(offered=days[_OFFERS].max(axis=1)).dropna(subset="offered")
    return offers[offers["offered"] > horizon_ms]


def _arrivals(spec: PipelineSpec, planned: PlannedRun) -> list[ChannelArrivals]:
    """The last arrival of each channel, including declared channels without any record."""
    days, horizon_ms = planned.observation.history.timeline.channel_days, planned.horizon_ms
    midnights = days["arrival_date"].map(midnight_of).astype("int64")
    # of a timeline from before arrivals were kept, at some time of the day
    last = days["last_arrival_ms"].fillna(midnights + DAY_MS - 1).groupby(days["channel"]).max()
    lasts = {str(name): int(at_ms) for name, at_ms in last.items()}
    pauses = _pauses(days[midnights >= horizon_ms - FOUR_WEEKS_MS])
    retired = spec.retired_by(horizon_ms)
    return [
        ChannelArrivals(name, lasts.get(name), pauses.get(name))
        for name in dict.fromkeys([*spec.waited_for(horizon_ms), *lasts])
        if name not in retired
    ]


def _pauses(days: pd.DataFrame) -> dict[str, Pause]:
    """The longest pause of each channel, by its hours with arrivals or its days' first ones.

    First arrivals alone show no pause within a day.
    """
    midnights = days["arrival_date"].map(midnight_of).astype("int64").to_numpy()
    first = (days["first_arrival_ms"].fillna(0).astype("int64").to_numpy() - midnights) // HOUR_MS
    hours = days["arrival_hours"].fillna(0).astype("int64").to_numpy()
    hours = np.where(hours > 0, hours, np.int64(1) << np.clip(first, 0, 23))
    codes, names = pd.factorize(days["channel"])
    pauses = longest_pauses(*(part.astype(np.int64) for part in (codes, midnights, hours)))
    without_hours = {*days["channel"][days["arrival_hours"].isna()]}
    return {
        str(names[code]): pause
        for code, pause in pauses.items()
        if not (pause.within_a_day and names[code] in without_hours)
    }
