"""A pipeline's life without Spark: it remembers as the product does, and computes by replay.

Planning, the facts of the timeline and the ledger are the real ones. Rows come from the record by
record reference, and are put into the published tables as a run does.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pandas as pd
from activity import activity_of, step_days
from cells import cell_of, observed
from remembered import remembered_by
from strategies import Stream

from strandline.engine.history.history import History, history_of
from strandline.engine.history.observed import ObservedDay, assemble_history
from strandline.engine.idleness.source import Source
from strandline.engine.idleness.state import SourceState
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import Observed
from strandline.engine.watermark.by_steps import KnownSteps
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.timeline.rows import TimelineTable
from strandline.model.facts import DayFacts, KnownDays, LandedDays, compare
from strandline.model.intervals import (
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    midnight_of,
)
from strandline.model.lateness import is_window_late
from strandline.model.windows import TimeWindow
from strandline.pipeline.observe.landing_status import LandingStatus, times_of_missing
from strandline.pipeline.plan.advance import plan_advance
from strandline.pipeline.plan.backfill import plan_backfill
from strandline.pipeline.plan.open_slots import FirstOpen
from strandline.pipeline.plan.plan import Plan, require_rows
from strandline.pipeline.request.request import Request
from strandline.reference.records import Record, without_duplicates
from strandline.reference.replay import replay
from strandline.reference.tables import Tables
from strandline.spec.window import Session, WindowOfAllTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from strandline.spec import PipelineSpec

Rows = dict[Any, tuple[Any, ...]]
WRITTEN = datetime(2030, 1, 1, tzinfo=UTC)


class Died(Exception):
    """A run that ends where its caller says."""


@dataclass(frozen=True)
class Published:
    """The published tables: of each row what tells it, and what it says."""

    windows: Rows = field(default_factory=dict)
    late: Rows = field(default_factory=dict)
    slots: Rows = field(default_factory=dict)


def in_one_run(
    spec: PipelineSpec, records: Sequence[Record], start_ms: int, horizon_ms: int
) -> Published:
    """What one run over everything publishes as of a horizon."""
    answer = replay(spec, records, start_ms=start_ms, horizon_ms=horizon_ms)
    tables = Tables(spec, answer)
    return Published(
        windows={
            (row.key, row.window.start_ms, row.window.end_ms): (
                tuple(sorted(record.record_id for record in row.members)),
                *(row.late_accepted, row.firings, row.state, row.fired_at_ms, row.closed_at_ms),
            )
            for row in tables.windows()
        },
        late={
            row.record.record_id: (
                *(row.slot_start_ms, row.reason, row.watermark_ms),
                *(row.late_by_ms, row.missed_windows, row.record.arrival_ms),
            )
            for row in tables.quarantine()
        },
        slots={
            (row.window.start_ms, row.window.end_ms): (
                *(row.slot.state, row.slot.fired_at_ms, row.slot.closed_at_ms),
                *(row.on_time, row.late_accepted, row.missed_pairs),
                *(row.late, row.no_window, row.channels_heard),
            )
            for row in tables.completeness()
        },
    )


def first_window_not_final(spec: PipelineSpec, watermark_ms: int) -> int:
    """The start of the first window of whose records one may still change a window.

    By Flink's rule for each window, and by the windows of each record, without a grid.
    """
    if isinstance(spec.window, WindowOfAllTime):
        return LEAST_INSTANT_MS
    assigner = spec.window.assigner

    def may_change(start_ms: int) -> bool:
        end_ms = max(window.end_ms for window in assigner.windows_of(start_ms))
        events = (*range(start_ms, end_ms, assigner.step_ms), end_ms - 1)
        return not all(
            is_window_late(
                window.max_timestamp_ms,
                allowed_lateness_ms=spec.allowed_lateness,
                watermark_ms=watermark_ms,
            )
            for ts_ms in events
            for window in assigner.windows_of(ts_ms)
        )

    step_ms = assigner.step_ms
    first_ms = assigner.newest_start(LEAST_INSTANT_MS - 1) + step_ms
    starts = range(first_ms, max(watermark_ms, first_ms) + 2 * step_ms, step_ms)
    place = bisect_left(starts, True, key=may_change)
    return starts[place] if place else LEAST_INSTANT_MS


@dataclass
class Life:
    """One pipeline: its landing, its timeline, its ledger and its published tables."""

    spec: PipelineSpec
    landing: dict[date, dict[str, Record]] = field(default_factory=dict)
    facts: dict[date, DayFacts] = field(default_factory=dict)
    cells: dict[date, pd.DataFrame] = field(default_factory=dict)
    observed_under: str = ""
    entries: list[Entry] = field(default_factory=list)
    published: Published = field(default_factory=Published)
    plan: Plan | None = None
    gone: list[Record] = field(default_factory=list)

    # ---------------------------------------------------------------------------- what happens

    def land(self, records: Iterable[Record]) -> None:
        """Records land on the days of their arrival."""
        for record in records:
            self.landing.setdefault(day_of(record.arrival_ms), {})[record.record_id] = record
            self.gone = [one for one in self.gone if one.record_id != record.record_id]

    def take_away(self, day: date, ids: Iterable[str]) -> None:
        """Rows of a day go; of a day without a row nothing is left."""
        for record_id in ids:
            self.gone.append(self.landing[day].pop(record_id))
        if not self.landing[day]:
            del self.landing[day]

    @property
    def records(self) -> list[Record]:
        """What counts of all that has landed, in order of arrival."""
        return self._counting([r for rows in self.landing.values() for r in rows.values()])

    def _counting(self, landed: list[Record]) -> list[Record]:
        source = self.spec.source
        rule, channels = source.deduplicate, source.declared_channels
        every = sorted(
            (r for r in landed if channels is None or r.channel in channels),
            key=lambda r: (r.arrival_ms, r.record_id),
        )
        if rule is None:
            return every
        kept, _ = without_duplicates(every, lambda r: (r.payload["value"],), within_ms=rule.within)
        return kept

    @property
    def state(self) -> PipelineState:
        return PipelineState.of(self.entries)

    @property
    def axis(self) -> Axis:
        start = self.state.clock_start_ms
        if start is None:
            start = midnight_of(min(self.landing)) if self.landing else 0
        return Axis.of(self.spec, start)

    # ------------------------------------------------------------------------------- the runs

    def advance(self, midnight_ms: int, *, dies: str = "", accept_loss: bool = False) -> None:
        """A scheduled run up to a midnight; it may die before or after its days count."""
        request = Request("advance", to_ms=midnight_ms, accept_loss="gone" if accept_loss else None)
        self._run(request, midnight_ms, dies)

    def backfill(self, within: TimeRange, horizon_ms: int, *, dies: str = "") -> None:
        """A run by hand over a range, as of a horizon."""
        self._run(Request("backfill", within, as_of_ms=horizon_ms), horizon_ms, dies)

    def _run(self, request: Request, horizon_ms: int, dies: str) -> None:
        axis, base = self.axis, len(self.entries)
        status = self._landing_status()
        if request.accept_loss:
            status = status.accepting(status.missing)
        new, history, plan = self._planned(request, status, axis, horizon_ms)
        while True:
            accepted = status.accepted | set(plan.missing if request.accept_loss else ())
            if plan.clock.horizon_ms == horizon_ms and accepted == status.accepted:
                break
            horizon_ms, status = plan.clock.horizon_ms, status.accepting(accepted)
            new, history, plan = self._planned(request, status, axis, horizon_ms)
        require_rows(self.spec, request, plan)
        self.plan = plan
        entry = Entry(
            run_id=f"r{base}",
            attempt=1,
            step="started",
            kind=request.kind,
            range=plan.scope.windows,
            horizon_ms=horizon_ms,
            timeline_fingerprint=self.spec.timeline_fingerprint,
            base=base,
            settled=plan.settles,
            clock_start_ms=axis.start_ms if self.landing else None,
        )
        self._note(entry)
        # an accepted loss counts with what is published, and not before
        if not status.accepted:
            self._observed(entry, history, status, new, dies)
        if dies:
            return
        if status.accepted:
            self._observed(entry, history, status, new)
            self.gone = []
        before = self.published
        self._publish(plan, axis)
        completes_ms = self.state.frontier_after(self._with_diff(entry, before), plan.completes_ms)
        self._note(replace(entry, step="published", frontier_ms=completes_ms))

    def _observed(
        self,
        entry: Entry,
        history: History,
        status: LandingStatus,
        new: Sequence[date],
        dies: str = "",
    ) -> None:
        if owed := status.to_recompute_among(new):
            self._note(replace(entry, step="owed", owed=owed))
        if dies != "before its days count":
            self._commit(history, status, new)

    def _with_diff(self, entry: Entry, before: Published) -> Entry:
        changed = {"insert": int(self.published != before), "update": 0, "delete": 0}
        return replace(entry, diff={"windows": changed})

    def _note(self, entry: Entry) -> None:
        position = len(self.entries) + 1
        self.entries.append(replace(entry, position=position, written_at=WRITTEN))

    def _landing_status(self) -> LandingStatus:
        landed = {day: self._said(day) for day in self.landing}
        own = self.observed_under == self.spec.timeline_fingerprint
        known = KnownDays(self.facts, self.state.frontier_ms, self.state.largest_horizon())
        changes = compare(known, LandedDays(landed))
        every = {day: self._times(day) for day in self.cells}
        times = times_of_missing(self.spec, changes.missing, every)
        observed = frozenset(self.cells if own else ())
        return LandingStatus(
            landed, dict(self.facts), observed, changes, times, 0, TimelineTable(None)
        )

    def _said(self, day: date) -> DayFacts:
        ids = "".join(sorted(self.landing[day]))
        return DayFacts(len(self.landing[day]), sha256(ids.encode()).hexdigest(), 0)

    def _times(self, day: date) -> list[TimeRange]:
        cells = self.cells.get(day)
        if cells is None or not len(cells):
            return []
        return [TimeRange(int(cells["least_ts_ms"].min()), int(cells["largest_ts_ms"].max()) + 1)]

    def _planned(
        self, request: Request, status: LandingStatus, axis: Axis, horizon_ms: int
    ) -> tuple[list[date], History, Plan]:
        new = status.days_to_observe(self.spec, horizon_ms)
        history = self._history(status, new, axis, horizon_ms)
        found = status.to_recompute_among(new)
        owed = tuple(sorted({*self.state.days_to_recompute, *found}))
        known = {"to_recompute": owed, "first_open": self._first_open()}
        if owed or self.state.timeline_rules - {self.spec.timeline_fingerprint}:
            last = max((start for start, _ in self.published.slots), default=None)
            known |= {"last_slot_ms": last, "late_slots": self._late_slots}
        remembered = remembered_by(self.state, request.kind, **known)
        if request.kind == "backfill":
            return new, history, plan_backfill(request, history, horizon_ms, remembered, status)

        def first_not_final(watermark_ms: int) -> int:
            if not isinstance(self.spec.window, Session):
                return first_window_not_final(self.spec, watermark_ms)
            return self._first_session_not_final(watermark_ms, request.to_ms)

        return new, history, plan_advance(request, history, remembered, status, first_not_final)

    def _history(
        self, status: LandingStatus, new: Sequence[date], axis: Axis, horizon_ms: int
    ) -> History:
        anew = {*new, day_of(horizon_ms)}
        kept = {
            day: cells
            for day, cells in self.cells.items()
            if day in status.observed and day not in anew and midnight_of(day) < horizon_ms
        }
        known = [r for r in self.records if r.arrival_ms < horizon_ms]
        counted = [cell_of(self.spec, axis, r) for r in known if day_of(r.arrival_ms) in anew]
        fresh = observed(*counted).every
        parts = [part for part in (*kept.values(), fresh) if len(part)]
        cells = pd.concat(parts, ignore_index=True) if parts else fresh
        if not self.spec.watermark.idleness_in_effect:
            return history_of(Observed(cells), self.spec, axis)
        source, carried = Source(self.spec, axis), SourceState.at_the_start(self.spec, axis)
        stream = Stream(self.spec, tuple(known), axis.start_ms, horizon_ms, end_of_input=False)
        activity, steps = activity_of(stream, known), []
        for day in sorted({day_of(r.arrival_ms) for r in known}):
            for _, found, after in source.advance_days(carried, [activity], [day], horizon_ms):
                carried = after
                steps.append(ObservedDay(day, found, after))
        # those of the days before the new ones are kept, and read again
        kept = [told for told in steps if told.day < min(anew)]
        known = KnownSteps.none(source)
        if kept:
            known = KnownSteps(step_days(kept), kept[-1].carried)
        rest = steps[len(kept) :]
        return assemble_history(
            Observed(cells), self.spec, source, known, rest, horizon_ms=horizon_ms
        )

    def _commit(self, history: History, status: LandingStatus, new: Sequence[date]) -> None:
        if self.observed_under != self.spec.timeline_fingerprint:
            self.cells = {day: cells for day, cells in self.cells.items() if day in status.missing}
            self.observed_under = self.spec.timeline_fingerprint
        if self.spec.days_follow_each_other and new:
            self.cells = {day: cells for day, cells in self.cells.items() if day < new[0]}
        of_day = dict(iter(history.timeline.every.groupby("arrival_date")))
        for day in new:
            self.cells[day] = of_day.get(day, history.timeline.every[:0])
        self.facts |= status.facts_of(new)

    # -------------------------------------------------------------------------- what is published

    def _first_open(self) -> FirstOpen | None:
        not_closed = [slot for slot, row in self.published.slots.items() if row[0] != "closed"]
        if not not_closed:
            return None
        start_ms, end_ms = min(not_closed)
        closed = [end for (start, end), row in self.published.slots.items() if start < start_ms]
        return FirstOpen(start_ms, end_ms, max(closed, default=None))

    def _late_slots(self, before_ms: int, since_ms: int) -> frozenset[int]:
        late = self.published.late.values()
        return frozenset(row[0] for row in late if row[0] < before_ms and row[-1] >= since_ms)

    def _first_session_not_final(self, watermark_ms: int, until_ms: int) -> int:
        """The slot in which the first session begins that the watermark has not dropped."""
        window, slot_ms = self.spec.window, self.spec.quality.session_slot
        final_ms = watermark_ms - self.spec.allowed_lateness + 1  # what ends by then is dropped
        if final_ms <= LEAST_INSTANT_MS:
            return LEAST_INSTANT_MS
        first_ms, sessions = final_ms, dict[tuple[Any, ...], TimeWindow]()
        for record in sorted(self.records, key=lambda one: one.ts_ms):
            if record.arrival_ms >= until_ms:
                continue
            gap_ms = record.gap_ms if window.gap_ms is None else window.gap_ms
            session = TimeWindow(record.ts_ms, record.ts_ms + gap_ms)
            before = sessions.get(record.key)
            if before is not None and before.intersects(session):
                session = before.cover(session)
            sessions[record.key] = session
            if session.end_ms > final_ms:
                first_ms = min(first_ms, session.start_ms)
        return first_ms - first_ms % slot_ms

    def _publish(self, plan: Plan, axis: Axis) -> None:
        scope, horizon_ms = plan.scope, plan.clock.horizon_ms
        # rows that have gone are read no more, but the watermark goes by what was observed
        landed = [r for rows in self.landing.values() for r in rows.values()]
        observed = self._counting([*landed, *self.gone])
        staged = in_one_run(self.spec, observed, axis.start_ms, horizon_ms)
        within, before = scope.windows, self.published
        times = {r.record_id: r.ts_ms for r in self.records}

        def home(record_id: str, row: tuple[Any, ...]) -> int:
            own = isinstance(self.spec.window, Session)
            return times.get(record_id, row[0]) if own else row[0]

        def is_judged(row: tuple[Any, ...]) -> bool:
            since_ms = scope.older_since_ms
            older = since_ms is not None and row[0] < scope.older_end_ms
            return row[0] in within or (older and since_ms <= row[-1] < horizon_ms)

        late = {i: row for i, row in before.late.items() if not is_judged(row)}
        late |= {i: row for i, row in staged.late.items() if is_judged(row)}
        windows = {w: row for w, row in before.windows.items() if w[1] not in within}
        windows |= {w: row for w, row in staged.windows.items() if w[1] in within}
        slots = {s: row for s, row in before.slots.items() if s[0] not in within}
        slots |= {s: row for s, row in staged.slots.items() if s[0] in within}
        if scope.older_since_ms is not None:
            slots = self._mended(slots, staged, late, plan)
        self.published = Published(windows, late, slots)

    def _starts_of_windows(self, record: Record) -> list[int]:
        if isinstance(self.spec.window, Session):
            return []
        return [window.start_ms for window in self.spec.window.assigner.windows_of(record.ts_ms)]

    def _mended(self, slots: Rows, staged: Published, late: Rows, plan: Plan) -> Rows:
        """The calendar, with the older slots that late records have touched or left."""
        scope, horizon_ms = plan.scope, plan.clock.horizon_ms
        assigner = Grid.of(self.spec)
        touched = set(scope.older_too)
        for record in self.records:
            start_ms = record.ts_ms - (record.ts_ms - assigner.offset_ms) % assigner.span_ms
            fresh = scope.older_since_ms <= record.arrival_ms < horizon_ms
            if fresh:
                starts = {start_ms, *self._starts_of_windows(record)}
                touched |= {ms for ms in starts if ms < scope.older_end_ms}
        mended = {s: row for s, row in slots.items() if s[0] not in touched}
        for slot, row in staged.slots.items():
            if slot[0] not in touched:
                continue
            taken = slots.get(slot, (None, None, None, 0, 0, 0))[3:6]
            newest = slot[1] - slot[0] == assigner.size_ms
            refused = [r[1] for r in late.values() if newest and r[0] == slot[0]]
            counts = (refused.count("late"), refused.count("no_window"))
            mended[slot] = (*row[:3], *taken, *counts, row[-1])
        return mended
