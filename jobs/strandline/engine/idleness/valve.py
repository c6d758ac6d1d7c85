"""Combines the events of several channels into one watermark, with arrays of many events at once.

This is Flink's `StatusWatermarkValve`, and the combination of a source's splits. Between two
changes of status the combined watermark is a running minimum of running maxima.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.engine.idleness.events import IDLE, JOIN, OFFER, Events
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK

_SHORT = 8
"""The number of events below which a loop is faster than arrays."""
_FIRST_CHUNK = 64  # events of a batch after a change of status; doubled while none follows
_MOST_VALUES = 4_000_000  # of one array: events × channels
Longs = npt.NDArray[Any]
Advances = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""Pairs of the indices of events at which the combined watermark advances, and its values in ms."""


@dataclass
class Channels:
    """The state of the channels and the combined watermark; `run` updates it in place.

    Attributes:
        watermark_ms: the watermark of each channel.
        active: whether each channel has joined and is not idle.
        been_idle: whether each channel has ever been idle.
        combined_ms: the combined watermark.
    """

    watermark_ms: npt.NDArray[np.int64]
    active: npt.NDArray[np.bool_]
    been_idle: npt.NDArray[np.bool_]
    combined_ms: int = MIN_WATERMARK


class Valve:
    """The minimum over the aligned channels. Flink: `StatusWatermarkValve`.

    A channel is aligned if it is active and its watermark is not below the combined one. A channel
    that has never been idle is aligned from the beginning, and holds the others back.
    """

    def __init__(self, channels: Channels) -> None:
        """Start with the current state of the channels."""
        self.channels = channels
        self.changes: list[tuple[int, bool]] = []

    def run(self, events: Events) -> Advances:
        """Process events; each watermark must be higher than the last one of its channel.

        `changes` collects (index, is idle): the events at which all channels became idle, or one
        became active again.
        """
        advances: Advances = []
        start, chunk = 0, _FIRST_CHUNK
        most = max(_FIRST_CHUNK, _MOST_VALUES // max(1, len(self.channels.active)))
        while start < len(events):
            end = min(start + chunk, len(events))
            change = self._first_change(events, start, end)
            if change > start:
                start = self._batch(events, start, change, advances)
            else:
                self._single(events, start, advances)
                start += 1
            chunk = min(chunk * 2, most) if change == end else _FIRST_CHUNK
        return advances

    def end(self, dropped: Collection[int] = ()) -> Iterator[tuple[int, int]]:
        """The (channel, combined watermark) of each advance that the end of the input would cause.

        Each joined channel offers MAX_WATERMARK, except `dropped` ones; no state is changed.
        """
        at = self.channels
        copy = Valve(
            Channels(at.watermark_ms.copy(), at.active.copy(), at.been_idle, at.combined_ms)
        )
        joined = np.flatnonzero(at.active | at.been_idle).tolist()
        for channel in (channel for channel in joined if channel not in dropped):
            advances: Advances = []
            copy._offer(0, channel, MAX_WATERMARK, advances)
            for _, values in advances:
                yield channel, int(values[0])

    def _first_change(self, events: Events, start: int, end: int) -> int:
        """The index of the first event that changes a channel's status; `end`: there is none."""
        active = self.channels.active[events.channel[start:end]]
        changes = np.flatnonzero(np.where(events.kind[start:end] == IDLE, active, ~active))
        return start + int(changes[0]) if len(changes) else end

    def _batch(self, events: Events, start: int, end: int, advances: Advances) -> int:
        """Process watermarks until a channel becomes aligned; the index of the next event."""
        at = self.channels
        if end - start < _SHORT:
            for place in range(start, end):
                self._single(events, place, advances)
            return end
        active = np.flatnonzero(at.active)
        if not len(active):
            return end
        offers = _Offers.of(events, start, end, active)
        own = offers.watermarks(at.watermark_ms[active])
        aligned = (at.watermark_ms[active] >= at.combined_ms) | ~at.been_idle[active]
        combined = np.full(end - start, at.combined_ms, dtype=np.int64)
        if aligned.any():
            combined = np.maximum(own[:, aligned].min(axis=1), combined)
        before = _before_each(combined, at.combined_ms)
        catches_up = ~aligned[offers.column] & (offers.value >= before[offers.place])
        # from there on another channel is aligned: `combined` is valid only before it
        until = int(np.min(offers.place[catches_up], initial=end - start))
        if until:
            advances.append(_advances_in(start, combined[:until], before[:until]))
            at.watermark_ms[active] = own[until - 1]
            at.combined_ms = int(combined[until - 1])
        if start + until == end:
            return end
        self._single(events, start + until, advances)
        return start + until + 1

    def _single(self, events: Events, place: int, advances: Advances) -> None:
        was_idle = self._all_idle
        self._apply(events, place, advances)
        if self._all_idle != was_idle:
            self.changes.append((place, not was_idle))

    @property
    def _all_idle(self) -> bool:
        """Whether there are channels, and none is active."""
        return bool(self.channels.been_idle.any()) and not self.channels.active.any()

    def _apply(self, events: Events, place: int, advances: Advances) -> None:
        channel, kind = int(events.channel[place]), int(events.kind[place])
        if kind == JOIN:
            self.channels.active[channel] = True
        elif kind == OFFER:
            self._offer(place, channel, int(events.value[place]), advances)
        else:
            self._idle(place, channel, advances)

    def _offer(self, place: int, channel: int, watermark_ms: int, advances: Advances) -> None:
        at = self.channels
        at.active[channel] = True
        at.watermark_ms[channel] = watermark_ms
        self._advance_to_least_aligned(place, advances)

    def _idle(self, place: int, channel: int, advances: Advances) -> None:
        """Mark a channel idle.

        If no other is active, the largest watermark is emitted, provided that the channel's
        watermark was the combined one.
        """
        at = self.channels
        if not at.active[channel]:
            return
        at.active[channel], at.been_idle[channel] = False, True
        if at.watermark_ms[channel] != at.combined_ms:
            return
        if at.active.any():
            self._advance_to_least_aligned(place, advances)
        else:
            self._advance(place, int(at.watermark_ms.max()), advances)

    def _advance_to_least_aligned(self, place: int, advances: Advances) -> None:
        at = self.channels
        aligned = at.active & ((at.watermark_ms >= at.combined_ms) | ~at.been_idle)
        if aligned.any():
            self._advance(place, int(at.watermark_ms[aligned].min()), advances)

    def _advance(self, place: int, watermark_ms: int, advances: Advances) -> None:
        if watermark_ms > self.channels.combined_ms:
            self.channels.combined_ms = watermark_ms
            advances.append((np.array([place]), np.array([watermark_ms])))


class Splits:
    """The combination of the splits of one source. Flink: `WatermarkOutputMultiplexer`.

    The combined watermark is the minimum over the splits that are not idle, or the maximum if all
    are. All events at one position count at once.
    """

    def __init__(self, channels: Channels) -> None:
        """Start with the current state of the splits."""
        self.channels = channels
        self.all_idle_since_advance = False
        self.all_idle_at: list[int] = []

    def run(self, events: Events) -> Advances:
        """Process events; a watermark need not be higher than the last one of its channel."""
        advances: Advances = []
        chunk = max(_FIRST_CHUNK, _MOST_VALUES // max(1, len(self.channels.active)))
        for start in range(0, len(events), chunk):
            self._batch(events, start, min(start + chunk, len(events)), advances)
        return advances

    def _batch(self, events: Events, start: int, end: int, advances: Advances) -> None:
        at = self.channels
        own = _Offers.of(events, start, end, np.arange(len(at.active))).watermarks(at.watermark_ms)
        active = _active_after(events.channel[start:end], events.kind[start:end], at.active)
        all_idle, is_merged = ~active.any(axis=1), events.is_last_at_position[start:end]
        least_active = np.where(active, own, MAX_WATERMARK).min(axis=1)
        merged = np.where(all_idle, own.max(axis=1), least_active)
        merged[~is_merged] = MIN_WATERMARK
        combined = np.maximum(np.maximum.accumulate(merged), at.combined_ms)
        advance = _advances_in(start, combined, _before_each(combined, at.combined_ms))
        advances.append(advance)
        self._note_idle(start + np.flatnonzero(all_idle & is_merged), advance[0])
        at.watermark_ms, at.active = own[-1].copy(), active[-1].copy()
        at.combined_ms = int(combined[-1])

    def _note_idle(self, idle: Longs, advanced: Longs) -> None:
        """Keep the events at which all splits are idle, and whether one follows the last advance.

        Args:
            idle: the indices of these events, of the last batch.
            advanced: the indices of the batch's events at which the watermark advances.
        """
        self.all_idle_at += idle.tolist()
        if len(advanced):
            self.all_idle_since_advance = bool(len(idle)) and bool(idle[-1] >= advanced[-1])
        elif len(idle):
            self.all_idle_since_advance = True


@dataclass(frozen=True)
class _Offers:
    """The watermarks that a batch of events offers.

    Attributes:
        events: the number of events of the batch.
        place: for each offer, the index of its event in the batch.
        column: for each offer, the index of its channel among the channels of the batch.
        value: for each offer, the watermark in ms.
    """

    events: int
    place: Longs
    column: Longs
    value: Longs

    @classmethod
    def of(cls, events: Events, start: int, end: int, channels: Longs) -> _Offers:
        """The offers of the events from `start` to `end`; `channels`: their channels, ascending."""
        place = np.flatnonzero(events.kind[start:end] == OFFER)
        column = np.searchsorted(channels, events.channel[start:end][place])
        return cls(end - start, place, column, events.value[start:end][place])

    def watermarks(self, before: Longs) -> Longs:
        """The watermark of each channel (a column) after each event (a row): running maxima.

        `before`: the watermarks of the channels before the first event.
        """
        own = np.full((self.events, len(before)), MIN_WATERMARK, dtype=np.int64)
        own[self.place, self.column] = self.value
        own[0] = np.maximum(own[0], before)
        return np.maximum.accumulate(own, axis=0)


def _advances_in(start: int, combined: Longs, before: Longs) -> tuple[Longs, Longs]:
    """The advances in a batch whose first event has the index `start`: see `Advances`."""
    advanced = np.flatnonzero(combined > before)
    return start + advanced, combined[advanced]


def _active_after(channel: Longs, kind: Longs, before: npt.NDArray[np.bool_]) -> Longs:
    """Whether each channel (a column) is active after each event (a row), by its last event."""
    rows = np.arange(len(kind))
    last = np.full((len(kind), len(before)), -1, dtype=np.int64)
    last[rows, channel] = rows
    np.maximum.accumulate(last, axis=0, out=last)
    return np.where(last >= 0, kind[last] != IDLE, before)


def _before_each(combined: Longs, first_ms: int) -> Longs:
    """The combined watermark just before each event."""
    return np.concatenate([[first_ms], combined[:-1]])
