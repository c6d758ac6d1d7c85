"""A channel: its generator, and the watermark that it has made visible so far."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Candidate
from strandline.reference.records import Record


class Channel:
    """A source partition with a max-based generator of its own.

    Flink: `TimestampsAndWatermarksOperator` with `BoundedOutOfOrdernessWatermarks` or its kin.
    """

    def __init__(self, candidate: Candidate) -> None:
        """Start without a record, hence without a watermark."""
        self._candidate = candidate
        self._offered_ms = MIN_WATERMARK
        self._emitted_ms = MIN_WATERMARK

    @property
    def settled(self) -> bool:
        """Whether further probes emit nothing until the next record comes."""
        return self._offered_ms == self._emitted_ms

    def on_record(self, record: Record) -> None:
        """Let the generator see a record; nothing becomes visible before the next probe."""
        self._offered_ms = max(self._offered_ms, self._candidate.of(record.ts_ms))

    def probe(self) -> int | None:
        """The watermark that a probe emits; None if the channel's own would not rise."""
        if self.settled:
            return None
        self._emitted_ms = self._offered_ms
        return self._emitted_ms


def newcomers(instant: Iterable[Record], known: Iterable[str]) -> list[str]:
    """The channels that an instant speaks of for the first time, by first record, then by name."""
    first: dict[str, int] = {}
    for record in instant:
        first.setdefault(record.channel, record.ts_ms)
    return sorted(first.keys() - set(known), key=lambda channel: (first[channel], channel))
