"""`silent_after`: the channels from which no record arrives any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from strandline.model.intervals import DAY_MS, HOUR_MS, text_of
from strandline.quality.findings.check import Check
from strandline.spec.quality import DEFAULT

FOUR_WEEKS_MS = 28 * DAY_MS
_SHOWN = 100
"""The largest number of silent channels that are named."""


@dataclass(frozen=True)
class ChannelArrivals:
    """The arrivals of a channel.

    Attributes:
        name: the channel's name.
        last_ms: its last arrival; None: it has no record.
        longest_pause_ms: its longest pause of four weeks (`longest_pauses`); None: not known yet.
    """

    name: str
    last_ms: int | None
    longest_pause_ms: int | None = None


def longest_pauses(
    channels: npt.NDArray[np.int64],
    midnights_ms: npt.NDArray[np.int64],
    hours: npt.NDArray[np.int64],
) -> dict[int, int]:
    """The longest time in ms between two consecutive hours with records, for each channel.

    A channel whose hours are all within a day has none: its pause at night is not known yet.

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
    pauses: dict[int, int] = {}
    if not len(channel):
        return pauses
    begins = np.flatnonzero(np.r_[True, channel[1:] != channel[:-1]])
    for begin, end in zip(begins, [*begins[1:], len(channel)], strict=True):
        of_channel = hour[begin:end]
        if (of_channel[-1] - of_channel[0]) * HOUR_MS >= DAY_MS:
            pauses[int(channel[begin])] = int(np.diff(of_channel).max()) * HOUR_MS
    return pauses


def silent_channels(
    channels: Iterable[ChannelArrivals], silent_after: int | str, horizon_ms: int, start_ms: int
) -> list[ChannelArrivals]:
    """The channels that are silent at a horizon, the longest silence first, then by name.

    The allowed pause is `silent_after`; by default it is twice the channel's longest pause of four
    weeks. If this pause is not known, as after a single record, the longest pause of the other
    channels counts, but at least two days; if none is known, four weeks. A channel without a record
    is silent since the start.

    Args:
        channels: every channel that the pipeline waits for.
        silent_after: the allowed pause in ms, or `default`.
        horizon_ms: the instant up to which the run has read arrivals.
        start_ms: the start of the pipeline's clock.
    """
    found, every = [], list(channels)
    others_ms = _limit_of_unknown(every)
    for channel in every:
        since_ms = start_ms if channel.last_ms is None else channel.last_ms
        if isinstance(silent_after, int):
            limit_ms = silent_after
        elif channel.last_ms is None:
            limit_ms = 0
        else:
            pause_ms = channel.longest_pause_ms
            limit_ms = others_ms if pause_ms is None else 2 * pause_ms
        if horizon_ms - since_ms > limit_ms:
            found.append(channel)
    return sorted(found, key=lambda one: (one.last_ms is not None, one.last_ms or 0, one.name))


def _limit_of_unknown(channels: Iterable[ChannelArrivals]) -> int:
    """The allowed pause, in ms, of a channel whose own pauses are not known."""
    known = [one.longest_pause_ms for one in channels if one.longest_pause_ms is not None]
    return max(2 * max(known), 2 * DAY_MS) if known else FOUR_WEEKS_MS


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
    return Check("silent_after", "warning", len(found), 0, sentence)


def _named(found: Sequence[ChannelArrivals], start_ms: int) -> str:
    """The silent channels as text, grouped by their last arrival; the first hundred by name."""
    parts = []
    for last_ms, silent in groupby(found[:_SHOWN], key=lambda one: one.last_ms):
        names = ", ".join(one.name for one in silent)
        since = f"the start, {text_of(start_ms)}" if last_ms is None else text_of(last_ms)
        parts.append(f"{names} since {since}")
    more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return "; ".join(parts) + more
