"""The watermarks of source partitions (channels), and their combination.

A generator *offers* a watermark: the partition emits it unless it is not above the last one. A
*probe* is a call of the generator's `onPeriodicEmit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference.generators import Generator, IdlenessTimer, generator_of
from strandline.reference.records import Record
from strandline.reference.valve import Signal, StatusWatermarkValve
from strandline.spec.watermark import Watermark


class Partition:
    """A source partition: its generator, and the timer that decides its idleness."""

    def __init__(self, watermark: Watermark) -> None:
        """Start without a record, with a fresh generator of a strategy."""
        self._generator: Generator = generator_of(watermark)
        idleness_ms = watermark.idleness if watermark.idleness_in_effect else None
        self._timer = None if idleness_ms is None else IdlenessTimer(idleness_ms)
        self._marked_idle = False
        self._at_once_ms: int | None = None
        self._offers_at_once = watermark.emission_interval_ms is None
        self._finished = False
        self._end_was_seen = False

    def on_event(self, record: Record) -> None:
        """Process a record, and keep the largest watermark that it offers at once."""
        if self._timer is not None:
            self._timer.activity()
            self._marked_idle = False
        offer_ms = self._generator.on_event(record)
        if offer_ms is not None:
            highest_ms = MIN_WATERMARK if self._at_once_ms is None else self._at_once_ms
            self._at_once_ms = max(offer_ms, highest_ms)

    @property
    def violations(self) -> int:
        """The number of records below an earlier one, if the generator assumes ascending times."""
        return self._generator.violations

    def finish(self) -> None:
        """End the partition: it offers MAX_WATERMARK from now on."""
        self._finished = True
        if self._offers_at_once:
            self._at_once_ms = MAX_WATERMARK

    def offers(self, now_ms: int, *, probe: bool) -> list[int]:
        """The watermarks, in ms, offered since the last call, at most two.

        They are the largest one that records offered at once, and a probe's.
        """
        at_once_ms, self._at_once_ms = self._at_once_ms, None
        offers = (at_once_ms, self.probe(now_ms) if probe else None)
        return [offer_ms for offer_ms in offers if offer_ms is not None]

    def probe(self, now_ms: int) -> int | None:
        """The watermark in ms that the generator offers, even if the partition is idle; or None."""
        if self._finished:
            self._end_was_seen = True
            return MAX_WATERMARK
        return self._generator.on_periodic_emit(now_ms)

    def tick(self, now_ms: int) -> Signal | None:
        """`idle` if the partition is idle at a tick, else the offer of a probe."""
        if self._timer is not None and self._timer.check_if_idle(now_ms):
            self._marked_idle = True
            return "idle"
        return self.probe(now_ms)

    @property
    def is_settled(self) -> bool:
        """Whether ticks emit nothing new until the next record."""
        if self._finished:
            return self._end_was_seen
        if self._timer is not None:
            return self._marked_idle
        return self._generator.is_settled()


class Combiner(ABC):
    """The partitions of a source, and their combined watermark and status.

    Each iterator that a method returns must be consumed to its end: the windows process each signal
    before the next partition is probed.

    Attributes:
        partitions: the partitions that have joined, by name, in probe order.
    """

    def __init__(self, watermark: Watermark, channels: Iterable[str]) -> None:
        """Start with the declared partitions, each active and without a watermark.

        Args:
            watermark: the strategy of each partition.
            channels: the names of the partitions, in probe order.
        """
        self._watermark = watermark
        self.partitions: dict[str, Partition] = {}
        for channel in channels:
            self._add(channel)

    def _add(self, channel: str) -> None:
        self.partitions[channel] = Partition(self._watermark)

    @abstractmethod
    def join(self, channel: str) -> Iterator[Signal]:
        """Add a partition that is discovered by its first record."""

    def on_event(self, record: Record) -> None:
        """Pass a record to its partition's generator; `flush` emits the offered watermark."""
        self.partitions[record.channel].on_event(record)

    def finish(self, channel: str) -> None:
        """End a partition: it offers MAX_WATERMARK, emitted when a record's offer would be."""
        self.partitions[channel].finish()

    @abstractmethod
    def flush(self, active: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Emit the watermarks that the records of an instant offer without waiting for a tick.

        Args:
            active: the partitions with a record at the instant.
            now_ms: the instant.
            probe: whether each active partition is probed, as if a tick came after the instant.
        """

    @abstractmethod
    def tick(self, now_ms: int) -> Iterator[Signal]:
        """Run a tick: probe every partition."""

    @abstractmethod
    def end(self) -> Iterator[Signal]:
        """End the input: MAX_WATERMARK."""

    @property
    def is_settled(self) -> bool:
        """Whether ticks emit nothing new until the next record."""
        return all(partition.is_settled for partition in self.partitions.values())

    @property
    def violations(self) -> int:
        """See `Partition`, for all partitions together."""
        return sum(partition.violations for partition in self.partitions.values())


class ChannelsBehindValve(Combiner):
    """Channels with a watermark operator each, and a valve that combines them.

    Flink: `TimestampsAndWatermarksOperator` for every channel, then `StatusWatermarkValve`.
    """

    def __init__(
        self,
        watermark: Watermark,
        channels: Iterable[str],
        *,
        valve: StatusWatermarkValve | None,
        input_name: str,
    ) -> None:
        """Start with the declared channels; see `Combiner`.

        Args:
            watermark: the strategy of each channel.
            channels: the names of the channels.
            valve: a valve shared with another input; None: its own valve.
            input_name: the prefix of the channels' names in the valve.
        """
        self._emitted_ms: dict[str, int] = {}
        self._valve = valve or StatusWatermarkValve()
        self._input_name = input_name
        super().__init__(watermark, channels)

    def _add(self, channel: str) -> None:
        super()._add(channel)
        self._emitted_ms[channel] = MIN_WATERMARK
        self._valve.join(self._input_name + channel)

    def join(self, channel: str) -> Iterator[Signal]:
        """Add a channel, active and without a watermark: it holds the combined watermark back."""
        was_idle = self._valve.idle
        self._add(channel)
        if was_idle:
            yield "active"

    def flush(self, active: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Emit the offers of an instant's records, channel by channel."""
        for channel, partition in self.partitions.items():
            if channel in active:
                for offer_ms in partition.offers(now_ms, probe=probe):
                    yield from self._offer(channel, offer_ms)

    def tick(self, now_ms: int) -> Iterator[Signal]:
        """Probe the channels in order; the valve processes each offer before the next probe."""
        for channel, partition in self.partitions.items():
            yield from self._offer(channel, partition.tick(now_ms))

    def end(self) -> Iterator[Signal]:
        """Give every channel, in order, the watermark of the end of the input."""
        for channel in self.partitions:
            yield from self._offer(channel, MAX_WATERMARK)

    def _offer(self, channel: str, offer: Signal | None) -> Iterator[Signal]:
        if isinstance(offer, int):
            if offer <= self._emitted_ms[channel]:
                return  # Flink: `WatermarkEmitter` swallows it, and an idle channel stays idle
            self._emitted_ms[channel] = offer
        if offer is not None:
            yield from self._valve.take(self._input_name + channel, offer)


def newcomers(instant: Iterable[Record], known: Collection[str]) -> list[str]:
    """The channels whose first record is in an instant, by its event time, then by name."""
    first: dict[str, int] = {}
    for record in instant:
        first.setdefault(record.channel, record.ts_ms)
    new = [channel for channel in first if channel not in known]
    return sorted(new, key=lambda channel: (first[channel], channel))
