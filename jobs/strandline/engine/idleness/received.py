"""The records and offers of the channels of a source between two instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.idleness.activity import Activity
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import Channel, SourceState
from strandline.engine.idleness.valve import Channels
from strandline.engine.position.grid import WIDEST_MS
from strandline.model.lateness import MIN_WATERMARK

NO_TICK = -WIDEST_MS
"""A time before all ticks, where there was none."""
Longs = npt.NDArray[Any]


@dataclass(frozen=True)
class ShownRecords:
    """The ticks at which new records of one channel become visible, ascending.

    Attributes:
        ticks: these ticks, in ms.
        previous: for each tick, the tick of the record before; `NO_TICK`: there is none.
        candidates: the watermark offered at each tick, in ms; MIN_WATERMARK: none.
    """

    ticks: Longs
    previous: Longs
    candidates: Longs

    @classmethod
    def of_day(cls, on_ticks: pd.DataFrame | None) -> ShownRecords:
        """The ticks of one arrival day.

        The tick before the day's first one is not known yet.
        """
        if on_ticks is None:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, none, none)
        rows = on_ticks.sort_values("tick_ms")
        return cls(
            rows["tick_ms"].to_numpy(dtype=np.int64),
            rows["before_ms"].fillna(NO_TICK).to_numpy(dtype=np.int64),
            rows["candidate_ms"].fillna(MIN_WATERMARK).to_numpy(dtype=np.int64),
        )

    def following(self, channel: Channel) -> ShownRecords:
        """The tick that is pending from before a day, if any, and the ticks of the day."""
        both = self._with_pending(channel)
        last_shown = NO_TICK if channel.last_shown_ms is None else channel.last_shown_ms
        one_before = np.append(last_shown, both.ticks)[: len(both.ticks)]
        return replace(both, previous=np.where(both.previous == NO_TICK, one_before, both.previous))

    def _with_pending(self, channel: Channel) -> ShownRecords:
        if channel.pending_ms is None:
            return self
        offer, own = channel.pending_candidate_ms, self
        offer = MIN_WATERMARK if offer is None else offer
        if len(self.ticks) and self.ticks[0] == channel.pending_ms:
            offer, own = max(offer, int(self.candidates[0])), self[1:]
        return ShownRecords(
            np.append(channel.pending_ms, own.ticks),
            np.append(NO_TICK, own.previous),
            np.append(offer, own.candidates),
        )

    def __getitem__(self, places: slice) -> ShownRecords:
        """A slice of the ticks."""
        return ShownRecords(self.ticks[places], self.previous[places], self.candidates[places])


@dataclass(frozen=True)
class Silences:
    """The idle periods of one channel, ascending: each begins and ends on a tick.

    Attributes:
        idle_from: the ticks on which the channel becomes idle.
        back_at: the ticks at which its next record becomes visible; the last period has none.
    """

    idle_from: Longs
    back_at: Longs


@dataclass(frozen=True)
class Received:
    """The records and offers of one channel between two instants.

    Attributes:
        before: the state of the channel at the first instant.
        after: the channel with its visible and pending records at the second instant; its watermark
            and its status are not yet updated.
        shown: the ticks at which its records became visible.
        at_once: (`seen_from`, watermark in ms) of the watermarks that records emit without a tick.
    """

    before: Channel
    after: Channel
    shown: ShownRecords
    at_once: tuple[Longs, Longs]

    @classmethod
    def of(
        cls,
        channel: Channel,
        on_ticks: pd.DataFrame | None,
        at_once: pd.DataFrame | None,
        until_ms: int,
    ) -> Received:
        """The part of a channel's rows before an instant.

        `on_ticks`, `at_once`: its rows of `Activity`; None: it has none.
        """
        every = ShownRecords.of_day(on_ticks).following(channel)
        count = int(np.searchsorted(every.ticks, until_ms))
        shown, pending = every[:count], every[count:]
        return cls(channel, _after(channel, shown, pending), shown, _offers(at_once))

    def silences(self, timeout_ms: int) -> Silences:
        """The idle periods of the channel, if no more records come.

        The last period may begin after the second instant. A discovered channel has none before its
        first record.
        """
        shown, last_shown_ms = self.shown, self.after.last_shown_ms
        if last_shown_ms is None:
            return Silences(shown.ticks[:0], shown.ticks[:0])
        known = shown.previous != NO_TICK
        ends_silence = known & (shown.previous + timeout_ms < shown.ticks)
        last_shown = np.append(shown.previous[ends_silence], last_shown_ms)
        return Silences(last_shown + timeout_ms, shown.ticks[ends_silence])


def _after(channel: Channel, shown: ShownRecords, pending: ShownRecords) -> Channel:
    """A channel after the visible records, with the first record that is not visible yet."""
    last_shown_ms = channel.last_shown_ms
    if len(pending.ticks):
        # rows that cannot advance the watermark are not observed: of their ticks only the
        # `previous` tick of an observed row is known
        previous = int(pending.previous[0])
        last_shown_ms = last_shown_ms if previous == NO_TICK else previous
    elif len(shown.ticks):
        last_shown_ms = int(shown.ticks[-1])
    return replace(
        channel,
        last_shown_ms=last_shown_ms,
        pending_ms=int(pending.ticks[0]) if len(pending.ticks) else None,
        pending_candidate_ms=int(pending.candidates[0]) if len(pending.ticks) else None,
    )


def _offers(at_once: pd.DataFrame | None) -> tuple[Longs, Longs]:
    """The instants at which offers are first seen, ascending, and the offered watermarks."""
    if at_once is None:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    rows = at_once.sort_values("seen_from")
    return rows["seen_from"].to_numpy(), rows["candidate_ms"].to_numpy(dtype=np.int64)


@dataclass(frozen=True)
class Interval:
    """The records and offers of a source between two instants.

    Attributes:
        before: the state of the source.
        channels: the records and offers by channel, in probe order, new channels last.
        first_tick_ms: the first tick that has not run.
        until_ms: the later instant.
    """

    before: SourceState
    channels: tuple[Received, ...]
    first_tick_ms: int
    until_ms: int

    @classmethod
    def of(
        cls, before: SourceState, activity: Activity, until_ms: int, rules: IdlenessRules
    ) -> Interval:
        """The interval from a source's state to an instant after all records of `activity`."""
        channels = [*before.channels, *_newcomers(before.channels, activity.first)]
        on_ticks = dict(iter(activity.on_ticks.groupby("channel")))
        at_once = dict(iter(activity.at_once.groupby("channel")))
        received = (
            Received.of(channel, on_ticks.get(channel.name), at_once.get(channel.name), until_ms)
            for channel in channels
        )
        first_tick_ms = rules.first_tick_ms
        if before.until_ms is not None:
            first_tick_ms = rules.ticks.after(before.until_ms - 1)
        return cls(before, tuple(received), first_tick_ms, until_ms)

    def is_new(self, number: int) -> bool:
        """Whether a channel, by its place in `channels`, had no record before the interval."""
        return number >= len(self.before.channels)

    def combined_channels(self) -> Channels:
        """The channels for a combiner, as before the interval; new channels have not joined."""
        channels = [one.before for one in self.channels]
        return channels_of([(channels, len(self.before.channels))], self.before.combined_ms)


