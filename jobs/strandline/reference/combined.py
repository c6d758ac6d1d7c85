"""How the watermarks of the splits of a source, or of two inputs, become one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from strandline.model.lateness import MIN_WATERMARK


@dataclass(slots=True)
class PartialWatermark:
    """What one part says. Flink: `CombinedWatermarkStatus.PartialWatermark`."""

    watermark_ms: int = MIN_WATERMARK
    idle: bool = False

    def set_watermark(self, watermark_ms: int) -> bool:
        """Whether an offer is higher; any ends idleness, also one that is not."""
        self.idle = False
        higher = watermark_ms > self.watermark_ms
        self.watermark_ms = max(watermark_ms, self.watermark_ms)
        return higher


class CombinedWatermark:
    """The minimum over the parts that are not idle, or the maximum if all are; it never falls.

    Unlike behind a valve, a part that comes back counts at once, also when it is behind.
    Flink: `CombinedWatermarkStatus`; 2.2 lets the maximum through if all are idle.
    """

    def __init__(self) -> None:
        """Start without a watermark."""
        self.watermark_ms = MIN_WATERMARK

    def update(self, parts: Collection[PartialWatermark]) -> int | None:
        """The combined watermark if it advances; None if it stays."""
        active = [part.watermark_ms for part in parts if not part.idle]
        everything = [part.watermark_ms for part in parts]
        combined_ms = min(active) if active else max(everything, default=MIN_WATERMARK)
        if combined_ms <= self.watermark_ms:
            return None
        self.watermark_ms = combined_ms
        return combined_ms
