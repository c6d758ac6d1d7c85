"""The tables from which a report is made, and their numbers of records by outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pandas as pd

from strandline.quality.report.calendar import gaps_in
from strandline.quality.report.held_back_by import HeldBack
from strandline.quality.report.quarantine import REFUSED
from strandline.spec import PipelineSpec
from strandline.spec.joined import JoinedSpec


@dataclass(frozen=True)
class ReportTables:
    """The tables from which a report is made.

    Each table may be empty, but has its columns; further columns are ignored. Instants are
    `datetime64` columns with a time zone, dates are `datetime.date`.

    Attributes:
        completeness: the table `completeness`, and `missed`: the records that came too late for a
            slot's window, also those that another window holds or counts; and optionally
            `missed_at_least`: whether there may be more, whose rows of quarantine are removed.
        quarantine: counts of quarantined records: `reason`, `day` (the table's `quarantine_date`),
            `records`.
        lateness: counts of late records by lateness: `late_by_ms` (may be rounded up), `records`.
        channels: the `timeline`'s rows of kind `channel`: `channel`, `arrival_date`, `settled_ms`
            and optionally `pending_ms`, with `emitted_ms`: when a tick emits it.
        runs: a document for each run, newest first and without upkeep, as `strandline runs` has it;
            those that the report lists (`listed_runs`) as `strandline runs show` has them.
        latest: rows as in `channels` up to the last observed day, with the last row of each
            channel; None: `channels` has them.
        processed_ms: the midnight up to which everything is processed, in ms; None: there is none.
        closed_ms: the instant before which no window can change any more, in ms; None: all
            published slots are closed.
        watermark: the combined watermark; None: it is not known.
        records: the well-formed records of each shown arrival day, and of the eight weeks before.
        values: counts of late and of malformed rows by the values of low-cardinality columns:
            `group`, `column`, `value`, `records`; None: not known.
        advice: the last result of the advisor; None: there is none.
        before: the summary of the previous report; None: there was none.
    """

    completeness: pd.DataFrame
    quarantine: pd.DataFrame
    lateness: pd.DataFrame
    channels: pd.DataFrame
    runs: Sequence[Mapping[str, Any]]
    latest: pd.DataFrame | None = None
    processed_ms: int | None = None
    closed_ms: int | None = None
    watermark: HeldBack | None = None
    records: Mapping[date, int] = field(default_factory=dict)
    values: pd.DataFrame | None = None
    advice: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ShownDays:
    """The days that a report shows, and the totals over all days.

    Attributes:
        since: the first shown day; None: the first of all days.
        until: the last shown day, inclusive; None: the last of all days.
        totals: over all days: `first_day`, `last_day`, `slots`, `windows`, `quarantine`.
    """

    since: date | None
    until: date | None
    totals: Mapping[str, Any]


_MEANINGS = {
    "late": "arrived after its window had closed",
    "no_window": "lies in no window",
    "null_event_time": "has no event time",
    "unparsable_event_time": "has an event time that is not a time",
    "null_arrival": "has no arrival",
    "arrival_outside_partition": "arrived outside its arrival date",
    "ahead_of_arrival": "is too far in the future",
    "null_channel": "has no channel",
    "undeclared_channel": "has a channel that is not declared",
    "null_key": "has a key that is null",
    "invalid": "does not meet the pipeline’s own rule",
    "duplicate": "has been seen before",
    "event_time_out_of_range": "lies outside the years 0001 to 9999",
}
"""The meaning of each reason of quarantine."""


def meanings_for(spec: PipelineSpec) -> Mapping[str, str]:
    """The meaning of each reason; an interval join has no windows that close, others leave gaps."""
    late = _MEANINGS["late"]
    if isinstance(spec, JoinedSpec):
        late = "arrived behind the watermark"
    elif spec.window.leaves_gaps:
        late += ", or lies between two windows and arrived behind the watermark"
    return _MEANINGS | {"late": late}


@dataclass(frozen=True)
class Reason:
    """The number of records quarantined for a reason."""

    name: str
    records: int
    is_refused: bool


@dataclass(frozen=True)
class Totals:
    """The number of records by outcome, over all slots and the whole quarantine.

    An accepted record, and one that is missed, counts in each of its windows. `missed_at_least`:
    more may be missed, whose rows of quarantine are removed.
    """

    on_time: int
    late_accepted: int
    late: int
    missed: int
    no_window: int
    slots: int
    closed: int
    gaps: int
    reasons: tuple[Reason, ...]
    missed_at_least: bool = False

    @property
    def evaluated(self) -> int:
        """The number of accepted and missed records."""
        return self.on_time + self.late_accepted + self.missed

    @property
    def malformed(self) -> int:
        """The number of malformed rows, which are quarantined without comparison to a watermark."""
        return sum(reason.records for reason in self.malformed_reasons)

    @property
    def malformed_reasons(self) -> tuple[Reason, ...]:
        """The reasons of malformed records, the most frequent first."""
        return tuple(reason for reason in self.reasons if not reason.is_refused)


def totals_of(tables: ReportTables) -> Totals:
    """The number of records by outcome on the shown days."""
    slots = tables.completeness
    reasons = tables.quarantine.groupby("reason")["records"].sum()
    found = [Reason(str(name), int(count), name in REFUSED) for name, count in reasons.items()]
    is_gap = slots["gap"].astype(bool)
    return Totals(
        on_time=int(slots["on_time"].sum()),
        late_accepted=int(slots["late_accepted"].sum()),
        late=int(slots["late"].sum()),
        missed=int(slots["missed"].sum()),
        no_window=int(slots["no_window"].sum()),
        slots=int((~is_gap).sum()),
        closed=int((~is_gap & (slots["state"] == "closed")).sum()),
        gaps=gaps_in(slots),
        reasons=tuple(sorted(found, key=lambda one: (not one.is_refused, -one.records, one.name))),
        missed_at_least="missed_at_least" in slots and bool(slots["missed_at_least"].any()),
    )
