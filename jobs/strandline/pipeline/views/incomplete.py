"""The incomplete windows of a pipeline, and why they are incomplete."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from strandline.conditions import any_of
from strandline.lake.store.days import Days
from strandline.model.intervals import TimeRange, text_or_none
from strandline.model.lateness import MAX_WATERMARK, cleanup_time, is_window_fired
from strandline.pipeline.views.shown_days import SlotsByDay, shown_days
from strandline.pipeline.views.slots import Slot, shares_instants_with, slots_of
from strandline.quality.figures import duration, percent
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.pipeline.views.shown import Shown


_MEANINGS = {
    "open": "the watermark has not reached its end",
    "fired": "published, and still open to late records",
    "open_session": "a session that can still change may have begun in it",
    "gap": "empty, behind the first slot that accepted a record",
    "late": "records came after it had been closed",
    "no_window": "records lie between its end and the next window",
    "missed_pairs": "records came too late for it, but not for other windows",
    "unfired": "records were dropped before they were in a firing",
    "to_recompute": "arrival days of its records have changed since",
    "rows_missing": "rows of its arrival days have disappeared from the landing table",
}
"""The meaning of each cause, in the order in which causes are listed."""


def incomplete_in(
    shown: Shown,
    since: date | None = None,
    until: date | None = None,
    *,
    limit: int,
    skip: int = 0,
) -> dict[str, Any]:
    """The slots of some days that are not complete, the newest first, and why.

    Args:
        shown: the pipeline.
        since: the first of these days; None: the trailing ones, see `shown_days`.
        until: the last of them; None: the last there is.
        limit: the largest number of slots to list, and to hold in memory.
        skip: the number of newest slots to skip.

    Returns:
        `incomplete`: the number of incomplete slots, out of `slots`; `causes`: the number of slots
        by cause; `listed`: each as in `Slot.to_json`, with its `why`; `left_out`: the number of
        older ones that are not listed.

    Raises:
        InputError: the last day is before the first one.
    """
    days = shown_days(shown.spec, shown.store, since, until)
    by_cause, found, rows = Counter[str](), 0, 0

    def counted() -> Iterator[tuple[int, int, Slot, list[Cause]]]:
        nonlocal found, rows
        for slot, why in _incomplete(shown, days):
            found, rows = found + slot.slots, rows + 1
            for cause in why:
                by_cause[cause.name] += slot.slots
            yield slot.start_ms, slot.end_ms, slot, why

    newest = heapq.nlargest(skip + limit, counted(), key=lambda one: one[:2])[skip:]
    watermark = shown.watermark
    return {
        "pipeline": shown.spec.pipeline,
        "lake": shown.store.lake.root,
        "notice": shown.notice,
        "processed_up_to": text_or_none(shown.state.frontier_ms),
        "watermark": None if watermark is None else str(watermark),
        "days": days.named,
        # sessions have no edges that all keys share
        "unit": "slot" if shown.spec.window.merging else "window",
        "slots": SlotsByDay.of(shown.spec, shown.store).on_days(days),
        "incomplete": found,
        "causes": {name: by_cause[name] for name in _MEANINGS if by_cause[name]},
        "listed": [
            {**slot.to_json(), "why": [asdict(cause) for cause in why]}
            for _, _, slot, why in newest
        ],
        "left_out": max(rows - skip - len(newest), 0),
    }


def _incomplete(shown: Shown, days: Days) -> Iterator[tuple[Slot, list[Cause]]]:
    touched = [shares_instants_with(within) for within in shown.causes.touched]
    wanted = any_of(touched, ds.scalar(False)) if touched else None
    for slot in slots_of(shown, days, wanted, incomplete=True):
        if why := shown.causes.why(slot):
            yield slot, why


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason for which a slot is not complete.

    Attributes:
        name: one of `_MEANINGS`.
        sentence: the reason in words and figures.
    """

    name: str
    sentence: str


