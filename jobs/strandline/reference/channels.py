"""The sources of watermarks: source partitions, and how theirs are combined."""

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
        """Start without a record."""
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
        """The number of records that broke the order that the generator assumes."""
        return self._generator.violations

    def finish(self) -> None:
        """Offer MAX_WATERMARK from now on."""
        self._finished = True
        if self._offers_at_once:
            self._at_once_ms = MAX_WATERMARK

    def offers(self, now_ms: int, *, probe: bool) -> list[int]:
        """The largest watermark offered at once since the last call, and that of a probe."""
        at_once_ms, self._at_once_ms = self._at_once_ms, None
        offers = (at_once_ms, self.probe(now_ms) if probe else None)
        return [offer_ms for offer_ms in offers if offer_ms is not None]

    def probe(self, now_ms: int) -> int | None:
        """The generator's offer, regardless of idleness."""
        if self._finished:
            self._end_was_seen = True
            return MAX_WATERMARK
        return self._generator.on_periodic_emit(now_ms)

    def tick(self, now_ms: int) -> Signal | None:
        """`idle` if it is, else the offer of a probe."""
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

    Generators must be consumed to their end: the windows process each signal before the next
    partition is probed.

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
        """Add a discovered partition."""

    def on_event(self, record: Record) -> None:
        """Pass a record to its generator; nothing becomes visible before `flush`."""
        self.partitions[record.channel].on_event(record)

    def finish(self, channel: str) -> None:
        """End a partition: from now on it offers MAX_WATERMARK, as its records would."""
        self.partitions[channel].finish()

    @abstractmethod
    def flush(self, active: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Emit the candidates of an instant's records that are visible at once.

        `probe`: with per-record emission, the partitions with records are probed, too.
        """

    @abstractmethod
    def tick(self, now_ms: int) -> Iterator[Signal]:
        """Probe every partition."""

    @abstractmethod
    def end(self) -> Iterator[Signal]:
        """End the input: MAX_WATERMARK."""

    @property
    def is_settled(self) -> bool:
        """Whether ticks emit nothing new until the next record."""
        return all(partition.is_settled for partition in self.partitions.values())

    @property
    def violations(self) -> int:
        """The number of records that broke an ascending order that their generator assumes."""
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
            channels: their names.
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
        """Probe the channels in turn; each offer passes the valve before the next probe."""
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
