"""Watermarks and tumbling windows record by record, with plain dictionaries: the oracle's core.

Knows nothing of Strandline and imports none of it. One rule set: a periodic, bounded watermark per
channel, the minimum over a declared set of them, an allowed lateness, a side output of late data.
`test_flights_reference.py` holds it against what Flink did.

All times are whole milliseconds since 1970 in UTC; a window holds its start, not its end.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WATERMARK = 2**63 - 1
FIRE, DROP = 0, 1


@dataclass(frozen=True)
class Rules:
    """A pipeline's rules. Ticks are at `start_ms + k * interval_ms`, k = 1, 2, ..."""

    channels: tuple[str, ...]
    start_ms: int
    interval_ms: int
    bound_ms: int
    size_ms: int
    lateness_ms: int
    offset_ms: int = 0

    def window_start(self, ts_ms: int) -> int:
        """The start of the window that holds the event time."""
        return ts_ms - (ts_ms - self.offset_ms) % self.size_ms

    def last_ms(self, start_ms: int) -> int:
        """The window's last millisecond: a watermark that has reached it fires the window."""
        return start_ms + self.size_ms - 1

    def cleanup_ms(self, start_ms: int) -> int:
        """A watermark that has reached this drops the window: what comes then is late."""
        return min(self.last_ms(start_ms) + self.lateness_ms, MAX_WATERMARK)

    def tick_after(self, arrival_ms: int) -> int:
        """The first tick strictly later than an arrival: there its event time is seen."""
        k = (arrival_ms - self.start_ms) // self.interval_ms + 1
        return self.start_ms + max(k, 1) * self.interval_ms


@dataclass(frozen=True)
class Record:
    """A well-formed record; `row` tells which row of the source it is."""

    arrival_ms: int
    ts_ms: int
    channel: str
    key: tuple[str, ...]
    row: int


@dataclass(frozen=True)
class Firing:
    """One firing: at a tick (`by` is null) or at once by the late record of row `by`."""

    start_ms: int
    key: tuple[str, ...]
    rows: tuple[int, ...]
    watermark_ms: int
    at_ms: int
    by: int | None


@dataclass
class Pane:
    """A window of one key: the rows that it accepted, and what became of it."""

    rows: list[int] = field(default_factory=list)
    late_accepted: int = 0
    firings: int = 0
    fired_at_ms: int | None = None
    closed_at_ms: int | None = None


class Replay:
    """Records, one after the other, through watermarks and windows as Flink does it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.watermark_ms: int | None = None
        self.steps: list[tuple[int, int]] = []  # (watermark, since), both rising
        self.panes: dict[tuple[int, tuple[str, ...]], Pane] = {}
        self.firings: list[Firing] = []
        self.late: list[tuple[Record, int]] = []  # with the watermark that it met
        self.accepted: list[Record] = []
        self._channel_ms: dict[str, int | None] = dict.fromkeys(rules.channels)
        self._unseen: dict[str, int] = {}  # largest event time since the last tick, by channel
        self._tick_ms = 0  # where `_unseen` will be seen
        self._timers: list[tuple[int, int, int, tuple[str, ...]]] = []

    def run(self, records: Iterable[Record], *, horizon_ms: int, close: bool = False) -> Replay:
        """Replay what arrives and ticks before the horizon; `close`: then the input has ended."""
        last_ms = None
        for record in records:
            if record.arrival_ms >= horizon_ms:
                break
            assert last_ms is None or last_ms <= record.arrival_ms, "not in the order of arrival"
            last_ms = record.arrival_ms
            self._tick_up_to(record.arrival_ms)  # a tick comes before what arrives right then
            self._process(record)  # and a record before the watermark that it causes
            self._remember(record)
        self._tick_up_to(horizon_ms - 1)
        if close:
            for channel in self.rules.channels:
                self._offer(channel, MAX_WATERMARK, at_ms=horizon_ms - 1)
        return self

    def crossing(self, threshold_ms: int) -> int | None:
        """When the watermark first stood at or past a threshold; null: it has not yet."""
        at = bisect_left(self.steps, (threshold_ms,))
        return self.steps[at][1] if at < len(self.steps) else None

    def _process(self, record: Record) -> None:
        start_ms = self.rules.window_start(record.ts_ms)
        last_ms, cleanup_ms = self.rules.last_ms(start_ms), self.rules.cleanup_ms(start_ms)
        watermark_ms = self.watermark_ms
        if watermark_ms is not None and cleanup_ms <= watermark_ms:
            self.late.append((record, watermark_ms))
            return
        self.accepted.append(record)
        has_fired = watermark_ms is not None and last_ms <= watermark_ms
        name = (start_ms, record.key)
        if name not in self.panes:
            self.panes[name] = Pane()
            if not has_fired:
                heapq.heappush(self._timers, (last_ms, FIRE, *name))
            if cleanup_ms < MAX_WATERMARK:
                heapq.heappush(self._timers, (cleanup_ms, DROP, *name))
        self.panes[name].rows.append(record.row)
        if has_fired:
            self.panes[name].late_accepted += 1
            self._fire(*name, at_ms=record.arrival_ms, by=record.row)

    def _remember(self, record: Record) -> None:
        seen = self._unseen.get(record.channel)
        self._unseen[record.channel] = record.ts_ms if seen is None else max(seen, record.ts_ms)
        self._tick_ms = self.rules.tick_after(record.arrival_ms)

    def _tick_up_to(self, now_ms: int) -> None:
        # A tick with nothing new on any channel changes nothing: only one can be due.
        if self._unseen and self._tick_ms <= now_ms:
            for channel in self.rules.channels:
                if channel in self._unseen:
                    candidate_ms = self._unseen[channel] - self.rules.bound_ms - 1
                    self._offer(channel, candidate_ms, at_ms=self._tick_ms)
            self._unseen.clear()

    def _offer(self, channel: str, candidate_ms: int, *, at_ms: int) -> None:
        own_ms = self._channel_ms[channel]
        if own_ms is not None and candidate_ms <= own_ms:
            return
        self._channel_ms[channel] = candidate_ms
        spoken = [ms for ms in self._channel_ms.values() if ms is not None]
        if len(spoken) < len(self._channel_ms):
            return  # a channel that has not spoken holds everything back
        lowest_ms = min(spoken)
        if self.watermark_ms is None or lowest_ms > self.watermark_ms:
            self.watermark_ms = lowest_ms
            self.steps.append((lowest_ms, at_ms))
            self._run_timers(at_ms)

    def _run_timers(self, at_ms: int) -> None:
        assert self.watermark_ms is not None
        while self._timers and self._timers[0][0] <= self.watermark_ms:
            _, kind, start_ms, key = heapq.heappop(self._timers)
            if kind == FIRE:
                self._fire(start_ms, key, at_ms=at_ms, by=None)
            else:
                self.panes[start_ms, key].closed_at_ms = at_ms

    def _fire(self, start_ms: int, key: tuple[str, ...], *, at_ms: int, by: int | None) -> None:
        assert self.watermark_ms is not None
        pane = self.panes[start_ms, key]
        pane.firings += 1
        if pane.fired_at_ms is None:
            pane.fired_at_ms = at_ms
        rows = tuple(pane.rows)
        self.firings.append(Firing(start_ms, key, rows, self.watermark_ms, at_ms, by))
