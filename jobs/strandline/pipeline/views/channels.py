"""The watermark of each channel after an arrival day, and the channel that holds it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from strandline.engine.idleness.state import SourceState
from strandline.engine.position.axis import Axis
from strandline.engine.watermark.channels import ends_of
from strandline.lake.store.days import Days, facts_of_files
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import channel_days, read_source
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Ticks
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.shown_days import shown_days
from strandline.quality.report.held_back_by import held_back_by
from strandline.spec import PipelineSpec
from strandline.spec.pipeline import channel_of


@dataclass(frozen=True)
class ChannelWatermarks:
    """The watermarks of the channels after a day.

    Attributes:
        channels: the largest watermark that each channel offered on each arrival day, of all days
            that can hold the largest one of a channel.
        source: the state of the source; None: its channels cannot go idle.
    """

    channels: pd.DataFrame
    source: SourceState | None


def channel_watermarks(read: ReadPipeline, until: date | None) -> ChannelWatermarks:
    """The watermarks of the channels after a day; None: after the last observed one.

    The trailing days suffice, unless an older day may have a channel's largest watermark: the
    channel has long been silent, or its clock was once ahead. Then all days are read.
    """
    recent = _watermarks_of(read.store, shown_days(read.spec, read.store, None, until))
    if _recent_days_suffice(read, recent):
        return recent
    return _watermarks_of(read.store, Days(None, until))


def _watermarks_of(store: Store, days: Days) -> ChannelWatermarks:
    timeline = TimelineTable.open(store, days.rows_of("timeline"))
    return ChannelWatermarks(channel_days(timeline), read_source(timeline))


def with_emissions(channels: pd.DataFrame, spec: PipelineSpec, start_ms: int) -> pd.DataFrame:
    """The channels' watermarks by day, with the tick that emits a pending one (`emitted_ms`).

    A watermark that is pending at the end of its arrival day waits for the first tick of its own
    source after it. Without such a tick it is left out.

    Args:
        channels: the timeline's rows of kind `channel`.
        spec: the pipeline.
        start_ms: when the job's clock started.
    """
    emitted = pd.Series(index=channels.index, dtype="Int64")
    for name, side in spec.sides.items():
        axis, of_side = Axis.of(side, start_ms), channel_of(name, "")
        days = channels["arrival_date"][channels["channel"].astype(str).str.startswith(of_side)]
        ticks = {day: _first_tick(midnight_of(day) + DAY_MS, axis) for day in days.unique()}
        emitted = emitted.fillna(days.map(ticks).astype("Int64"))
    pending = channels["pending_ms"].astype("Int64").where(emitted.notna())
    return channels.assign(pending_ms=pending, emitted_ms=emitted)


def _first_tick(instant_ms: int, axis: Axis) -> int | None:
    """The first tick from an instant on; None: there is none."""
    if axis.interval_ms is None:  # each record emits at once
        return instant_ms
    if axis.interval_ms == 0:
        return None
    tick_ms = Ticks(axis.start_ms, axis.interval_ms).after(instant_ms - 1)
    return tick_ms if tick_ms < END_OF_INSTANTS_MS else None


def emitted_before(
    instant_ms: int, channels: pd.DataFrame, spec: PipelineSpec, start_ms: int
) -> pd.DataFrame:
    """The watermarks of `with_emissions`, without those that are emitted at an instant or later."""
    found = with_emissions(channels, spec, start_ms)
    is_emitted = (found["emitted_ms"] < instant_ms).fillna(value=False)
    return found.assign(pending_ms=found["pending_ms"].where(is_emitted))


def retired_before(instant_ms: int, spec: PipelineSpec, start_ms: int) -> set[str]:
    """The retired channels whose end is emitted before an instant.

    A channel ends in the last millisecond before it retires, at once or, on ticks, with the next.
    """
    axis = Axis.of(spec, start_ms)
    ends = ends_of(spec, axis)
    return {end.channel for end in ends if axis.event_ms(end.seen_from, 0) < instant_ms}


def _recent_days_suffice(read: ReadPipeline, found: ChannelWatermarks) -> bool:
    """Whether no day before the days read can change the channels' watermarks."""
    spec = read.spec
    if found.channels.empty:
        return False  # all channels may have been silent for long
    if spec.watermark.goes_by_the_clock or spec.reads_results_of is not None:
        return True  # the clock, or another pipeline, decides the watermark: channels do not
    if spec.watermark.idleness_in_effect:
        return True  # the last day keeps the state of every channel
    if spec.source.declared_channels is None:
        return False  # a channel that was discovered on an older day may be silent since
    first = min(found.channels["arrival_date"])
    retired, settled = spec.retired_by(midnight_of(first)), found.channels.assign(pending_ms=None)
    emitted = held_back_by(settled, spec, found.source, retired)
    if emitted is None or emitted.watermark_ms is None:
        return False
    older_ms = largest_offer_before(facts_of_files(read.store, "timeline"), first)
    return older_ms <= emitted.watermark_ms


def largest_offer_before(files: dict[str, list[Any]], first: date) -> int:
    """The largest watermark in ms that any channel offered before a day, by the file statistics.

    MIN_WATERMARK: none was offered.
    """
    offers = [files.get(f"max.{name}", ()) for name in ("settled_ms", "pending_ms")]
    older = [
        value
        for column in offers
        for day, value in zip(files["day"], column, strict=False)
        if day < first and value is not None
    ]
    return max(older, default=MIN_WATERMARK)
