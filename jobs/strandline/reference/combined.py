"""Combines the watermarks of a source's splits, or of two inputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from strandline.model.lateness import MIN_WATERMARK


@dataclass(slots=True)
class PartialWatermark:
    """The watermark and status of one part. Flink: `CombinedWatermarkStatus.PartialWatermark`."""

    watermark_ms: int = MIN_WATERMARK
    idle: bool = False

    def set_watermark(self, watermark_ms: int) -> bool:
        """Set a watermark, and whether it is higher than before; any offer ends idleness."""
        self.idle = False
        higher = watermark_ms > self.watermark_ms
        self.watermark_ms = max(watermark_ms, self.watermark_ms)
        return higher


class CombinedWatermark:
    """The minimum over the parts that are not idle, or the maximum if all are; it never falls.

    Unlike at a valve, a part that becomes active counts at once, even if it is behind. Flink:
    `CombinedWatermarkStatus`; 2.2 lets the maximum through if all are idle.
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
