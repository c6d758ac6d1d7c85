"""Splits of one source: no valve, but a combiner that treats idleness differently."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference.channels import Partition, Signal
from strandline.reference.records import Record
from strandline.spec.watermark import Watermark


@dataclass(slots=True)
class _Split:
    partition: Partition
    watermark_ms: int = MIN_WATERMARK
    idle: bool = False

    def set_watermark(self, watermark_ms: int) -> bool:
        """Any offer ends idleness, also one that is not higher. Flink: `PartialWatermark`."""
        self.idle = False
        higher = watermark_ms > self.watermark_ms
        self.watermark_ms = max(watermark_ms, self.watermark_ms)
        return higher


class SplitsOfOneSource:
    """The minimum over the splits that are not idle, or the maximum if all are; it never falls.

    A split that comes back counts at once, also when it is behind. Beside the splits the source
    probes one generator of its own, the *main output*, which never sees a record.
    Flink: `ProgressiveTimestampsAndWatermarks`, `WatermarkOutputMultiplexer`.
    """

    def __init__(self, watermark: Watermark, splits: Iterable[str]) -> None:
        """Start with all splits, active and without a watermark."""
        self._watermark = watermark
        self._splits = {split: _Split(Partition(watermark)) for split in splits}
        self._main = Partition(watermark)
        self._combined_ms = MIN_WATERMARK
        self._emitted_ms = MIN_WATERMARK
        self._idle = False
        self._splits_idle = True  # until something is merged
        self._main_idle = True  # until it has offered something

    def __contains__(self, channel: str) -> bool:
        """Whether a split is known."""
        return channel in self._splits

    def __iter__(self) -> Iterator[str]:
        """The splits in probe order."""
        return iter(self._splits)

    def join(self, channel: str) -> Iterator[Signal]:
        """Take in a discovered split; it holds the watermark until it has caught up."""
        self._splits[channel] = _Split(Partition(self._watermark))
        yield from ()

    def on_event(self, record: Record) -> None:
        """Let the split's generator see a record."""
        self._splits[record.channel].partition.on_event(record)

    def finish(self, channel: str) -> None:
        """End a split."""
        self._splits[channel].partition.finish()

    def flush(self, heard: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Merge what the records of an instant offer at once. Flink: `ImmediateOutput`."""
        higher = False
        for channel, split in self._splits.items():
            if channel in heard:
                offers = [split.partition.taken_at_once()]
                offers += [split.partition.probe(now_ms)] if probe else []
                for offer_ms in offers:
                    if offer_ms is not None and split.set_watermark(offer_ms):
                        higher = higher or offer_ms > self._combined_ms
        if higher:
            yield from self._merge()

    def tick(self, now_ms: int) -> Iterator[Signal]:
        """Probe all splits and merge once, then probe the main output."""
        for split in self._splits.values():
            answer = split.partition.tick(now_ms)
            if answer.idle:
                split.idle = True
            elif answer.watermark_ms is not None:
                split.set_watermark(answer.watermark_ms)
        yield from self._merge()
        main = self._main.tick(now_ms)
        if main.idle:
            self._main_idle = True
            yield from self._mark_idle()
        elif main.watermark_ms is not None:
            self._main_idle = False
            yield from self._emit(main.watermark_ms)

    def end(self) -> Iterator[Signal]:
        """End the input with one MAX_WATERMARK.

        Flink drops it where the source stands at idle: nothing fires then.
        """
        if not self._idle:
            yield from self._emit(MAX_WATERMARK)

    @property
    def violations(self) -> int:
        """How many records came behind an earlier one of their split, where that is counted."""
        return sum(split.partition.violations for split in self._splits.values())

    @property
    def is_settled(self) -> bool:
        """Whether ticks say nothing more until the next record."""
        return self._main.is_settled and all(s.partition.is_settled for s in self._splits.values())

    def _merge(self) -> Iterator[Signal]:
        """Flink: `updateCombinedWatermark`; 2.2 lets the maximum through if all are idle."""
        active = [split.watermark_ms for split in self._splits.values() if not split.idle]
        everything = [split.watermark_ms for split in self._splits.values()]
        merged_ms = min(active) if active else max(everything, default=MIN_WATERMARK)
        if merged_ms > self._combined_ms:
            self._combined_ms = merged_ms
            self._splits_idle = False
            yield from self._emit(merged_ms)
        if not active:
            self._splits_idle = True
            yield from self._mark_idle()

    def _emit(self, watermark_ms: int) -> Iterator[Signal]:
        if watermark_ms <= self._emitted_ms:
            return
        self._emitted_ms = watermark_ms
        if self._idle:
            self._idle = False
            yield "active"
        yield watermark_ms

    def _mark_idle(self) -> Iterator[Signal]:
        if self._splits_idle and self._main_idle and not self._idle:
            self._idle = True
            yield "idle"
