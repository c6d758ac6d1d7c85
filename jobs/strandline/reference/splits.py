"""Splits of one source, combined inside the source, without a valve and by other idleness rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference.channels import Combiner, Partition
from strandline.reference.valve import (
    CombinedWatermark,
    PartialWatermark,
    Signal,
    StatusWatermarkValve,
)
from strandline.spec.watermark import Watermark


class SplitsOfOneSource(Combiner):
    """The combined watermark of all splits, and of the main output without a split.

    Besides the splits the source probes a generator of its own, the *main output*, which never
    receives a record. Flink: `ProgressiveTimestampsAndWatermarks`, `WatermarkOutputMultiplexer`.
    """

    def __init__(
        self,
        watermark: Watermark,
        splits: Iterable[str],
        *,
        valve: StatusWatermarkValve | None,
        input_name: str,
    ) -> None:
        """Start with the known splits; see `Combiner`.

        Args:
            watermark: the strategy of each split.
            splits: the names of the splits.
            valve: a valve shared with another input, of which the source is one channel; None: the
                source is the only input.
            input_name: the name of the source's channel in the valve.
        """
        self._parts: dict[str, PartialWatermark] = {}
        self._valve, self._input_name = valve, input_name
        super().__init__(watermark, splits)
        if valve is not None:
            valve.join(input_name)
        self._main = Partition(watermark)
        self._combined = CombinedWatermark()
        self._emitted_ms = MIN_WATERMARK
        self._idle = False
        self._splits_idle = True  # until something is merged
        self._main_idle = True  # until it has offered something

    def _add(self, channel: str) -> None:
        super()._add(channel)
        self._parts[channel] = PartialWatermark()

    def join(self, channel: str) -> Iterator[Signal]:
        """Add a discovered split; it holds the watermark back until it has caught up."""
        self._add(channel)
        yield from ()

    def flush(self, active: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Merge the offers of an instant's records. Flink: `ImmediateOutput`."""
        higher = False
        for channel, partition in self.partitions.items():
            if channel in active:
                for offer_ms in partition.offers(now_ms, probe=probe):
                    if self._parts[channel].set_watermark(offer_ms):
                        higher = higher or offer_ms > self._combined.watermark_ms
        if higher:
            yield from self._merge()

    def tick(self, now_ms: int) -> Iterator[Signal]:
        """Probe all splits and merge once, then probe the main output."""
        for channel, partition in self.partitions.items():
            offer = partition.tick(now_ms)
            if isinstance(offer, int):
                self._parts[channel].set_watermark(offer)
            elif offer is not None:
                self._parts[channel].idle = True
        yield from self._merge()
        main = self._main.tick(now_ms)
        if isinstance(main, int):
            self._main_idle = False
            yield from self._emit(main)
        elif main is not None:
            self._main_idle = True
            yield from self._mark_idle()

    def end(self) -> Iterator[Signal]:
        """End the input with one MAX_WATERMARK; if the source is idle, Flink drops it.

        Then nothing fires.
        """
        if not self._idle:
            yield from self._emit(MAX_WATERMARK)

    @property
    def is_settled(self) -> bool:
        """See `Combiner`; the main output counts, too."""
        return self._main.is_settled and super().is_settled

    def _merge(self) -> Iterator[Signal]:
        """Combine the splits. Flink: `WatermarkOutputMultiplexer#updateCombinedWatermark`."""
        merged_ms = self._combined.update(self._parts.values())
        if merged_ms is not None:
            self._splits_idle = False
            yield from self._emit(merged_ms)
        if all(part.idle for part in self._parts.values()):
            self._splits_idle = True
            yield from self._mark_idle()

    def _emit(self, watermark_ms: int) -> Iterator[Signal]:
        if watermark_ms <= self._emitted_ms:
            return
        self._emitted_ms = watermark_ms
        if self._idle:
            self._idle = False
            yield from self._signal("active")
        yield from self._signal(watermark_ms)

    def _mark_idle(self) -> Iterator[Signal]:
        if self._splits_idle and self._main_idle and not self._idle:
            self._idle = True
            yield from self._signal("idle")

    def _signal(self, signal: Signal) -> Iterator[Signal]:
        """The signals that the windows receive if the source emits one: through a valve, if any."""
        return (
            iter((signal,)) if self._valve is None else self._valve.take(self._input_name, signal)
        )
