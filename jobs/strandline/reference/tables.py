"""The rows of the published tables as a replay tells them, over the whole history."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from strandline.model.lateness import MAX_WATERMARK, cleanup_time, late_by
from strandline.model.windows import TimeWindow, TumblingWindows
from strandline.reference.answer import Firing, Replay, Timing
from strandline.reference.records import Record
from strandline.reference.windows import Fate
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Tumbling


@dataclass(frozen=True, slots=True)
class SlotState:
    """Where the watermark stands to a window, whatever the key: `open`, `fired` or `closed`."""

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
    """A row of `quarantine`; `late_by_ms`, `missed_windows` are None without a window."""

    record: Record
    reason: str
    watermark_ms: int
    late_by_ms: int | None
    slot_start_ms: int
    missed_windows: int | None


@dataclass(frozen=True, slots=True)
class CompletenessRow:
    """A row of `completeness`: a window with a record, over all keys; gaps are not listed."""

    window: TimeWindow
    slot: SlotState
    on_time: int
    late_accepted: int
    late: int
    no_window: int
    channels_heard: tuple[str, ...]


class Tables:
    """The tables after a replay; of a range they hold the rows whose window starts in it."""

    def __init__(self, spec: PipelineSpec, told: Replay) -> None:
        """Read them off an answer to this pipeline.

        Raises:
            TypeError: its windows are not tumbling.
        """
        if not isinstance(spec.window, Tumbling):
            msg = f"no tables of {type(spec.window).__name__} windows yet"
            raise TypeError(msg)
        self._assigner: TumblingWindows = spec.window.assigner
        self._allowed_lateness_ms = spec.allowed_lateness
        self._told = told

    def windows(self) -> list[WindowRow]:
        """Every window of a key that has fired, by key and start."""
        fired: dict[tuple[tuple[Any, ...], TimeWindow], list[Firing]] = defaultdict(list)
        for firing in self._told.firings:
            fired[firing.key, firing.window].append(firing)
        rows = []
        for (key, window), firings in sorted(fired.items()):
            slot = self.slot(window)
            rows.append(
                WindowRow(
                    key=key,
                    window=window,
                    members=firings[-1].members,
                    late_accepted=sum(f.timing is Timing.LATE for f in firings),
                    firings=len(firings),
                    state=slot.state,
                    fired_at_ms=firings[0].moment.at_ms,
                    closed_at_ms=slot.closed_at_ms,
                )
            )
        return rows

    def quarantine(self) -> list[QuarantineRow]:
        """Every record that was late, in the order of refusal."""
        rows = []
        for refused in self._told.late:
            window = self._newest(refused.record)
            late_by_ms = late_by(
                window.max_timestamp_ms,
                allowed_lateness_ms=self._allowed_lateness_ms,
                watermark_ms=refused.watermark_ms,
            )
            rows.append(
                QuarantineRow(
                    record=refused.record,
                    reason=Fate.LATE.value,
                    watermark_ms=refused.watermark_ms,
                    late_by_ms=late_by_ms,
                    slot_start_ms=window.start_ms,
                    missed_windows=1,
                )
            )
        return rows

    def completeness(self) -> list[CompletenessRow]:
        """Every window that has a record, by start."""
        fates: dict[TimeWindow, Counter[Fate]] = defaultdict(Counter)
        heard: dict[TimeWindow, set[str]] = defaultdict(set)
        for record in self._known():
            window = self._newest(record)
            fates[window][self._told.fates[record.record_id]] += 1
            heard[window].add(record.channel)
        return [
            CompletenessRow(
                window=window,
                slot=self.slot(window),
                on_time=fates[window][Fate.ON_TIME],
                late_accepted=fates[window][Fate.LATE_ACCEPTED],
                late=fates[window][Fate.LATE],
                no_window=fates[window][Fate.NO_WINDOW],
                channels_heard=tuple(sorted(heard[window])),
            )
            for window in sorted(fates)
        ]

    def slot(self, window: TimeWindow) -> SlotState:
        """Where the watermark stands to a window, and when it passed its two thresholds."""
        cleanup_ms = cleanup_time(
            window.max_timestamp_ms, allowed_lateness_ms=self._allowed_lateness_ms
        )
        fired = self._told.crossing(window.max_timestamp_ms)
        closed = None if cleanup_ms == MAX_WATERMARK else self._told.crossing(cleanup_ms)
        return SlotState(
            state="closed" if closed else "fired" if fired else "open",
            fired_at_ms=None if fired is None else fired.at_ms,
            closed_at_ms=None if closed is None else closed.at_ms,
        )

    def _newest(self, record: Record) -> TimeWindow:
        return self._assigner.windows_of(record.ts_ms)[0]

    def _known(self) -> list[Record]:
        held = {r.record_id: r for pane in self._told.final for r in pane.members}
        held |= {r.record_id: r for pane in self._told.open_at_end for r in pane.members}
        refused = [late.record for late in self._told.late]
        return [*held.values(), *refused, *self._told.no_window]
