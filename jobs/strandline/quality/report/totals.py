"""The number of records by outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.quality.report.calendar import gaps_in
from strandline.quality.report.quarantine import REFUSED
from strandline.quality.report.tables import ReportTables
from strandline.spec import PipelineSpec
from strandline.spec.joined import JoinedSpec

MEANINGS = {
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
    late = MEANINGS["late"]
    if isinstance(spec, JoinedSpec):
        late = "arrived behind the watermark"
    elif spec.window.leaves_gaps:
        late += ", or lies between two windows and arrived behind the watermark"
    return MEANINGS | {"late": late}


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