@dataclass(frozen=True)
class Causes:
    """Finds the reasons why slots of a pipeline are not complete.

    Attributes:
        spec: the pipeline.
        watermark: the watermark; None: its own records do not determine it.
        changed: the event times of days to recompute, by arrival day.
        missing: the event times of days with missing rows, by arrival day.
        ended: the ranges closed by `--close`: nothing is accepted into their windows.
        open_sessions: the range from the first slot with a session that can change; None: no
            sessions.
    """

    spec: PipelineSpec
    watermark: HeldBack | None
    changed: Mapping[date, Collection[TimeRange]]
    missing: Mapping[date, Collection[TimeRange]]
    ended: Collection[TimeRange]
    open_sessions: TimeRange | None

    @property
    def touched(self) -> list[TimeRange]:
        """The event times whose slots are not complete, whatever their own rows show."""
        of_days = [*self.changed.values(), *self.missing.values()]
        found = [one for times in of_days for one in times]
        return found if self.open_sessions is None else [*found, self.open_sessions]

    def fires_at_ms(self, slot: Slot) -> int:
        """The watermark at which a slot fires."""
        return slot.end_ms - 1

    def closes_at_ms(self, slot: Slot) -> int | None:
        """The watermark at which a slot is closed; None: it never is."""
        closes_ms = cleanup_time(slot.end_ms - 1, allowed_lateness_ms=self.spec.allowed_lateness)
        return None if closes_ms == MAX_WATERMARK else closes_ms

    def why(self, slot: Slot) -> list[Cause]:
        """The reasons why a slot is not complete; empty: it is complete."""
        return [*self._by_state(slot), *self._by_counts(slot), *self._by_landing(slot)]

    def _by_state(self, slot: Slot) -> Iterator[Cause]:
        if slot.state == "gap":
            slots = f"{slot.slots:,} slots in a row without" if slot.slots > 1 else "without"
            yield Cause("gap", f"{slots} a record, behind the first slot that accepted one")
        elif slot.state == "open" and self.spec.window.all_time:
            yield Cause("open", "a window of all time, which has no end: only its trigger fires it")
        elif slot.state == "open":
            lacking = self._lacking(slot, self.fires_at_ms(slot), "its end")
            yield Cause("open", f"not {self._what_open_is_not()}: {lacking}")
        elif slot.state == "fired":
            if any(slot.start_ms in within for within in self.ended):
                return  # one that no watermark closes: of all time, or of a saturated lateness
            closes_ms = self.closes_at_ms(slot)
            if closes_ms is None:
                yield Cause("fired", "open to late records for ever, by the allowed lateness")
                return
            lacking = self._lacking(slot, closes_ms, "the end of the allowed lateness")
            yield Cause("fired", f"open to late records: {lacking}")
        elif self.open_sessions and slot.accepted and slot.start_ms in self.open_sessions:
            yield Cause("open_session", f"the watermark has passed it; {_MEANINGS['open_session']}")

    def _what_open_is_not(self) -> str:
        """What an open slot waits for; its windows may have fired early."""
        if self.spec.result == PAIRS:  # pairs need no firing
            return "closed"
        return "ended" if self.spec.fires_by.fires_early else "fired"

    def _lacking(self, slot: Slot, threshold_ms: int, what: str) -> str:
        """The distance from the watermark to a threshold of a slot, as a text."""
        known = self.watermark
        watermark_ms = None if known is None else known.watermark_ms
        if watermark_ms is not None and is_window_fired(threshold_ms, watermark_ms=watermark_ms):
            if slot.spec_fingerprint in {None, self.spec.spec_fingerprint}:
                return f"the watermark has reached {what} since the last run"
            return (
                f"by the file's rules the watermark has reached {what}; it was published by other "
                "rules, and the next scheduled run computes it again"
            )
        if known is None or known.arrived_before is not None:  # that of the last run is not known
            return f"the watermark had not reached {what} at the last run"
        if watermark_ms is None:
            return f"there {'may be' if known.at_least else 'is'} no watermark yet"
        return f"the watermark is {duration(threshold_ms - watermark_ms)} before {what}"

    def _by_counts(self, slot: Slot) -> Iterator[Cause]:
        counts = slot.counts
        known = slot.accepted + slot.refused
        if slot.late or slot.late_at_least:
            yield Cause("late", self._of_late(slot, known))
        if outside := counts["no_window"]:
            yield Cause("no_window", f"{outside:,} of {known:,} records lie in no window")
        if missed := counts["missed_pairs"]:
            yield Cause(
                "missed_pairs",
                f"{number_of(missed, 'record')} came too late for it, but not for other windows",
            )
        if dropped := counts.get("unfired"):
            yield Cause(
                "unfired", f"{number_of(dropped, 'record')} dropped before they were in a firing"
            )

    def _of_late(self, slot: Slot, known: int) -> str:
        """The number of late records as a text; if their rows are removed, that there may be some.

        Late records of event times between two windows count in the earlier one.
        """
        removed = "rows of quarantine that would show it are removed"
        if not slot.late:
            return f"records may have come too late: {removed}"
        place = " in it or between it and the next window" if self.spec.window.leaves_gaps else ""
        share = percent(slot.late, known)
        more = f", perhaps more: {removed}" if slot.late_at_least else ""
        return f"{slot.late:,} of {known:,} records{place} came too late ({share}){more}"

    def _by_landing(self, slot: Slot) -> Iterator[Cause]:
        for name, days, meaning in (
            ("to_recompute", self.changed, "has changed since, or landed late"),
            ("rows_missing", self.missing, "has lost rows since"),
        ):
            found = [day for day, times in days.items() if any(map(slot.within.overlaps, times))]
            if found:
                others = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
                yield Cause(name, f"the landing of {min(found)}{others} {meaning}")
