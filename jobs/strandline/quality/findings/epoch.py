"""`events_of_1970`: channels whose event times lie at the start of 1970, as of a wrong unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from strandline.model.intervals import DAY_MS, midnight_of, text_of
from strandline.quality.findings.check import BY_QUALITY, Check
from strandline.visible import number_of

FROM_MS, UNTIL_MS = -DAY_MS, 60 * DAY_MS
"""Early 1970 in ms: a zero of any zone, and seconds up to 2134 that are read as milliseconds."""
_ARRIVED_FROM_MS = midnight_of(date(1980, 1, 1))
"""The first arrival in ms that is far from 1970: its number of seconds is above any `_ZERO_MS`."""
_ZERO_MS = 2 * DAY_MS
"""The event time in ms below which it is a zero rather than a number of seconds."""
_OF_ITS_ARRIVAL_MS = 60 * DAY_MS
"""The distance, in ms, from its arrival day within which an event of so many seconds may lie."""
_KEPT = 1_000
"""The largest number of channels that are named beside the sentence: the ledger keeps them."""


@dataclass(frozen=True)
class LastDay:
    """The last arrival day of a channel.

    Attributes:
        channel: the channel's name; empty if there is only one.
        day: the arrival day.
        largest_ts_ms: the latest event time of the channel's records of this day.
    """

    channel: str
    day: date
    largest_ts_ms: int

    @property
    def is_of_1970(self) -> bool:
        """Whether the latest event lies in the first 60 days of 1970, and arrived after 1979."""
        arrived_late = midnight_of(self.day) >= _ARRIVED_FROM_MS
        return arrived_late and FROM_MS <= self.largest_ts_ms < UNTIL_MS

    @property
    def cause(self) -> str:
        """The likely cause as a question: a zero, seconds read as milliseconds, or a clock.

        A clock that is not set begins at 0, and after three weeks has the same numbers as seconds.
        """
        clock = "is the clock of the device set?"
        if self.largest_ts_ms < _ZERO_MS:
            return f"is a 0 sent where the event time is missing? If not, {clock}"
        as_seconds_ms = 1_000 * self.largest_ts_ms
        if abs(as_seconds_ms - midnight_of(self.day)) > _OF_ITS_ARRIVAL_MS:
            return clock
        return (
            "is the event time a number of seconds that is read as milliseconds (as seconds, by "
            f"timestamp_seconds, it would be {text_of(as_seconds_ms)})? If not, {clock}"
        )

    def __str__(self) -> str:
        """`channel b on its last arrival day, 2026-03-02, is of 1970-01-21T12:21:25.200Z`."""
        of_channel = f"channel {self.channel} on its" if self.channel else "the"
        latest = text_of(self.largest_ts_ms)
        return f"{of_channel} last arrival day, {self.day}, is of {latest}"


def check_of_1970(asked: str, days: Sequence[LastDay]) -> Check | None:
    """The check that no channel's last arrival day has events of early 1970 alone; None: off.

    Its windows end in 1970 as well, so nothing else shows: no record is late, no window is due.

    Args:
        asked: the value of `quality.events_of_1970`.
        days: the last arrival day of each channel.
    """
    severity = BY_QUALITY[asked]
    if severity is None:
        return None
    found = sorted((one for one in days if one.is_of_1970), key=lambda one: one.channel)
    sentence = "no channel has events of early 1970 alone"
    if found:
        latest = max(found, key=lambda one: one.largest_ts_ms)
        sentence = f"the latest event of {latest}: {latest.cause}"
        if others := len(found) - 1:
            more = number_of(others, "more channel")
            sentence += f"; so of {more}, named by --json and in the report"
    every = tuple(str(one) for one in found[:_KEPT]) if found[1:] else ()
    return Check("events_of_1970", severity, len(found), 0, sentence, every=every)
