"""Splits of one source, combined without a valve of their own, with other rules of idleness."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference.channels import Partition
from strandline.reference.combined import CombinedWatermark, PartialWatermark
from strandline.reference.records import Record
from strandline.reference.valve import Signal, StatusWatermarkValve
from strandline.spec.watermark import Watermark


@dataclass(slots=True)
class _Split(PartialWatermark):
    partition: Partition = field(kw_only=True)


class SplitsOfOneSource:
    """The combined watermark of all splits, and of the main output without a split.

    Besides the splits the source probes a generator of its own, the *main output*, which never
    receives a record. Flink: `ProgressiveTimestampsAndWatermarks`, `WatermarkOutputMultiplexer`.
    """

    def __init__(
        self,
        watermark: Watermark,
        splits: Iterable[str],
        *,
        valve: StatusWatermarkValve | None = None,
        input_name: str = "",
    ) -> None:
        """Start with all splits, active and without a watermark.

        Args:
            watermark: the strategy of each split.
            splits: their names.
            valve: a valve shared with another input, of which the source is one channel; None: the
                source's signals are those of the input.
            input_name: the name of the source's channel in the valve.
        """
        self._watermark = watermark
        self._valve, self._input_name = valve, input_name
        if valve is not None:
            valve.join(input_name)
        self._splits = {split: _Split(partition=Partition(watermark)) for split in splits}
        self._main = Partition(watermark)
        self._combined = CombinedWatermark()
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
        """Add a discovered split; it holds the watermark back until it has caught up."""
        self._splits[channel] = _Split(partition=Partition(self._watermark))
        yield from ()

    def on_event(self, record: Record) -> None:
        """Pass a record to the split's generator."""
        self._splits[record.channel].partition.on_event(record)

    def finish(self, channel: str) -> None:
        """End a split."""
        self._splits[channel].partition.finish()

    def flush(self, active: Collection[str], now_ms: int, *, probe: bool) -> Iterator[Signal]:
        """Merge the offers of an instant's records. Flink: `ImmediateOutput`."""
        higher = False
        for channel, split in self._splits.items():
            if channel in active:
                offers = [split.partition.offered_at_once()]
                offers += [split.partition.probe(now_ms)] if probe else []
                for offer_ms in offers:
                    if offer_ms is not None and split.set_watermark(offer_ms):
                        higher = higher or offer_ms > self._combined.watermark_ms
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

        Flink drops it if the source is idle: then nothing fires.
        """
        if not self._idle:
            yield from self._emit(MAX_WATERMARK)

    @property
    def violations(self) -> int:
        """The number of records behind an earlier one of their split, if counted."""
        return sum(split.partition.violations for split in self._splits.values())

    @property
    def is_settled(self) -> bool:
        """Whether ticks emit nothing new until the next record."""
        return self._main.is_settled and all(s.partition.is_settled for s in self._splits.values())

    def _merge(self) -> Iterator[Signal]:
        """Flink: `updateCombinedWatermark`."""
        merged_ms = self._combined.update(self._splits.values())
        if merged_ms is not None:
            self._splits_idle = False
            yield from self._emit(merged_ms)
        if all(split.idle for split in self._splits.values()):
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
        """A signal of the source, through the valve if there is one."""
        return (
            iter((signal,)) if self._valve is None else self._valve.take(self._input_name, signal)
        )
