"""When a window fires, when it is dropped, and which record is late for it."""

from __future__ import annotations

MIN_WATERMARK = -(2**63)
"""No watermark yet. Flink: `Watermark.UNINITIALIZED`, Long.MIN_VALUE."""
MAX_WATERMARK = 2**63 - 1
"""The end of the input. Flink: `Watermark.MAX_WATERMARK`."""


def saturating_add(time_ms: int, lateness_ms: int) -> int:
    """`time + lateness`, or MAX_WATERMARK where that overflows 64 bits. Flink: `cleanupTime`."""
    return min(time_ms + lateness_ms, MAX_WATERMARK)


def wrapping_add(time_ms: int, lateness_ms: int) -> int:
    """`time + lateness` as Java adds two longs: past the largest it goes on from the smallest."""
    return (time_ms + lateness_ms - MIN_WATERMARK) % 2**64 + MIN_WATERMARK


def cleanup_time(max_timestamp_ms: int, *, allowed_lateness_ms: int) -> int:
    """The watermark at which the state of a window is removed; MAX_WATERMARK means never.

    Flink: `WindowOperator#cleanupTime`.
    """
    return saturating_add(max_timestamp_ms, allowed_lateness_ms)


def is_window_fired(max_timestamp_ms: int, *, watermark_ms: int) -> bool:
    """Whether the watermark has reached the window's last millisecond. Equality fires."""
    return max_timestamp_ms <= watermark_ms


def is_window_late(max_timestamp_ms: int, *, allowed_lateness_ms: int, watermark_ms: int) -> bool:
    """Whether Flink has dropped the window by this watermark: its records are late.

    Equality is late. Flink: `WindowOperator#isWindowLate`.
    """
    return cleanup_time(max_timestamp_ms, allowed_lateness_ms=allowed_lateness_ms) <= watermark_ms


def last_late_end(watermark_ms: int, *, allowed_lateness_ms: int) -> int:
    """The latest end, in ms, of a window that is late by this watermark: see `is_window_late`."""
    return watermark_ms - allowed_lateness_ms + 1


def late_by(max_timestamp_ms: int, *, allowed_lateness_ms: int, watermark_ms: int) -> int:
    """The extra allowed lateness in ms that would have saved a late record; at least 1."""
    return watermark_ms - max_timestamp_ms - allowed_lateness_ms + 1
