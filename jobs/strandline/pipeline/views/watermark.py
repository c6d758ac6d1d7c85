"""The combined watermark of a pipeline, and the channel that holds it back."""

from __future__ import annotations

from dataclasses import replace

from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, day_of, midnight_before, midnight_of, text_of
from strandline.pipeline.views.channels import ChannelWatermarks, channel_watermarks
from strandline.pipeline.views.findings import start_to_come
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec


def evaluated_until_ms(state: PipelineState) -> int | None:
    """The midnight before which published runs have evaluated all arrivals as they are observed.

    The timeline has a day as it landed again, and so a watermark that no run has used yet. Without
    a frontier: the last midnight before a published horizon; None: nothing is published.
    """
    reached_ms = state.frontier_ms
    if reached_ms is None:
        largest_ms = state.largest_horizon()
        reached_ms = None if largest_ms is None else midnight_before(largest_ms)
    to_recompute = [midnight_of(day) for day in state.days_to_recompute[:1]]
    return None if reached_ms is None else min([reached_ms, *to_recompute])


def evaluated_watermark(spec: PipelineSpec, store: Store, state: PipelineState) -> HeldBack | None:
    """The watermark by the arrivals that published runs have evaluated; None: see `watermark_of`.

    A rejected run has observed days whose watermark has closed nothing, and so has a reverted one.
    """
    until_ms, lag_ms = evaluated_until_ms(state), spec.watermark.lag_ms
    if until_ms is None:
        return None
    if start_to_come(spec, state) is not None:
        return HeldBack(None, None, None, None)
    if lag_ms is not None:
        return HeldBack(until_ms - 1 - lag_ms, None, None, None)
    # a candidate that the last tick of a day has not shown yet may wait beyond the frontier
    return channel_watermarks(spec, store, day_of(until_ms - DAY_MS), settled=True).held_back


def watermark_of(spec: PipelineSpec, store: Store, state: PipelineState) -> HeldBack | None:
    """The watermark after the last observed day.

    It says by which arrivals, unless these are all before the last published horizon: others after
    a revert, a rejected run, or a run by hand up to an instant within a day. If it follows the
    clock: the watermark at the last horizon. None: nothing has arrived, it is the
    watermark of another pipeline, or the records of two sources do not decide it (`held_back_by`).
    """
    return watermark_by(spec, channel_watermarks(spec, store), state)


def watermark_by(
    spec: PipelineSpec, watermarks: ChannelWatermarks, state: PipelineState
) -> HeldBack | None:
    """The watermark as of `watermark_of`, by the channels' watermarks after the last day."""
    lag_ms = spec.watermark.lag_ms
    horizons = [run.horizon_ms for run in state.published if run.horizon_ms is not None]
    found = watermarks.held_back
    if lag_ms is not None and horizons:
        found = HeldBack(horizons[-1] - 1 - lag_ms, None, None, None)
    if found is None:
        return None
    if start_to_come(spec, state) is not None:
        return HeldBack(None, None, None, None)
    if lag_ms is not None:
        return found
    days = [midnight_of(day) + DAY_MS for day in watermarks.channels["arrival_date"]]
    days += [] if state.frontier_ms is None else [state.frontier_ms]
    if not days:  # no record has been observed
        return found
    until_ms = max(days)
    is_of_last_cutoff = not horizons or until_ms == horizons[-1]
    return replace(found, arrived_before=None if is_of_last_cutoff else text_of(until_ms))
