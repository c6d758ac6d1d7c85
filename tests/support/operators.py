"""The reference's window operators, driven by records and advances of the watermark."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Any

from strandline.engine.replay.operator_io import Records
from strandline.reference.answer import FiredPane, Outcome
from strandline.reference.evictors import keep_by
from strandline.reference.records import Record
from strandline.reference.sessions import SessionOperator
from strandline.reference.triggers import trigger_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def operator_of(kind: Any, trigger: Any, evictor: Any, lateness_ms: int, **more: Any) -> Any:
    keep = None if evictor is None else keep_by(evictor)
    return kind(
        **more,
        allowed_lateness_ms=lateness_ms,
        trigger=trigger_of(trigger),
        evict_before=keep if evictor and not evictor.after else None,
        evict_after=keep if evictor and evictor.after else None,
    )


@dataclass
class Group:
    """The records of a group with the watermark at their arrival, and the firings of it."""

    records: list[tuple[Record, int]] = field(default_factory=list)
    firings: list[tuple[int, FiredPane]] = field(default_factory=list)

    def columns(self, window: Any = None) -> Records:
        records = [record for record, _ in self.records]
        return Records(
            starts_ms=[r.ts_ms if window is None else window.start_ms for r in records],
            ends_ms=[
                r.ts_ms + (r.gap_ms or 0) if window is None else window.end_ms for r in records
            ],
            ts_ms=[record.ts_ms for record in records],
            watermarks_ms=[watermark_ms for _, watermark_ms in self.records],
            trigger_values=[record.trigger_value for record in records],
            evictor_values=[record.evictor_value for record in records],
        )


def events_of(events: list[tuple[str, int, int]]) -> Iterator[tuple[int, Record | None, int]]:
    """Number, record (None: the watermark advances) and watermark of each event."""
    watermark_ms = -20
    for number, (kind, value, gap_ms) in enumerate(events):
        if kind == "advance":
            watermark_ms += value
            yield number, None, watermark_ms
        else:
            yield number, a_record(number, watermark_ms + value, gap_ms), watermark_ms


def a_record(number: int, ts_ms: int, gap_ms: int) -> Record:
    return Record(
        arrival_ms=number,
        ts_ms=ts_ms,
        record_id=f"{number:03}",
        channel="",
        key=("k",),
        sequence=number,
        gap_ms=gap_ms,
        trigger_value=float(gap_ms),
        evictor_value=nan if number % 7 == 3 else float(gap_ms),
    )


class InFlight(SessionOperator):
    """The reference's operator, with the windows in flight."""

    @property
    def windows(self) -> set[Any]:
        return {window for _, window in self._states}


@dataclass
class Sessions:
    """The reference's operator, and which sessions became of its windows."""

    operator: InFlight
    groups: list[Group] = field(default_factory=list)
    by_window: dict[Any, Group] = field(default_factory=dict)

    def take(self, number: int, record: Record) -> None:
        before, at_arrival_ms = self.operator.windows, self.operator.watermark_ms
        fate, fired = self.operator.process(record)
        if fate is Outcome.LATE:
            return
        after = self.operator.windows
        own = next(w for w in after if w.start_ms <= record.ts_ms < w.end_ms)
        group = Group()
        for window in (before - after) | ({own} & before):
            part = self.by_window.pop(window)
            self.groups.remove(part)
            group.records += part.records
            group.firings += part.firings
        group.records.append((record, at_arrival_ms))
        group.records.sort(key=lambda of: of[0].sequence)
        group.firings += [(number, pane) for pane in fired]
        self.groups.append(group)
        self.by_window[own] = group

    def advance(self, number: int, watermark_ms: int) -> None:
        for pane in self.operator.advance(watermark_ms):
            self.by_window[pane.window].firings.append((number, pane))
        there = self.operator.windows
        self.by_window = {w: group for w, group in self.by_window.items() if w in there}
