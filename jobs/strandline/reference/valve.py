"""Combined watermarks: of channels by a `StatusWatermarkValve`, of splits or two inputs without."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from strandline.model.lateness import MIN_WATERMARK

Status = Literal["idle", "active"]
Signal = int | Status
"""The output of a channel, or of all channels combined: a higher watermark in ms, or a status."""


@dataclass(slots=True)
class _Input:
    watermark_ms: int = MIN_WATERMARK
    active: bool = True
    aligned: bool = True


class StatusWatermarkValve:
    """The minimum watermark over the active channels that are aligned; it never decreases.

    An idle channel is excluded. A channel that becomes active again below the valve's watermark is
    not aligned, and excluded until it has caught up. A new channel counts at once, and holds the
    watermark back. Flink: `StatusWatermarkValve`.
    """

    def __init__(self, channels: Iterable[str] = ()) -> None:
        """Start with these channels, all active and without a watermark."""
        self._inputs = {channel: _Input() for channel in channels}
        self.watermark_ms = MIN_WATERMARK

    @property
    def idle(self) -> bool:
        """Whether every channel is idle."""
        return bool(self._inputs) and not any(i.active for i in self._inputs.values())

    def join(self, channel: str) -> None:
        """Add a new channel: active, and without a watermark."""
        self._inputs[channel] = _Input()

    def take(self, channel: str, signal: Signal) -> Iterator[Signal]:
        """Process a signal of a channel, and yield the signals that the valve emits.

        The state changes while they are consumed: consume all of them before the next call.
        """
        was_idle = self.idle
        if signal == "idle":
            combined_ms = self.input_idle(channel)
            if combined_ms is not None:
                yield combined_ms
            if self.idle and not was_idle:
                yield "idle"
            return
        self.input_active(channel)
        if was_idle:
            yield "active"
        if signal != "active":
            combined_ms = self.input_watermark(channel, signal)
            if combined_ms is not None:
                yield combined_ms

    def input_watermark(self, channel: str, watermark_ms: int) -> int | None:
        """The watermark that the valve emits when a channel's own advances; None: it emits none.

        A watermark of an idle channel, or one that is not higher than the channel's last, is
        ignored.
        """
        source = self._inputs[channel]
        if not source.active or watermark_ms <= source.watermark_ms:
            return None
        source.watermark_ms = watermark_ms
        source.aligned = source.aligned or watermark_ms >= self.watermark_ms
        return self._emit_least_aligned()

    def input_idle(self, channel: str) -> int | None:
        """The watermark that the valve emits when a channel goes idle; None: it emits none.

        When the last channel goes idle, the valve emits the largest watermark of all, but only if
        that channel was holding it back.
        """
        source = self._inputs[channel]
        if not source.active:
            return None
        source.active = source.aligned = False
        if source.watermark_ms != self.watermark_ms:
            return None
        if self.idle:
            return self._emit(max(i.watermark_ms for i in self._inputs.values()))
        return self._emit_least_aligned()

    def input_active(self, channel: str) -> None:
        """Mark a channel active; it is aligned only if it is not below the valve's watermark."""
        source = self._inputs[channel]
        if not source.active:
            source.active = True
            source.aligned = source.watermark_ms >= self.watermark_ms

    def _emit_least_aligned(self) -> int | None:
        aligned = [i.watermark_ms for i in self._inputs.values() if i.aligned]
        return self._emit(min(aligned)) if aligned else None

    def _emit(self, watermark_ms: int) -> int | None:
        if watermark_ms <= self.watermark_ms:
            return None
        self.watermark_ms = watermark_ms
        return watermark_ms


@dataclass(slots=True)
class PartialWatermark:
    """The watermark and status of one part. Flink: `CombinedWatermarkStatus.PartialWatermark`."""

    watermark_ms: int = MIN_WATERMARK
    idle: bool = False

    def set_watermark(self, watermark_ms: int) -> bool:
        """Set a watermark, which ends idleness; return whether it is higher than before."""
        self.idle = False
        higher = watermark_ms > self.watermark_ms
        self.watermark_ms = max(watermark_ms, self.watermark_ms)
        return higher


class CombinedWatermark:
    """The minimum over the parts that are not idle, or the maximum if all are; never decreasing.

    Unlike at a valve, a part that becomes active counts at once, even if its watermark is lower
    than the combined one. Flink 2.2: `CombinedWatermarkStatus`.
    """

    def __init__(self) -> None:
        """Start without a watermark."""
        self.watermark_ms = MIN_WATERMARK

    def update(self, parts: Collection[PartialWatermark]) -> int | None:
        """The combined watermark if it advances; None: it does not."""
        active = [part.watermark_ms for part in parts if not part.idle]
        everything = [part.watermark_ms for part in parts]
        combined_ms = min(active) if active else max(everything, default=MIN_WATERMARK)
        if combined_ms <= self.watermark_ms:
            return None
        self.watermark_ms = combined_ms
        return combined_ms
