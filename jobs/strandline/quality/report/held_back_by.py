"""The channel that holds the watermark back, and the time since when it does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pandas as pd

from strandline.engine.idleness.state import SourceState
from strandline.model.intervals import DAY_MS, midnight_of, text_of, text_or_none
from strandline.model.lateness import MIN_WATERMARK
from strandline.quality.figures import duration
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.spec.pipeline import channel_of


@dataclass(frozen=True)
class HeldBack:
    """The combined watermark, and the channel that holds it back.

    Attributes:
        watermark_ms: the combined watermark after the last observed day; None: none yet.
        held_by: the channel with the smallest watermark; None: no channel takes part.
        since: the last time at which this channel raised its watermark; None: never.
        ahead_ms: the distance to the next channel's watermark; None: no other has a watermark.
        idle: the idle channels, which the combined watermark ignores.
        arrived_before: the instant up to which arrivals decide it; None: the data cut-off.
        behind_ms: how far the holding channel, which was discovered later, is behind it; 0: it is
            not, or has none.
        at_least: whether the watermark may have advanced further before that channel joined.
    """

    watermark_ms: int | None
    held_by: str | None
    since: str | None
    ahead_ms: int | None
    idle: tuple[str, ...] = ()
    arrived_before: str | None = None
    behind_ms: int = 0
    at_least: bool = False

    def __str__(self) -> str:
        """The state as one line of text."""
        at = "at least at" if self.at_least else "at"
        parts = [f"{at} {text_of(self.watermark_ms)}" if self.watermark_ms is not None else "none"]
        if self.held_by is None and self.since:
            parts.append(f"since {self.since}")
        if self.held_by is not None:
            since = f" since {self.since}" if self.since else ", which has never offered one"
            behind = f", which is {duration(self.behind_ms)} behind it" if self.behind_ms else ""
            parts.append(f"held by channel {self.held_by}{since}{behind}")
        if self.ahead_ms:
            parts.append(f"the others are {duration(self.ahead_ms)} ahead")
        if self.idle:
            parts.append(f"idle, and left out: {', '.join(self.idle)}")
        if self.arrived_before is not None:
            parts.append(f"by arrivals before {self.arrived_before}")
        return "; ".join(parts)


@dataclass(frozen=True)
class _ChannelWatermark:
    name: str
    watermark_ms: int
    since: str | None


def held_back_by(
    channels: pd.DataFrame, spec: PipelineSpec, carried: SourceState | None = None
) -> HeldBack | None:
    """The watermark of a pipeline, and the channel that holds it back; None if it is not known.

    It is not known if records alone do not decide it, as for a join with a side that can go idle or
    that is emitted by the clock.

    Args:
        channels: the timeline's rows of kind `channel`.
        spec: the pipeline.
        carried: the state of the source after the last observed day, if channels can go idle.
    """
    if spec.reads_results_of is not None:
        return None
    if spec.watermark.goes_by_the_clock:
        found = None if carried is None else _of_source(carried)
        return found and HeldBack(found.watermark_ms, None, None, None, found.idle)
    if spec.source.channel is None and not spec.has_two_sources:
        return None if channels.empty else _of_one_channel(channels)
    if spec.has_two_sources:
        if not all(map(waits_for_all, spec.sides.values())):
            return None
        carried = None  # it is that of one side, or of a valve over both
    if carried is not None:
        return _of_source(carried)
    retired = _retired_by_then(channels, spec)
    own = [_by_days(str(name), rows) for name, rows in channels.groupby("channel")]
    own = [channel for channel in own if channel.name not in retired]
    known = {channel.name for channel in own} | retired
    silent = silent_channels(spec, known)
    silent_ones = (_ChannelWatermark(name, MIN_WATERMARK, None) for name in silent)
    named = [replace(one, name=name_of(one.name, spec)) for one in (*own, *silent_ones)]
    return _least(named, MIN_WATERMARK if silent else _reached(channels, spec))


def name_of(channel: str, spec: PipelineSpec) -> str:
    """A channel's name; of a side without channels, the side's: `left` for `left/`."""
    sides = (name for name, side in spec.sides.items() if name and side.source.channel is None)
    return next((name for name in sides if channel_of(name, "") == channel), channel)


def _of_one_channel(rows: pd.DataFrame) -> HeldBack:
    """The watermark of a pipeline with one nameless channel, and the time of its last advance."""
    only = _by_days("", rows)
    watermark_ms = None if only.watermark_ms == MIN_WATERMARK else only.watermark_ms
    return HeldBack(watermark_ms, None, only.since, None)


def silent_channels(spec: PipelineSpec, with_watermark: Collection[str]) -> tuple[str, ...]:
    """The channels that hold the watermark back because they have no watermark yet.

    A side of an interval join that discovers its channels, and has none yet, is listed by the
    side's name. Windows over both sides combine all channels at once: one that is not yet
    discovered holds nothing back.

    Args:
        spec: the pipeline.
        with_watermark: the channels that have a watermark.
    """
    silent: list[str] = []
    for name, side in spec.sides.items():
        if not waits_for_all(side):
            continue
        if side.source.declared_channels is None:
            prefix = channel_of(name, "")
            if spec.result == PAIRS and not any(one.startswith(prefix) for one in with_watermark):
                silent.append(name)
        else:
            of_side = (channel_of(name, one) for one in side.source.declared_channels)
            silent += [one for one in of_side if one not in with_watermark]
    return tuple(silent)


def waits_for_all(side: PipelineSpec) -> bool:
    """Whether a side's watermark waits for the first record of each of its channels."""
    watermark = side.watermark
    return not (watermark.idleness_in_effect or watermark.goes_by_the_clock)


