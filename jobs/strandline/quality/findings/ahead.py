"""`watermark_ahead`: whether the watermark lies ahead of the clock, and which record raised it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model.intervals import HOUR_MS, text_of
from strandline.quality.figures import duration
from strandline.quality.findings.check import BY_QUALITY, Check

_BOUNDS_MS = (HOUR_MS, 60_000, 1_000)
"""What `max_ahead` is proposed to be: the largest of these that the record goes beyond."""


@dataclass(frozen=True)
class Raised:
    """The record whose event time raised the watermark to where it is.

    Attributes:
        ts_ms: its event time.
        arrival_ms: its arrival.
        channel: its channel; empty: the only one.
        side: its source, among two.
    """

    ts_ms: int
    arrival_ms: int
    channel: str
    side: str = ""

    @property
    def max_ahead_ms(self) -> int:
        """A bound that the record goes beyond."""
        ahead_ms = self.ts_ms - self.arrival_ms
        return next((bound for bound in _BOUNDS_MS if bound < ahead_ms), 0)

    @property
    def max_ahead(self) -> str:
        """The key of the pipeline's file, and the bound: `source.max_ahead: 1h`."""
        bound = duration(self.max_ahead_ms).replace("0s", "0ms").replace(" ", "")
        return f"{f'sources.{self.side}' if self.side else 'source'}.max_ahead: {bound}"

    def __str__(self) -> str:
        """`the record of channel b that arrived at … with the event time …, 14d ahead`."""
        of_side = f" of {self.side}" if self.side else ""
        of_channel = f" of channel {self.channel}" if self.channel else ""
        return (
            f"the record{of_channel}{of_side} that arrived at {text_of(self.arrival_ms)} with the "
            f"event time {text_of(self.ts_ms)}, {duration(self.ts_ms - self.arrival_ms)} ahead"
        )


def raised_in_words(raised: Sequence[Raised], late: int) -> str:
    """The records, and what `max_ahead` would have spared.

    Args:
        raised: one, or of two sources one of each that is ahead.
        late: the late records in quarantine that came behind a watermark ahead of the clock.
    """
    bounds = " and ".join(one.max_ahead for one in raised)
    them = "it" if len(raised) == 1 else "them"
    spared = f"the {late:,} records that are late behind it" if late else "the windows"
    return (
        f"raised by {', and by '.join(map(str, raised))}; {bounds} would have quarantined {them} "
        f"and spared {spared}"
    )


def check_of_watermark(
    asked: str, watermark_ms: int | None, horizon_ms: int, behind: str = ""
) -> Check | None:
    """Whether the watermark is at most at the horizon; None: nobody asks.

    Args:
        asked: `quality.watermark_ahead`.
        watermark_ms: where it stands at the horizon; None: there is none yet.
        horizon_ms: the instant up to which a run knows records.
        behind: what has put it there, in words, where it is ahead (`raised_in_words`).
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    name = "watermark_ahead"
    if watermark_ms is None:
        return Check(name, severity, None, 0, "no watermark yet")
    ahead_ms, at = watermark_ms - horizon_ms, text_of(watermark_ms)
    if ahead_ms <= 0:
        return Check(name, severity, ahead_ms, 0, f"at {at}, not ahead of the horizon")
    ahead = f"at {at}, {duration(ahead_ms)} ahead of the horizon {text_of(horizon_ms)}"
    return Check(name, severity, ahead_ms, 0, f"{ahead}; {behind}" if behind else ahead)
