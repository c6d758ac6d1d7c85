"""The channel that holds the watermark back, and the time since when it does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import pandas as pd

from strandline.engine.idleness.state import SourceState
from strandline.model.intervals import (
    DAY_MS,
    LEAST_INSTANT_MS,
    midnight_of,
    text_of,
    text_or_none,
)
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
        ahead_ms: the distance from the combined watermark to the next channel's; None: no other
            channel has one.
        idle: the idle channels, which the combined watermark ignores.
        arrived_before: the instant up to which arrivals decide it; None: the data cut-off.
        behind_ms: how far the holding channel, which was discovered later, is behind it; 0: it is
            not, or has none.
        at_least: whether it may be higher: channels joined in the course of a day, and only the
            watermarks at midnight are known.
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
        at, none = ("at least at", "none for certain") if self.at_least else ("at", "none")
        parts = [f"{at} {text_of(self.watermark_ms)}" if self.watermark_ms is not None else none]
        if self.held_by is None and self.since:
            parts.append(f"since {self.since}")
        if self.held_by is not None:
            since = f" since {self.since}" if self.since else ", which has never offered one"
            behind = f", which is {duration(self.behind_ms)} behind it" if self.behind_ms else ""
            parts.append(f"held by channel {self.held_by}{since}{behind}")
        if self.ahead_ms:
            of_what = " of it" if self.behind_ms else ""
            parts.append(f"the others are {duration(self.ahead_ms)} ahead{of_what}")
        if self.idle:
            parts.append(f"idle, and left out: {', '.join(self.idle)}")
        if self.arrived_before is not None:
            parts.append(f"by arrivals before {self.arrived_before}")
        return "; ".join(parts)


@dataclass(frozen=True)
class _BeforeJoining:
    """The bounds of the combined watermark when the last of some channels joined, in ms.

    MIN_WATERMARK: there was none.
    """

    least_ms: int = MIN_WATERMARK
    most_ms: int = MIN_WATERMARK


@dataclass(frozen=True)
class _ChannelWatermark:
    name: str
    watermark_ms: int
    since: str | None
    before: _BeforeJoining = _BeforeJoining()

    @property
    def counted_ms(self) -> int:
        """The watermark in ms that counts: the channel does not lower one that it found."""
        return max(self.watermark_ms, self.before.least_ms)


def held_back_by(
    channels: pd.DataFrame,
    spec: PipelineSpec,
    carried: SourceState | None = None,
    retired: Collection[str] = (),
) -> HeldBack | None:
    """The watermark of a pipeline, and the channel that holds it back; None if it is not known.

    It is not known if records alone do not decide it, as for a join with a side that can go idle or
    that is emitted by the clock.

    Args:
        channels: the timeline's rows of kind `channel`.
        spec: the pipeline.
        carried: the state of the source after the last observed day, if channels can go idle.
        retired: the channels that no longer hold the watermark back.
    """
    if spec.reads_results_of is not None:
        return None
    if spec.watermark.goes_by_the_clock:
        found = None if carried is None else _of_source(carried)
        return found and HeldBack(found.watermark_ms, None, None, None, found.idle)
    if spec.source.channel is None and not spec.has_two_sources:
        return None if channels.empty else _of_one_channel(channels)
    if spec.has_two_sources:
        if not spec.waits_for_all:
            return None
        carried = None  # it is that of one side, or of a valve over both
    if carried is not None:
        return _of_source(carried)
    own = [channel for channel in _by_days(channels) if channel.name not in retired]
    known = {channel.name for channel in own} | {*retired}
    silent = silent_channels(spec, known)
    own += [_ChannelWatermark(name, MIN_WATERMARK, None) for name in silent]
    own = _with_bounds(own, channels, spec)
    return _least([replace(one, name=name_of(one.name, spec)) for one in own])


def name_of(channel: str, spec: PipelineSpec) -> str:
    """A channel's name; of a side without channels, the side's: `left` for `left/`."""
    sides = (name for name, side in spec.sides.items() if name and side.source.channel is None)
    return next((name for name in sides if channel_of(name, "") == channel), channel)


def _of_one_channel(rows: pd.DataFrame) -> HeldBack:
    """The watermark of a pipeline with one nameless channel, and the time of its last advance."""
    (only,) = _by_days(rows.assign(channel=""))
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
        if not side.waits_for_all:
            continue
        if side.source.declared_channels is None:
            prefix = channel_of(name, "")
            if spec.result == PAIRS and not any(one.startswith(prefix) for one in with_watermark):
                silent.append(name)
        else:
            of_side = (channel_of(name, one) for one in side.source.declared_channels)
            silent += [one for one in of_side if one not in with_watermark]
    return tuple(silent)


def _with_bounds(
    found: list[_ChannelWatermark], channels: pd.DataFrame, spec: PipelineSpec
) -> list[_ChannelWatermark]:
    """The channels, each with the bounds of its source's combined watermark before others joined.

    The sides of an interval join combine their channels each by itself.
    """
    for name, side in spec.sides.items() if spec.result == PAIRS else [("", spec)]:
        if any(one.source.declared_channels is None for one in side.sides.values()):
            prefix = channel_of(name, "")
            of_side = channels["channel"].astype(str).str.startswith(prefix)
            before = _before_joining(channels[of_side], side)
            found = [replace(c, before=before) if c.name.startswith(prefix) else c for c in found]
    return found


def _before_joining(channels: pd.DataFrame, spec: PipelineSpec) -> _BeforeJoining:
    """The bounds of the watermark that channels had reached when later ones were discovered.

    They joined in the course of a day: the watermark was at least that of the midnight before, and
    at most what all earlier channels have by the midnight after.
    """
    known = dict.fromkeys(spec.waited_for(LEAST_INSTANT_MS), MIN_WATERMARK)
    found = _BeforeJoining()
    offers = offers_of(channels).fillna({"watermark_ms": MIN_WATERMARK}).sort_values("at_ms")
    rows = zip(*(offers[name].tolist() for name in offers), strict=True)
    for _, of_instant in groupby(rows, key=itemgetter(0)):
        earlier = dict(known)
        for _, name, offer_ms in of_instant:
            known[name] = max(known.get(name, MIN_WATERMARK), offer_ms)
        if len(known) > max(len(earlier), 1):
            least_ms = min(earlier.values(), default=MIN_WATERMARK)
            most_ms = min((known[one] for one in earlier), default=max(known.values()))
            found = _BeforeJoining(max(found.least_ms, least_ms), max(found.most_ms, most_ms))
    return found


def offers_of(channels: pd.DataFrame) -> pd.DataFrame:
    """The watermarks of channels by when they are emitted: `at_ms`, `channel`, `watermark_ms`.

    That is a midnight, at which a tick comes before the records of the new day, or the millisecond
    after it for the whole day. A pending one is emitted at `emitted_ms`, or the next midnight; a
    day without another one has a null.
    """
    names = ["settled_ms", "pending_ms", "emitted_ms"]
    offers = channels.reindex(columns=names).astype("Int64")
    midnights = [midnight_of(day) for day in channels["arrival_date"]]
    midnights_ms = pd.Series(midnights, channels.index, "Int64")
    ticks_ms = offers["emitted_ms"].fillna(midnights_ms + DAY_MS)
    emitted_ms = ticks_ms // DAY_MS * DAY_MS + (ticks_ms % DAY_MS > 0).astype("Int64")
    settled, pending = (
        pd.DataFrame({"at_ms": at_ms, "channel": channels["channel"], "watermark_ms": offers[name]})
        for name, at_ms in (("settled_ms", midnights_ms + 1), ("pending_ms", emitted_ms))
    )
    return pd.concat([settled, pending.dropna(subset="watermark_ms")], ignore_index=True)


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
        there_is_one = carried.channels or combined_ms is not None
        return HeldBack(combined_ms, None, None, None, idle) if there_is_one else None
    return HeldBack(combined_ms, least.held_by, least.since, least.ahead_ms, idle)


def _by_days(channels: pd.DataFrame) -> list[_ChannelWatermark]:
    """The largest watermark of each channel, and the first day that offered it."""
    by_day = channels.sort_values("arrival_date", ignore_index=True)
    offers = by_day.reindex(columns=["settled_ms", "pending_ms"]).astype("Int64")
    by_day["offered"] = offers.fillna(MIN_WATERMARK).max(axis=1)
    raised = by_day.loc[by_day.groupby("channel")["offered"].idxmax()]
    return [
        _ChannelWatermark(str(name), ms, day.isoformat() if ms > MIN_WATERMARK else None)
        for name, ms, day in zip(
            raised["channel"], raised["offered"].tolist(), raised["arrival_date"], strict=True
        )
    ]


def _least(channels: list[_ChannelWatermark]) -> HeldBack | None:
    """The watermark of the slowest channel, or the one that was reached before it joined."""
    if not channels:
        return None
    first, *others = sorted(channels, key=lambda one: (one.counted_ms, one.watermark_ms))
    combined_ms, ahead = first.counted_ms, None
    at_least = combined_ms < min(max(one.counted_ms, one.before.most_ms) for one in channels)
    if combined_ms == MIN_WATERMARK:
        return HeldBack(None, first.name, first.since, None, at_least=at_least)
    if others and others[0].watermark_ms > MIN_WATERMARK:
        ahead = others[0].counted_ms - combined_ms
    has_one = first.watermark_ms > MIN_WATERMARK
    return HeldBack(
        combined_ms,
        first.name,
        first.since,
        ahead,
        behind_ms=combined_ms - first.watermark_ms if has_one else 0,
        at_least=at_least,
    )