def _retired_by_then(channels: pd.DataFrame, spec: PipelineSpec) -> set[str]:
    """The channels that were retired by the end of the last of some days."""
    if channels.empty:
        return set()
    over_ms = midnight_of(max(channels["arrival_date"])) + DAY_MS
    return {name for name, at_ms in spec.source.retired.items() if at_ms <= over_ms}


def _reached(channels: pd.DataFrame, spec: PipelineSpec) -> int:
    """The largest combined watermark at the end of a day, in ms; MIN_WATERMARK: there was none.

    A channel that is discovered behind it does not lower it; declared channels are never behind.
    """
    if all(side.source.declared_channels is not None for side in spec.sides.values()):
        return MIN_WATERMARK
    known, reached_ms = dict[str, int](), MIN_WATERMARK
    for _, of_day in channels.groupby("arrival_date"):  # in the order of the days
        offers = of_day["settled_ms"].astype("Int64").fillna(MIN_WATERMARK)
        for name, offer_ms in zip(of_day["channel"], offers, strict=True):
            known[str(name)] = max(known.get(str(name), MIN_WATERMARK), int(offer_ms))
        if not silent_channels(spec, known):
            reached_ms = max(reached_ms, min(known.values()))
    return reached_ms


def _of_source(carried: SourceState) -> HeldBack | None:
    taking_part = [
        _ChannelWatermark(
            channel.name,
            channel.watermark_ms,
            text_or_none(channel.raised_ms),
        )
        for channel in carried.channels
        if channel.active and (channel.watermark_ms >= carried.combined_ms or not channel.been_idle)
    ]
    combined_ms = None if carried.combined_ms == MIN_WATERMARK else carried.combined_ms
    idle = tuple(one.name for one in carried.channels if one.name and not one.active)
    least = _least(taking_part)
    if least is None:
        return HeldBack(combined_ms, None, None, None, idle) if carried.channels else None
    return HeldBack(combined_ms, least.held_by, least.since, least.ahead_ms, idle)


def _by_days(name: str, rows: pd.DataFrame) -> _ChannelWatermark:
    """The last day on which a channel raised its watermark."""
    by_day = rows.sort_values("arrival_date")
    offers = by_day.reindex(columns=["settled_ms", "pending_ms"]).astype("Int64")
    offered = offers.fillna(MIN_WATERMARK).max(axis=1)
    raised = by_day[offered > offered.cummax().shift(1, fill_value=MIN_WATERMARK)]
    if raised.empty:
        return _ChannelWatermark(name, MIN_WATERMARK, None)
    day = raised["arrival_date"].iloc[-1]
    return _ChannelWatermark(name, int(offered.max()), day.isoformat())


def _least(channels: list[_ChannelWatermark], reached_ms: int = MIN_WATERMARK) -> HeldBack | None:
    """The watermark of the slowest channel, or the one that was reached before it joined."""
    if not channels:
        return None
    first, *others = sorted(channels, key=lambda channel: channel.watermark_ms)
    combined_ms, ahead = max(first.watermark_ms, reached_ms), None
    if combined_ms == MIN_WATERMARK:
        return HeldBack(None, first.name, first.since, None)
    if others and others[0].watermark_ms > MIN_WATERMARK:
        ahead = max(others[0].watermark_ms - combined_ms, 0)
    has_one = first.watermark_ms > MIN_WATERMARK
    return HeldBack(
        combined_ms,
        first.name,
        first.since,
        ahead,
        behind_ms=combined_ms - first.watermark_ms if has_one else 0,
        at_least=first.watermark_ms < combined_ms,
    )
