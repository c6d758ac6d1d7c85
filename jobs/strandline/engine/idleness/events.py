"""Events of a source's channels, with their positions: the input of `Valve` and `Splits`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.engine.idleness.state import StatusChange
from strandline.model.lateness import MIN_WATERMARK

JOIN, OFFER, IDLE = 0, 1, 2
Longs = npt.NDArray[Any]


@dataclass(frozen=True)
class Events:
    """Events of channels, as columns, in order of `seen_from` and `rank`.

    The place of an event is its index.

    Attributes:
        seen_from: the first instant from which the event is visible.
        rank: the order at one instant.
        channel: the number of the channel.
        kind: JOIN: the channel has its first record; OFFER: it emits a watermark; IDLE: it goes
            idle.
        value: the emitted watermark, in ms.
    """

    seen_from: Longs
    rank: Longs
    channel: Longs
    kind: Longs
    value: Longs

    @classmethod
    def of(
        cls, seen_from: Longs, rank: int, channel: int, kind: int, value: Longs | None = None
    ) -> Events:
        """Events of one kind of one channel."""
        length = len(seen_from)
        return cls(
            seen_from,
            np.full(length, rank),
            np.full(length, channel),
            np.full(length, kind, dtype=np.int8),
            np.full(length, MIN_WATERMARK) if value is None else value,
        )

    @classmethod
    def concatenated(cls, parts: Sequence[Events]) -> Events:
        """The union of events, in order of position."""
        every = [cls.of(np.zeros(0, dtype=np.int64), 0, 0, JOIN), *parts]
        names = [column.name for column in fields(cls)]
        events = cls(*(np.concatenate([getattr(p, name) for p in every]) for name in names))
        return events.where(events.order)

    def __len__(self) -> int:
        """The number of events."""
        return len(self.kind)

    def where(self, chosen: Longs) -> Events:
        """The events at some places, or where a mask is true."""
        return Events(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def change(self, place: int, *, idle: bool) -> StatusChange:
        """The status change of the source as a whole at the event at a place."""
        return StatusChange(int(self.seen_from[place]), int(self.rank[place]), idle=idle)

    def places_until(self, instant: int) -> int:
        """The number of events that are visible from an instant or earlier."""
        return int(np.searchsorted(self.seen_from, instant, side="right"))

    def offers_of(self, channel: int) -> Longs:
        """The places of a channel's offers."""
        return np.flatnonzero((self.kind == OFFER) & (self.channel == channel))

    def without_swallowed_offers(self, watermarks_ms: Sequence[int]) -> Events:
        """The events without watermarks that are not above the earlier ones of their channel.

        Such a watermark is not emitted: an idle channel stays idle. Flink: `WatermarkEmitter`.

        Args:
            watermarks_ms: the watermark of each channel before the events.
        """
        kept = self.kind != OFFER
        for channel, watermark_ms in enumerate(watermarks_ms):
            own = self.offers_of(channel)
            offered = self.value[own]
            largest = np.maximum.accumulate(np.append(watermark_ms, offered))
            kept[own] = offered > largest[:-1]
        return self.where(kept)

    @property
    def order(self) -> Longs:
        """The indices that sort the events by position: by `seen_from`, then by `rank`."""
        if self.seen_from.dtype != object:
            return np.lexsort((self.rank, self.seen_from))
        keys = list(zip(self.seen_from.tolist(), self.rank.tolist(), strict=True))
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    @cached_property
    def is_last_at_position(self) -> npt.NDArray[np.bool_]:
        """Whether each event is the last one at its position."""
        same = (self.seen_from[1:] == self.seen_from[:-1]) & (self.rank[1:] == self.rank[:-1])
        return np.append(~same.astype(bool), True)[: len(self.kind)]
