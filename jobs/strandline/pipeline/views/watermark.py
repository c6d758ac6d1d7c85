"""The combined watermark of a pipeline: what holds it back, and which windows it has closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from strandline.engine.idleness.source import Source
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid, gap_of
from strandline.lake.landing.changed_results import ranges_over
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import (
    DAY_MS,
    LEAST_INSTANT_MS,
    day_of,
    midnight_before,
    midnight_of,
    text_of,
)
from strandline.model.lateness import MIN_WATERMARK, last_late_end
from strandline.pipeline.views.channels import (
    ChannelWatermarks,
    channel_watermarks,
    emitted_before,
    retired_before,
)
from strandline.pipeline.views.findings import start_to_come
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.report.held_back_by import HeldBack, held_back_by
from strandline.spec import PipelineSpec
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import PAIRS
from strandline.spec.window import Session

_NONE = HeldBack(None, None, None, None)
"""No watermark, and no channel that holds one back."""
_SHORTEST_GAP_MS = 1


def _evaluated_until_ms(state: PipelineState) -> int | None:
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


def evaluated_watermark(read: ReadPipeline) -> HeldBack | None:
    """The watermark by the arrivals that published runs have evaluated; None: see `watermark_by`.

    Days that only rejected or reverted runs have observed do not count: by their watermark no
    published window is closed.
    """
    spec, state = read.spec, read.state
    until_ms = _evaluated_until_ms(state)
    if until_ms is None:
        return None
    if start_to_come(spec, state) is not None:
        return _NONE
    found = channel_watermarks(read, day_of(until_ms - DAY_MS))
    watermark = _at(until_ms, spec, found, state)
    if watermark is None and state.days_to_recompute and _decide_alone(spec):
        return _NONE  # nothing has arrived before the first of them
    return watermark


def watermark_by(
    spec: PipelineSpec, watermarks: ChannelWatermarks, state: PipelineState
) -> HeldBack | None:
    """The watermark after the last observed day, as ticks have emitted it by then.

    It says by which arrivals, unless these are all before the last published horizon: others after
    a revert, a rejected run, or a run by hand up to an instant within a day. If it follows the
    clock: the watermark at the last horizon. None: nothing has arrived, it is the
    watermark of another pipeline, or the records of two sources do not decide it (`held_back_by`).

    Args:
        spec: the pipeline.
        watermarks: the watermarks of its channels after `last_day_of`.
        state: the pipeline's state, by its ledger.
    """
    last_horizon_ms, by_clock = _last_horizon(state), spec.watermark.goes_by_the_clock
    days = [midnight_of(day) + DAY_MS for day in watermarks.channels["arrival_date"]]
    days += [] if state.frontier_ms is None else [state.frontier_ms]
    until_ms = max(days, default=None)
    if by_clock and last_horizon_ms is not None:
        until_ms = last_horizon_ms
    if until_ms is None:  # no record has been observed
        return held_back_by(watermarks.channels, spec, watermarks.source)
    found = _at(until_ms, spec, watermarks, state)
    is_of_last_cutoff = by_clock or last_horizon_ms in {None, until_ms}
    if found is None and not is_of_last_cutoff and _decide_alone(spec):
        found = _NONE  # records of a day that is not over may have fired windows
    if found is None:
        return None
    if start_to_come(spec, state) is not None:
        return _NONE
    return replace(found, arrived_before=None if is_of_last_cutoff else text_of(until_ms))


def _decide_alone(spec: PipelineSpec) -> bool:
    """Whether the records of one source decide the watermark."""
    return spec.reads_results_of is None and not spec.has_two_sources


def last_day_of(spec: PipelineSpec, state: PipelineState) -> date | None:
    """The last arrival day that `watermark_by` goes by; None: the last observed one.

    If it follows the clock: the last whole day before the last published horizon. A rejected run
    has observed later days, and the state of channels after these is none of an earlier instant.
    """
    last_horizon_ms = _last_horizon(state)
    if last_horizon_ms is None or not spec.watermark.goes_by_the_clock:
        return None
    return day_of(midnight_before(last_horizon_ms) - DAY_MS)


def _last_horizon(state: PipelineState) -> int | None:
    """The data cut-off, in ms, of the last published run that has one; None: there is none."""
    newest_first = (run.horizon_ms for run in reversed(state.published))
    return next((one for one in newest_first if one is not None), None)


def _at(
    until_ms: int, spec: PipelineSpec, found: ChannelWatermarks, state: PipelineState
) -> HeldBack | None:
    """The watermark at an instant: ticks emit, and channels go idle, on days without records."""
    channels, carried, start_ms = found.channels, found.source, state.clock_start_ms
    if spec.watermark.emission_interval_ms == 0:
        return _NONE
    if start_ms is None:
        return held_back_by(channels, spec, carried, spec.retired_by(until_ms))
    if spec.watermark.goes_by_the_clock:
        return _by_clock(until_ms, spec, found, Axis.of(spec, start_ms))
    if carried is not None and spec.watermark.idleness_in_effect:
        source = Source(spec, Axis.of(spec, start_ms))
        _, carried = source.advance(carried, Source.silence, until_ms)
    channels = emitted_before(until_ms, channels, spec, start_ms)
    return held_back_by(channels, spec, carried, retired_before(until_ms, spec, start_ms))


def _by_clock(until_ms: int, spec: PipelineSpec, found: ChannelWatermarks, axis: Axis) -> HeldBack:
    """The watermark of the last tick before an instant on which a channel offered.

    A source of splits offers without any. Of an instant within a day, channels that have joined on
    this very day are not known: if no other has, there may be a watermark, or none.
    """
    is_midnight = until_ms % DAY_MS == 0
    if spec.watermark.idleness_in_effect and (found.source is not None or is_midnight):
        source = Source(spec, axis)
        carried = found.source or source.at_the_start()
        _, carried = source.advance(carried, Source.silence, until_ms)
        return held_back_by(found.channels, spec, carried) or _NONE
    waits = spec.source.declared_channels is None and spec.watermark.combine != "splits"
    if waits and found.channels.empty:
        return replace(_NONE, at_least=not is_midnight)
    tick_ms, lag_ms = axis.last_tick_before(until_ms), spec.watermark.lag_ms or 0
    return replace(_NONE, watermark_ms=tick_ms - lag_ms) if tick_ms > axis.start_ms else _NONE


def closed_up_to(
    spec: PipelineSpec,
    state: PipelineState,
    watermark: HeldBack | None,
    changed: Iterable[date] = (),
) -> int | None:
    """The instant, in ms, before which no window can change; None: all published slots are closed.

    It is the start of the first published slot that is not closed, or of an earlier slot without
    records, in which a record would still be accepted: not all of these are published. Days to
    recompute may still change closed slots.

    Args:
        spec: the pipeline.
        state: the pipeline's state, by its ledger.
        watermark: the watermark by the evaluated arrivals (`evaluated_watermark`); None: it is not
            known, so that only published slots count.
        changed: over results, the dates of results that have changed since they were used
            (`dates_to_use_again`): the next scheduled run rebuilds their windows.
    """
    closed_ms = _closed_by_slots(spec, state, watermark)
    if not isinstance(spec, ResultsSpec) or not (again := ranges_over(changed, spec)):
        return closed_ms
    again_ms = state.not_closed_by_hand(again[0].start_ms)
    return again_ms if closed_ms is None else min(closed_ms, again_ms)


def _closed_by_slots(
    spec: PipelineSpec, state: PipelineState, watermark: HeldBack | None
) -> int | None:
    """The same by the slots that are published, or would still accept a record."""
    published_ms = _first_open(spec, state)
    is_decided = published_ms is None and not state.days_to_recompute
    if is_decided or watermark is None or Grid.of(spec).all_time:
        return published_ms
    emitted_ms = watermark.watermark_ms
    first_ms = first_accepting(spec, MIN_WATERMARK if emitted_ms is None else emitted_ms)
    accepting_ms = state.not_closed_by_hand(first_ms)
    return accepting_ms if published_ms is None else min(published_ms, accepting_ms)


def _first_open(spec: PipelineSpec, state: PipelineState) -> int | None:
    """The first published slot that is not closed, neither by the watermark nor by `--close`.

    No watermark closes windows of all time, nor those of a saturated lateness.
    """
    first_ms = state.first_open_ms
    if first_ms is None:
        return None
    open_ms = state.not_closed_by_hand(first_ms)
    return None if open_ms > first_ms and Grid.of(spec).all_time else open_ms


def first_accepting(spec: PipelineSpec, watermark_ms: int) -> int:
    """The start of the first slot of which a window would still accept a record.

    A session can begin in the middle of a slot. A record of an interval join is late by itself.
    """
    grid = Grid.of(spec)
    if not isinstance(spec.window, Session):
        return grid.first_open(watermark_ms)
    gap_ms = _SHORTEST_GAP_MS if spec.result == PAIRS else gap_of(spec) or _SHORTEST_GAP_MS
    late_ms = last_late_end(watermark_ms, allowed_lateness_ms=spec.allowed_lateness)
    return max(grid.newest_starts(late_ms + 1 - gap_ms), LEAST_INSTANT_MS)
