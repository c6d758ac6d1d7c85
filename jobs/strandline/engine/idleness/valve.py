"""How the events of several channels become one watermark, in batches of arrays.

The set form of `StatusWatermarkValve` and of the combiner of a source's splits: between two changes
of status the combined watermark is a running minimum of running maxima.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK

JOIN, RAISE, IDLE = 0, 1, 2
_SHORT = 8
"""Below so many events, arrays cost more than they save."""
_FIRST_CHUNK = 64
_MOST_VALUES = 4_000_000
Longs = npt.NDArray[Any]
Advances = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""Where among the events the combined watermark advances, and to which value."""


@dataclass(frozen=True)
class Events:
    """What happens to the channels, in order.

    Attributes:
        channel: the number of the channel.
        kind: JOIN; RAISE: it offers a watermark; IDLE: it is judged idle.
        value: the watermark offered.
        last_of_moment: whether no other event stands at the same moment after it.
    """

    channel: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    value: npt.NDArray[np.int64]
    last_of_moment: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.kind)


@dataclass
class Channels:
    """Where the channels stand, and the combined watermark; `run` moves them on.

    Attributes:
        watermark_ms: of each channel.
        active: whether it takes part: it has joined, and is not idle.
        been_idle: whether it has ever been idle.
        combined_ms: the combined watermark.
    """

    watermark_ms: npt.NDArray[np.int64]
    active: npt.NDArray[np.bool_]
    been_idle: npt.NDArray[np.bool_]
    combined_ms: int = MIN_WATERMARK


