"""The channels of a watermark: the order in which ticks probe them, and their retirement.

A retired channel no longer holds the watermark back. As a finished partition in Flink, it emits
MAX_WATERMARK, as if a record had offered that at the last instant before the retirement. In a
timeline this offer is one more cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import pandas as pd

from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import (
    CELL_COLUMNS,
    CHANNEL_COLUMNS,
    CellQuery,
    OverTimeline,
    Timeline,
    channel_days_of,
    concatenated,
    instants_of,
)
from strandline.model.intervals import EVERYTHING, day_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class ProbeOrder:
    """The channels in the order in which a tick probes them.

    Attributes:
        channels: the names of the channels.
        joined: the instant from which each channel counts: the instant of its first record; for
            declared channels, an instant before all others.
    """

    channels: tuple[str, ...]
    joined: list[int]

    @property
    def tied(self) -> dict[str, int]:
        """The channels that joined at one instant with another channel, and that instant."""
        pairs = dict(zip(self.channels, self.joined, strict=True))
        newcomers = Counter(self.joined)
        return {channel: at for channel, at in pairs.items() if newcomers[at] > 1}

    def broken_by(self, behind: Mapping[str, tuple[int, int]]) -> ProbeOrder:
        """The order with ties broken by (sequence, event time) of the channels' first records."""
        joined = dict(zip(self.channels, self.joined, strict=True))
        order = sorted(joined, key=lambda name: (joined[name], behind.get(name, ()), name))
        return ProbeOrder(tuple(order), [joined[name] for name in order])


def probe_order(
    timeline: Timeline, spec: PipelineSpec, axis: Axis, known: tuple[str, ...] | None = None
) -> ProbeOrder:
    """The probe order by first instants; ties are ordered by name.

    `known`: the discovered channels in probe order; None: not known yet.
    """
    declared = spec.source.declared_channels
    if declared is not None:
        return ProbeOrder(declared, [-axis.never] * len(declared))
    days = timeline.channel_days
    instants = pd.Series(instants_of(days, axis), index=days.index, dtype=object)
    found = instants.groupby(days["channel"]).min().items()
    first = {str(channel): int(at) for channel, at in found}
    order = known or tuple(sorted(first, key=lambda channel: (first[channel], channel)))
    return ProbeOrder(order, [first[channel] for channel in order])


@dataclass(frozen=True)
class End:
    """The end of a channel, by its retirement.

    Attributes:
        channel: the name of the channel.
        day: the arrival day of `instant`.
        instant: the last instant before the retirement.
        seen_from: the first instant after the emission of MAX_WATERMARK.
    """

    channel: str
    day: date
    instant: int
    seen_from: int


def ends_of(spec: PipelineSpec, axis: Axis) -> list[End]:
    """The ends of all channels that the pipeline retires, past and future."""
    ends = []
    for channel, retired_ms in spec.source.retired.items():
        instant = axis.first_of(retired_ms) - 1
        seen = axis.all_seen_from(np.array([instant], dtype=object if axis.sequenced else np.int64))
        ends.append(End(channel, day_of(retired_ms - 1), instant, int(seen[0])))
    return ends


def with_ends(timeline: Timeline, spec: PipelineSpec, axis: Axis) -> Timeline:
    """A timeline with one more cell for each channel that is or will be retired."""
    ends = ends_of(spec, axis)
    return _WithEnds(timeline, _cells(ends, spec, axis)) if ends else timeline


def _cells(ends: list[End], spec: PipelineSpec, axis: Axis) -> pd.DataFrame:
    """The cells of retirements: without a slot and without records."""
    offered = pd.Series([MAX_WATERMARK] * len(ends), dtype="Int64")
    over = [axis.end_of(end.day) for end in ends]
    pending = [
        axis.interval_ms is not None and end.seen_from >= at
        for end, at in zip(ends, over, strict=True)
    ]
    cells = pd.DataFrame(
        {
            "arrival_date": [end.day for end in ends],
            "channel": [end.channel for end in ends],
            "threshold_ms": Grid.of(spec).largest_thresholds(offered),
            "pending": pd.array(pending, dtype="boolean"),
            "largest_candidate_ms": offered,
            "first_arrival_ms": [axis.arrival_of(end.instant) for end in ends],
            "first_sequence": [axis.sequence_of(end.instant) for end in ends],
        }
    )
    return _exact(cells.reindex(columns=[*CELL_COLUMNS]))


def _exact(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows with all times as integers: the largest would not fit a float."""
    times = [name for name in rows.columns if name.endswith("_ms") or name == "first_sequence"]
    return rows.astype(dict.fromkeys(times, "Int64"))


@dataclass(frozen=True)
class _WithEnds(OverTimeline):
    """A timeline with the cells of retirements: see `Timeline`."""

    ends: pd.DataFrame

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`.

        A day on which a channel is retired and has records has two rows for it.
        """
        own = channel_days_of(self.ends).reindex(columns=[*CHANNEL_COLUMNS])
        return concatenated(_exact(self.timeline.channel_days), _exact(own))

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        found = self.timeline.cells(asked)
        if asked.slots != EVERYTHING:
            return found
        chosen = self.ends["arrival_date"].isin(list(asked.days)).to_numpy(dtype=bool)
        return concatenated(_exact(found), self.ends.loc[chosen, list(asked.columns)])
