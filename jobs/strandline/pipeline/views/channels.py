"""What each channel has offered, and which one holds the watermark: by few days of the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from strandline.engine.idleness.state import SourceState
from strandline.lake.days import Days, facts_of_files, shown_days
from strandline.lake.store import Store
from strandline.lake.timeline import channel_days, read_source
from strandline.lake.timeline_rows import TimelineTable
from strandline.model.lateness import MIN_WATERMARK
from strandline.quality.report.held_back_by import HeldBack, held_back_by
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class ChannelWatermarks:
    """How far the channels have come after a day.

    Attributes:
        channels: what they have offered, by day, on as many days as it takes to know.
        source: where channels can go idle: where the source stands.
        held_back: what keeps the watermark where it is; None: channels decide nothing.
    """

    channels: pd.DataFrame
    source: SourceState | None
    held_back: HeldBack | None


def channel_watermarks(
    spec: PipelineSpec, store: Store, until: date | None = None, *, settled: bool = False
) -> ChannelWatermarks:
    """How far the channels have come after a day, None: the last observed one.

    The trailing days have it, unless an older day may hold a channel's largest watermark, as where
    a channel has long been silent or its clock was once ahead: then all days of channels are read.

    Args:
        spec: the pipeline.
        store: its tables.
        until: that day.
        settled: leave out what no tick has shown by the end of its day.
    """
    recent = _watermarks_of(spec, store, shown_days(store, None, until), settled=settled)
    if _is_decided(spec, store, recent):
        return recent
    return _watermarks_of(spec, store, Days(None, until), settled=settled)


def _watermarks_of(
    spec: PipelineSpec, store: Store, days: Days, *, settled: bool
) -> ChannelWatermarks:
    timeline = TimelineTable.open(store, days.rows_of("timeline"))
    channels = channel_days(timeline)
    if settled:
        channels = channels.assign(pending_ms=None)
    source = read_source(timeline)
    return ChannelWatermarks(channels, source, held_back_by(channels, spec, source))


def _is_decided(spec: PipelineSpec, store: Store, found: ChannelWatermarks) -> bool:
    """Whether no day before those that were read can change how far the channels have come."""
    decide = spec.watermark.lag_ms is None and spec.reads_results_of is None
    if not decide or spec.watermark.idleness_in_effect:  # then the last day has all
        return True
    holds = found.held_back
    if spec.source.declared_channels is None or holds is None or holds.watermark_ms is None:
        return False
    first = min(found.channels["arrival_date"])
    return largest_offer_before(facts_of_files(store, "timeline"), first) <= holds.watermark_ms


def largest_offer_before(files: dict[str, list[Any]], first: date) -> int:
    """The largest watermark that any channel has offered before a day, by the timeline's log."""
    offers = [files.get(f"max.{name}", ()) for name in ("settled_ms", "pending_ms")]
    older = [
        value
        for column in offers
        for day, value in zip(files["day"], column, strict=False)
        if day < first and value is not None
    ]
    return max(older, default=MIN_WATERMARK)