class Valve:
    """Flink: `StatusWatermarkValve`.

    A channel is aligned if it is active and not behind the combined watermark; one that has never
    been idle is aligned from the beginning, and holds the others back.
    """

    def __init__(self, channels: Channels) -> None:
        """Begin where the channels stand."""
        self.channels = channels
        self.changes: list[tuple[int, bool]] = []

    def run(self, events: Events) -> Advances:
        """Take the events in, of which each raise is higher than the channel's last.

        Where among them all channels are idle, or no longer, is kept in `changes`.
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
        """Give every channel that has joined the last watermark: (channel, combined) of advances.

        The channels are left as they are. The end of some may be `dropped`.
        """
        at = self.channels
        copy = Valve(
            Channels(at.watermark_ms.copy(), at.active.copy(), at.been_idle, at.combined_ms)
        )
        there = np.flatnonzero(at.active | at.been_idle).tolist()
        for channel in (channel for channel in there if channel not in dropped):
            advances: Advances = []
            copy._raise(0, channel, MAX_WATERMARK, advances)
            for _, values in advances:
                yield channel, int(values[0])

    def _first_change(self, events: Events, start: int, end: int) -> int:
        """The first event that changes a channel's status."""
        active = self.channels.active[events.channel[start:end]]
        changes = np.flatnonzero(np.where(events.kind[start:end] == IDLE, active, ~active))
        return start + int(changes[0]) if len(changes) else end

    def _batch(self, events: Events, start: int, end: int, advances: Advances) -> int:
        """Take in raises of active channels; up to where one that was behind has caught up."""
        at = self.channels
        if end - start < _SHORT:
            for i in range(start, end):
                self._single(events, i, advances)
            return end
        numbers = np.flatnonzero(at.active)
        if not len(numbers):
            return end
        offered, kinds = events.value[start:end], events.kind[start:end]
        column = np.searchsorted(numbers, events.channel[start:end])
        raised = np.flatnonzero(kinds == RAISE)
        own = np.full((end - start, len(numbers)), MIN_WATERMARK, dtype=np.int64)
        own[raised, column[raised]] = offered[raised]
        own[0] = np.maximum(own[0], at.watermark_ms[numbers])
        np.maximum.accumulate(own, axis=0, out=own)
        aligned = (at.watermark_ms[numbers] >= at.combined_ms) | ~at.been_idle[numbers]
        combined = np.full(end - start, at.combined_ms, dtype=np.int64)
        if aligned.any():
            np.maximum(own[:, aligned].min(axis=1), combined, out=combined)
        before = np.concatenate([[at.combined_ms], combined[:-1]])
        catches_up = np.zeros(end - start, dtype=bool)
        catches_up[raised] = ~aligned[column[raised]] & (offered[raised] >= before[raised])
        length = int(np.argmax(catches_up)) if catches_up.any() else end - start
        if length:
            advanced = np.flatnonzero(combined[:length] > before[:length])
            advances.append((start + advanced, combined[advanced]))
            at.watermark_ms[numbers] = own[length - 1]
            at.combined_ms = int(combined[length - 1])
        if length < end - start:
            self._single(events, start + length, advances)
            return start + length + 1
        return end

    def _single(self, events: Events, place: int, advances: Advances) -> None:
        was_idle = self._all_idle
        self._take(events, place, advances)
        if self._all_idle != was_idle:
            self.changes.append((place, not was_idle))

    @property
    def _all_idle(self) -> bool:
        """Whether there are channels, and none takes part."""
        return bool(self.channels.been_idle.any()) and not self.channels.active.any()

    def _take(self, events: Events, place: int, advances: Advances) -> None:
        channel, kind = int(events.channel[place]), int(events.kind[place])
        if kind == JOIN:
            self.channels.active[channel] = True
        elif kind == RAISE:
            self._raise(place, channel, int(events.value[place]), advances)
        else:
            self._idle(place, channel, advances)

    def _raise(self, place: int, channel: int, watermark_ms: int, advances: Advances) -> None:
        at = self.channels
        at.active[channel] = True
        at.watermark_ms[channel] = watermark_ms
        self._advance_to_least_aligned(place, advances)

    def _idle(self, place: int, channel: int, advances: Advances) -> None:
        """The last channel to go idle lets the largest through, if it stood at the combined one."""
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
    """Splits of one source. Flink: `WatermarkOutputMultiplexer`.

    The minimum over the splits that are not idle, the maximum if all are; all of a moment at once.
    """

    def __init__(self, channels: Channels) -> None:
        """Begin where the splits stand."""
        self.channels = channels
        self.all_idle_since_advance = False
        self.all_idle_at: list[int] = []

    def run(self, events: Events) -> Advances:
        """Take the events in, whose offers need not be higher than the last."""
        advances: Advances = []
        chunk = max(_FIRST_CHUNK, _MOST_VALUES // max(1, len(self.channels.active)))
        for start in range(0, len(events), chunk):
            self._batch(events, start, min(start + chunk, len(events)), advances)
        return advances

    def _batch(self, events: Events, start: int, end: int, advances: Advances) -> None:
        at, length = self.channels, end - start
        channel, kind = events.channel[start:end], events.kind[start:end]
        rows = np.arange(length)
        last = np.full((length, len(at.active)), -1, dtype=np.int64)
        last[rows, channel] = rows
        np.maximum.accumulate(last, axis=0, out=last)
        active = np.where(last >= 0, kind[last] != IDLE, at.active)
        own = np.full((length, len(at.active)), MIN_WATERMARK, dtype=np.int64)
        offers = np.flatnonzero(kind == RAISE)
        own[offers, channel[offers]] = events.value[start:end][offers]
        own[0] = np.maximum(own[0], at.watermark_ms)
        np.maximum.accumulate(own, axis=0, out=own)
        none = ~active.any(axis=1)
        least = np.where(active, own, MAX_WATERMARK).min(axis=1)
        merged = np.where(none, own.max(axis=1), least)
        merged[~events.last_of_moment[start:end]] = MIN_WATERMARK
        combined = np.maximum(np.maximum.accumulate(merged), at.combined_ms)
        advanced = np.flatnonzero(combined > np.concatenate([[at.combined_ms], combined[:-1]]))
        advances.append((start + advanced, combined[advanced]))
        idle = np.flatnonzero(none & events.last_of_moment[start:end])
        self.all_idle_at += (start + idle).tolist()
        if len(advanced):
            self.all_idle_since_advance = bool(len(idle)) and bool(idle[-1] >= advanced[-1])
        elif len(idle):
            self.all_idle_since_advance = True
        at.watermark_ms, at.active = own[-1].copy(), active[-1].copy()
        at.combined_ms = int(combined[-1])
