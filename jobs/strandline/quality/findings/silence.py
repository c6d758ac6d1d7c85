"""`silent_after`: the channels from which no record arrives any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strandline.model.intervals import DAY_MS, HOUR_MS, text_of
from strandline.quality.findings.check import Check
from strandline.spec.quality import DEFAULT

FOUR_WEEKS_MS = 28 * DAY_MS
_SHOWN = 20
"""The largest number of silent channels that the sentence names."""
_KEPT = 1_000
"""The largest number of silent channels that are named beside it: the ledger keeps them."""
_AT_LEAST_MS, _AT_MOST_MS = DAY_MS, 2 * DAY_MS
"""The bounds of the allowed pause of a channel with less than a day of history."""


class Pause(NamedTuple):
    """The longest time between two consecutive hours with records of a channel.

    Attributes:
        longest_ms: the time, in whole hours.
        within_a_day: whether all of its hours lie within a day: its pause at night is not known.
    """

    longest_ms: int
    within_a_day: bool = False


@dataclass(frozen=True)
class ChannelArrivals:
    """The arrivals of a channel.

    Attributes:
        name: the channel's name.
        last_ms: its last arrival; None: it has no record.
        pause: its longest pause of four weeks (`longest_pauses`); None: it is not known, as of
            records in one hour alone.
    """

    name: str
    last_ms: int | None
    pause: Pause | None = None


def longest_pauses(
    channels: npt.NDArray[np.int64],
    midnights_ms: npt.NDArray[np.int64],
    hours: npt.NDArray[np.int64],
) -> dict[int, Pause]:
    """The longest pause of each channel that has records in more than one hour.

    Args:
        channels: a number for the channel of each channel-day, in any order.
        midnights_ms: the midnight at the start of the day.
        hours: the hours of the day with records of the channel, as a bit mask.
    """
    order = np.lexsort((midnights_ms, channels))
    has_record = (hours[order, None] >> np.arange(24)) & 1 == 1
    day, hour_of_day = np.nonzero(has_record)
    channel = channels[order][day]
    hour = midnights_ms[order][day] // HOUR_MS + hour_of_day
    pauses: dict[int, Pause] = {}
    if not len(channel):
        return pauses
    begins = np.flatnonzero(np.r_[True, channel[1:] != channel[:-1]])
    for begin, end in zip(begins, [*begins[1:], len(channel)], strict=True):
        of_channel = hour[begin:end]
        if len(of_channel) > 1:
            longest_ms = int(np.diff(of_channel).max()) * HOUR_MS
            within_a_day = bool((of_channel[-1] - of_channel[0]) * HOUR_MS < DAY_MS)
            pauses[int(channel[begin])] = Pause(longest_ms, within_a_day)
    return pauses


def silent_channels(
    channels: Iterable[ChannelArrivals], silent_after: int | str, horizon_ms: int, start_ms: int
) -> list[ChannelArrivals]:
    """The channels that are silent at a horizon, the longest silence first, then by name.

    The allowed pause is `silent_after`; by default it is twice the channel's longest pause of four
    weeks. If all of its hours lie within a day, its pause at night is not known: a day is allowed
    at least, and together with all channels two days at most. If no pause is known, as with
    records in a single hour, the longest pause of the other channels counts, but at least two days;
    if none has one, four weeks. A channel without a record is silent since the start.

    Args:
        channels: every channel that the pipeline waits for.
        silent_after: the allowed pause in ms, or `default`.
        horizon_ms: the instant up to which the run has read arrivals.
        start_ms: the start of the pipeline's clock.
    """
    every = list(channels)
    limit_of = _Limits.of(every, horizon_ms)
    found = []
    for channel in every:
        since_ms = start_ms if channel.last_ms is None else channel.last_ms
        limit_ms = silent_after if isinstance(silent_after, int) else limit_of(channel)
        if horizon_ms - since_ms > limit_ms:
            found.append(channel)
    return sorted(found, key=lambda one: (one.last_ms is not None, one.last_ms or 0, one.name))


@dataclass(frozen=True)
class _Limits:
    """The default limits of pauses, in ms.

    Attributes:
        all_silent_ms: the time before the horizon in which no channel has spoken.
        of_unknown_ms: the allowed pause of a channel whose own pauses are not known.
    """

    all_silent_ms: int
    of_unknown_ms: int

    @classmethod
    def of(cls, channels: Sequence[ChannelArrivals], horizon_ms: int) -> _Limits:
        """The limits by the channels' arrivals up to a horizon."""
        last_ms = max((one.last_ms for one in channels if one.last_ms is not None), default=0)
        known = [one.pause.longest_ms for one in channels if one.pause is not None]
        of_unknown_ms = max(2 * max(known), _AT_MOST_MS) if known else FOUR_WEEKS_MS
        return cls(horizon_ms - last_ms, of_unknown_ms)

    def __call__(self, channel: ChannelArrivals) -> int:
        """The allowed pause of a channel; 0: it has never spoken."""
        if channel.last_ms is None:
            return 0
        if channel.pause is None:
            return self.of_unknown_ms
        limit_ms = 2 * channel.pause.longest_ms
        if channel.pause.within_a_day:
            return min(max(limit_ms + self.all_silent_ms, _AT_LEAST_MS), _AT_MOST_MS)
        return limit_ms


def check_of_silence(
    channels: Sequence[ChannelArrivals],
    silent_after: int | str | None,
    horizon_ms: int,
    start_ms: int,
) -> Check | None:
    """The check for silent channels at a horizon; None if it is off, or there is no channel."""
    if silent_after is None or not channels:
        return None
    found = silent_channels(channels, silent_after, horizon_ms, start_ms)
    sentence = f"all {len(channels):,} channels are active"
    if found:
        sentence = f"{len(found):,} of {len(channels):,} channels silent: {_named(found, start_ms)}"
        sentence += f"; before the data cut-off {text_of(horizon_ms)}"
        if silent_after != DEFAULT or any(one.last_ms is not None for one in found):
            sentence += ", longer than silent_after allows"
    every = tuple(f"{one.name}: since {_since(one.last_ms, start_ms)}" for one in found[:_KEPT])
    return Check("silent_after", "warning", len(found), 0, sentence, every=every)


def _named(found: Sequence[ChannelArrivals], start_ms: int) -> str:
    """The silent channels as text, grouped by their last arrival; the first twenty by name."""
    parts = []
    for last_ms, silent in groupby(found[:_SHOWN], key=lambda one: one.last_ms):
        names = [one.name for one in silent]
        channels = "channel" if len(names) == 1 else "channels"
        parts.append(f"{channels} {', '.join(names)} since {_since(last_ms, start_ms)}")
    if (more := len(found) - _SHOWN) > 0:
        which = "all" if len(found) <= _KEPT else f"the first {_KEPT:,}"
        parts.append(f"and {more:,} more, {which} named by --json and in the report")
    return "; ".join(parts)


def _since(last_ms: int | None, start_ms: int) -> str:
    return f"the start, {text_of(start_ms)}" if last_ms is None else text_of(last_ms)
