"""`watermark_ahead`: whether the watermark is ahead of the horizon, and which record raised it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model.intervals import HOUR_MS, text_of
from strandline.quality.figures import duration
from strandline.quality.findings.check import BY_QUALITY, Check
from strandline.spec.values import written
from strandline.visible import number_of

_BOUNDS_MS = (HOUR_MS, 60_000, 1_000)
"""The candidates for a proposed `max_ahead`: the largest that the record exceeds is proposed."""
_CLOCKS_DIFFER_MS = HOUR_MS // 4
_FARTHEST_ZONE_MS = 14 * HOUR_MS + _CLOCKS_DIFFER_MS
"""The largest distance, in ms, of a local time from UTC by a clock that is a little fast."""
_LARGER_BOUNDS_MS = (
    3 * HOUR_MS + _CLOCKS_DIFFER_MS,
    6 * HOUR_MS + _CLOCKS_DIFFER_MS,
    _FARTHEST_ZONE_MS,
)
"""The candidates where most records exceed the one of `_BOUNDS_MS`, as of a local time.

They lie between the distances of zones: at one, a fast clock would decide record by record.
"""
CHANNEL_AHEAD_MS = HOUR_MS
"""The distance, in ms, by which one channel's watermark may exceed the horizon: clocks differ."""


@dataclass(frozen=True)
class Raised:
    """The record whose event time raised the watermark to its current value.

    Attributes:
        ts_ms: its event time.
        arrival_ms: its arrival time.
        channel: its channel; empty if there is only one.
        side: its source, if there are two.
        records: the number of well-formed records of its source on its arrival day.
        refused: of each of `bounds_ms`, the number of these records that it would have quarantined.
    """

    ts_ms: int
    arrival_ms: int
    channel: str
    side: str = ""
    records: int = 1
    refused: Sequence[int] = (0,)

    @property
    def bounds_ms(self) -> Sequence[int]:
        """The candidates for `max_ahead`, in ms, ascending: each would have refused the record."""
        ahead_ms = self.ts_ms - self.arrival_ms
        least = next((bound for bound in _BOUNDS_MS if bound < ahead_ms), 0)
        return [least, *(bound for bound in _LARGER_BOUNDS_MS if bound < ahead_ms)]

    @property
    def _proposed(self) -> tuple[int, int]:
        """The least bound, in ms, that most records of the day keep, and the number it refuses.

        If most records exceed each bound, it is the first one.
        """
        counted = [*zip(self.bounds_ms, self.refused, strict=False)]
        few = (one for one in counted if 2 * one[1] <= self.records)
        return next(few, counted[0])

    @property
    def max_ahead_ms(self) -> int:
        """The proposed value of `max_ahead`, in ms, which would have refused the record."""
        return self._proposed[0]

    @property
    def max_ahead(self) -> str:
        """The proposed line of the pipeline's file: `source.max_ahead: 1h`."""
        of_source = f"sources.{self.side}" if self.side else "source"
        return f"{of_source}.max_ahead: {written(self.max_ahead_ms)}"

    @property
    def is_usual(self) -> bool:
        """Whether most records of its day are ahead as well, so that `max_ahead` is no way out."""
        return 2 * self._proposed[1] > self.records

    @property
    def way_out(self) -> str:
        """The proposed `max_ahead` with the number of records that it would have quarantined.

        Where most records are ahead it is a question about their zone, or about their unit if no
        zone is as far ahead.
        """
        of_day = f"{self._proposed[1]:,} of {number_of(self.records, 'record')} of that arrival day"
        if not self.is_usual:
            return f"{self.max_ahead} would have quarantined {of_day}"
        cause = (
            "a local time that is read as UTC? to_utc_timestamp(…, ZONE) in event_time corrects it"
            if self.ts_ms - self.arrival_ms <= _FARTHEST_ZONE_MS
            else "in another unit than it is read in, such as microseconds read as milliseconds?"
        )
        bound = duration(self.max_ahead_ms)
        return f"{of_day} are more than {bound} ahead of their arrival: is the event time {cause}"

    def __str__(self) -> str:
        """`the record of channel b that arrived at … with the event time …, 14d ahead`."""
        of_side = f" of {self.side}" if self.side else ""
        of_channel = f" of channel {self.channel}" if self.channel else ""
        return (
            f"the record{of_channel}{of_side} that arrived at {text_of(self.arrival_ms)} with the "
            f"event time {text_of(self.ts_ms)}, {duration(self.ts_ms - self.arrival_ms)} ahead"
        )


def raised_in_words(raised: Sequence[Raised], late: int) -> str:
    """The records that raised the watermark, the way out, and the late records that it may save.

    Some of the late records may have been late without them, too.

    Args:
        raised: one record, or one for each of two sources whose watermark is ahead.
        late: the number of quarantined records that were late behind a watermark ahead of its time.
    """
    ways_out = "; ".join(one.way_out for one in raised)
    spares = late and not any(one.is_usual for one in raised)
    spared = f", and spared up to {number_of(late, 'record')} late behind it" if spares else ""
    return f"raised by {', and by '.join(map(str, raised))}; {ways_out}{spared}"


def check_of_one_channel(asked: str, raised: Raised, horizon_ms: int) -> Check | None:
    """The failed check of a channel whose watermark is far ahead, while the combined one is not.

    The channel holds no window back any more, so its own records may be late behind the others.

    Args:
        asked: the value of `quality.watermark_ahead`; `allow` switches it off.
        raised: the record that raised the channel's watermark.
        horizon_ms: the instant up to which the run has read arrivals.
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    sentence = (
        f"the watermark of one channel is ahead of the data cut-off {text_of(horizon_ms)}, so that "
        f"the channel holds no window back: raised by {raised}; {raised.way_out}"
    )
    return Check("watermark_ahead", severity, raised.ts_ms - horizon_ms, 0, sentence)


def check_of_watermark(
    asked: str,
    watermark_ms: int | None,
    horizon_ms: int,
    behind: str = "",
    *,
    waits: bool = False,
) -> Check | None:
    """The check that the watermark does not exceed the horizon; None if it is switched off.

    Args:
        asked: the value of `quality.watermark_ahead`.
        watermark_ms: the watermark at the horizon; None: there is none yet.
        horizon_ms: the instant up to which the run has read arrivals.
        behind: the cause in words, if the watermark is ahead (`raised_in_words`).
        waits: whether only the next tick emits the watermark.
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    name = "watermark_ahead"
    if watermark_ms is None:
        return Check(name, severity, None, 0, "no watermark yet")
    ahead_ms = watermark_ms - horizon_ms
    at = text_of(watermark_ms) + (" once the next tick has emitted it" if waits else "")
    if ahead_ms <= 0:
        return Check(name, severity, ahead_ms, 0, f"at {at}, not ahead of the data cut-off")
    ahead = f"at {at}, {duration(ahead_ms)} ahead of the data cut-off {text_of(horizon_ms)}"
    return Check(name, severity, ahead_ms, 0, f"{ahead}; {behind}" if behind else ahead)