def channels_of(sides: Sequence[tuple[Sequence[Channel], int]], combined_ms: int) -> Channels:
    """The channels for a combiner (`Valve` or `Splits`), of one input or of two.

    Args:
        sides: the channels of each input, and the number of the first of them that have joined.
        combined_ms: the combined watermark.
    """
    pairs = [(one, i < joined) for channels, joined in sides for i, one in enumerate(channels)]
    return Channels(
        np.array([channel.watermark_ms for channel, _ in pairs], dtype=np.int64),
        np.array([channel.active and has_joined for channel, has_joined in pairs], dtype=bool),
        np.array([channel.been_idle for channel, _ in pairs], dtype=bool),
        combined_ms,
    )


def with_status(channel: Channel, combined: Channels, number: int) -> Channel:
    """A channel with the watermark and the status that a combiner has for it."""
    return replace(
        channel,
        watermark_ms=int(combined.watermark_ms[number]),
        active=bool(combined.active[number]),
        been_idle=bool(combined.been_idle[number]),
    )


def _newcomers(known: Sequence[Channel], first: pd.DataFrame) -> list[Channel]:
    """The channels that have their first record of all, by its position and then by name."""
    names = {channel.name for channel in known}
    rows = sorted(
        (int(instant), int(sequence), int(ts), str(name))
        for name, instant, sequence, ts in zip(
            first["channel"], first["instant"], first["sequence"], first["ts_ms"], strict=True
        )
        if name not in names
    )
    return [Channel(name, joined=instant) for instant, _, _, name in rows]
