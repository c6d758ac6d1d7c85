"""The rows of the published tables, from a replay of the whole history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, TimeRange, midnight_before
from strandline.model.lateness import MAX_WATERMARK, cleanup_time, late_by
from strandline.model.windows import GLOBAL_WINDOWS, TimeWindow, TumblingWindows, WindowAssigner
from strandline.reference.answer import Firing, LateRecord, Outcome, Replay
from strandline.reference.records import Record
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import GridWindow, Session


@dataclass(frozen=True, slots=True)
class SlotState:
    """The state of a window over all keys: `open`, `fired` or `closed`."""

    state: str
    fired_at_ms: int | None
    closed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A row of `windows`; `members` are the records of its last firing."""

    key: tuple[Any, ...]
    window: TimeWindow
    members: tuple[Record, ...]
    late_accepted: int
    firings: int
    state: str
    fired_at_ms: int
    closed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A row of `quarantine`; `late_by_ms` and `missed_windows` are None for `no_window`."""

    record: Record
    reason: str
    watermark_ms: int
    late_by_ms: int | None
    slot_start_ms: int
    missed_windows: int | None


@dataclass(frozen=True, slots=True)
class CompletenessRow:
    """A row of `completeness`: counts of the records of a *slot*, over all keys.

    A slot is a window over all keys; for sessions, which lie anywhere, an interval of the calendar.
    Slots without a record are listed by `Tables.gaps`.

    `unfired`: the number of records that were dropped with the window before a firing had them.
    """

    window: TimeWindow
    slot: SlotState
    on_time: int
    late_accepted: int
    late: int
    no_window: int
    missed_pairs: int
    channels_heard: tuple[str, ...]
    unfired: int = 0


class Tables:
    """The published tables of a pipeline, from the answer of its replay."""

    def __init__(self, spec: PipelineSpec, replayed: Replay) -> None:
        """Use the answer of a replay of a pipeline."""
        window = spec.window
        self._gap: Session | None = window if isinstance(window, Session) else None
        self._calendar: WindowAssigner = (
            window.assigner
            if isinstance(window, GridWindow)
            else TumblingWindows(spec.quality.session_slot)
            if self._gap
            else GLOBAL_WINDOWS
        )
        self._allowed_lateness_ms = spec.allowed_lateness
        self._replayed = replayed

    def windows(self) -> list[WindowRow]:
        """Every fired window of a key that no later firing superseded, by key and start."""
        fired: dict[tuple[tuple[Any, ...], TimeWindow], list[Firing]] = defaultdict(list)
        for firing in self._replayed.firings:
            fired[firing.key, firing.window].append(firing)
        late = Counter((record.key, window) for record, window in self._replayed.accepted_late)
        rows = []
        in_order = sorted(self._replayed.in_force, key=lambda firing: (firing.key, firing.window))
        for last in in_order:
            key, window = last.key, last.window
            firings, slot = fired[key, window], self.slot(window)
            rows.append(
                WindowRow(
                    key=key,
                    window=window,
                    members=last.members,
                    late_accepted=late[key, window],
                    firings=len(firings),
                    state="closed" if slot.closed_at_ms is not None else "fired",
                    fired_at_ms=firings[0].origin.at_ms,
                    closed_at_ms=slot.closed_at_ms,
                )
            )
        return rows

    def quarantine(self) -> list[QuarantineRow]:
        """Every late record, then every record without a window, each in order of processing."""
        return [
            *(self._refused(refused, Outcome.LATE) for refused in self._replayed.late),
            *(self._refused(refused, Outcome.NO_WINDOW) for refused in self._replayed.no_window),
        ]

    def _refused(self, refused: LateRecord, outcome: Outcome) -> QuarantineRow:
        record, late = refused.record, outcome is Outcome.LATE
        late_by_ms = late_by(
            self._newest(record).max_timestamp_ms,
            allowed_lateness_ms=self._allowed_lateness_ms,
            watermark_ms=refused.watermark_ms,
        )
        missed = 1 if self._gap else len(self._calendar.windows_of(record.ts_ms))
        return QuarantineRow(
            record=record,
            reason=outcome.value,
            watermark_ms=refused.watermark_ms,
            late_by_ms=late_by_ms if late else None,
            slot_start_ms=self._calendar.newest_start(record.ts_ms),
            missed_windows=missed if late else None,
        )

    def completeness(self) -> list[CompletenessRow]:
        """Every slot that has a record, by start and end."""
        counts: dict[TimeWindow, Counter[str]] = defaultdict(Counter)
        active: dict[TimeWindow, set[str]] = defaultdict(set)
        accepted_late = {(r.record_id, window) for r, window in self._replayed.accepted_late}
        by_record = self._slots_by_record()
        for record in self._known():
            outcome = self._replayed.outcomes[record.record_id]
            slots = self._slots(record)
            for place, slot in enumerate(slots):
                active[slot].add(record.channel)
                if outcome in {Outcome.LATE, Outcome.NO_WINDOW}:
                    counts[slot][outcome.value] += place == 0
                elif self._gap:
                    counts[slot][outcome.value] += 1
                elif slot not in by_record[record.record_id]:
                    counts[slot]["missed_pairs"] += 1
                else:
                    late = (record.record_id, slot) in accepted_late
                    counts[slot]["late_accepted" if late else "on_time"] += 1
        for pane in self._replayed.unfired:
            for record in pane.members:
                slot = self._slots(record)[0] if self._gap else pane.window
                counts[slot]["unfired"] += 1
        return [
            CompletenessRow(
                window=slot,
                slot=self.slot(slot),
                on_time=counts_of["on_time"],
                late_accepted=counts_of["late_accepted"],
                late=counts_of["late"],
                no_window=counts_of["no_window"],
                missed_pairs=counts_of["missed_pairs"],
                channels_heard=tuple(sorted(active[slot])),
                unfired=counts_of["unfired"],
            )
            for slot, counts_of in sorted(counts.items())
        ]

    def gaps(self, within: TimeRange, horizon_ms: int) -> list[TimeWindow]:
        """The gaps that start in a range, by the records that arrived before a horizon.

        A gap is a slot without a record after the first slot that accepted one. It is known to be
        empty because a later slot has a record, or a later arrival day ended without any.
        """
        accepting = [row.window for row in self.completeness() if row.on_time + row.late_accepted]
        if not accepting:
            return []
        filled = {slot for record in self._known() for slot in self._slots(record)}
        first, last = min(accepting), max(filled)
        silent_ms = self._last_silent_day(horizon_ms)
        first_ms = self._calendar.newest_start(within.start_ms + self._calendar.step_ms - 1)
        return [
            slot
            for start_ms in range(first_ms, within.end_ms, self._calendar.step_ms)
            for slot in sorted(self._calendar.windows_of(start_ms))
            if slot.start_ms == start_ms and slot not in filled
            if first < slot and (slot < last or slot.end_ms <= silent_ms)
        ]

    def _last_silent_day(self, horizon_ms: int) -> int:
        """The midnight, in ms, that begins the last whole arrival day without a record.

        `LEAST_INSTANT_MS` if there is none.
        """
        arrived = {midnight_before(record.arrival_ms) for record in self._known()}
        over = range(min(arrived), midnight_before(horizon_ms), DAY_MS)
        return max((day_ms for day_ms in over if day_ms not in arrived), default=LEAST_INSTANT_MS)

    def slot(self, window: TimeWindow) -> SlotState:
        """The state of a window, and when the watermark reached its end and its cleanup time."""
        cleanup_ms = cleanup_time(
            window.max_timestamp_ms, allowed_lateness_ms=self._allowed_lateness_ms
        )
        fired = self._replayed.crossing(window.max_timestamp_ms)
        closed = None if cleanup_ms == MAX_WATERMARK else self._replayed.crossing(cleanup_ms)
        return SlotState(
            state="closed" if closed else "fired" if fired else "open",
            fired_at_ms=None if fired is None else fired.at_ms,
            closed_at_ms=None if closed is None else closed.at_ms,
        )

    def _newest(self, record: Record) -> TimeWindow:
        """The newest window of a record; if it lies between two windows, the window before it."""
        if self._gap:
            gap_ms = record.gap_ms if self._gap.gap_ms is None else self._gap.gap_ms
            return TimeWindow(record.ts_ms, record.ts_ms + (gap_ms or 0))
        return self._slots(record)[0]

    def _slots(self, record: Record) -> tuple[TimeWindow, ...]:
        """The slots of the calendar that a record belongs to, newest first."""
        windows = tuple(self._calendar.windows_of(record.ts_ms))
        start_ms = self._calendar.newest_start(record.ts_ms)
        return windows or tuple(self._calendar.windows_of(start_ms))

    def _accepted(self) -> Iterator[tuple[Record, TimeWindow]]:
        """Every record with each window that accepted it; pairs may repeat."""
        answer = self._replayed
        for pane in (*answer.firings, *answer.open_at_end, *answer.unfired):
            evicted = pane.evicted if isinstance(pane, Firing) else ()
            for record in (*pane.members, *evicted):
                yield record, pane.window

    def _slots_by_record(self) -> dict[str, set[TimeWindow]]:
        """The windows that accepted each record."""
        by_record: dict[str, set[TimeWindow]] = defaultdict(set)
        for record, window in self._accepted():
            by_record[record.record_id].add(window)
        return by_record

    def _known(self) -> list[Record]:
        by_record = {record.record_id: record for record, _ in self._accepted()}
        refused = [*self._replayed.late, *self._replayed.no_window]
        return [*by_record.values(), *(r.record for r in refused)]
