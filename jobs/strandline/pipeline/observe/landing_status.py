"""The landing status: what has landed, compared with what was observed; found before observing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import observed_days, read_event_times, read_facts
from strandline.model.facts import DayFacts, KnownDays, LandingChanges
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, midnight_of
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class LandingStatus:
    """The landing status: what has landed, compared with what was observed.

    Attributes:
        landed: the facts of each arrival day that has begun, in the landing table.
        known: the facts of each day when it was observed.
        observed: the days that were observed under the pipeline's present settings.
        changes: the changes of the observed days.
        event_times: the event times of the records of each day with missing rows.
        accepted: days with missing rows that the run uses as they are now.
        recomputes: whether a changed day makes the run recompute everything since; false where
            changes are rebuilt in another way.
        ready_ms: days that end by then have ended, by the clock and by `ready_after`.
        landing_version: the version of the landing table.
        landing_id: the id of that table.
        timeline: the opened timeline table.
    """

    landed: Mapping[date, DayFacts]
    known: Mapping[date, DayFacts]
    observed: frozenset[date]
    changes: LandingChanges
    event_times: Mapping[date, Sequence[TimeRange]]
    landing_version: int
    timeline: TimelineTable
    landing_id: str | None = None
    accepted: frozenset[date] = frozenset()
    ready_ms: int = EVERYTHING.end_ms
    recomputes: bool = True

    @property
    def missing(self) -> frozenset[date]:
        """The days with missing rows that still count as they were observed."""
        return self.changes.missing - self.accepted

    def missing_within(self, events: TimeRange) -> list[date]:
        """The days with missing rows that were observed with records in a range of event times."""
        return sorted(
            day
            for day in self.missing
            if any(times.overlaps(events) for times in self.event_times.get(day, ()))
        )

    def missing_since(self, since_ms: int, before_ms: int) -> list[date]:
        """The days since an instant with missing rows of event times before another one."""
        events = TimeRange(EVERYTHING.start_ms, before_ms)
        return [day for day in self.missing_within(events) if midnight_of(day) >= since_ms]

    def last_missing_within(self, events: TimeRange) -> int | None:
        """The largest of some event times that a missing record may have had; None: none had."""
        return max(
            (
                times.end_ms - 1
                for day in self.missing
                for times in self.event_times.get(day, ())
                if times.overlaps(events)
            ),
            default=None,
        )

    def days_to_observe(self, spec: PipelineSpec, horizon_ms: int) -> list[date]:
        """The whole days below a horizon to observe now, ascending.

        If each day depends on the one before, these are all days from the first such day on.

        Raises:
            InputError: a day with missing rows would have to be observed again.
        """
        days = sorted({*self.landed, *self.accepted, *self.changes.changed})
        end_ms = min(horizon_ms, self.ready_ms)
        whole = [day for day in days if midnight_of(day) + DAY_MS <= end_ms]
        again = self.changes.changed | self.accepted
        new = [day for day in whole if day not in self.observed or day in again]
        if not (spec.days_follow_each_other and new):
            return new
        following = [day for day in whole if day >= new[0]]
        known_missing = sorted(
            d for d in self.missing & self.observed if new[0] <= d and midnight_of(d) < horizon_ms
        )
        if known_missing:
            raise InputError(
                f"{spec.pipeline}: source.table",
                f"{new[0]} has to be observed, and with it all days after it, but rows of "
                f"{known_missing[0]} that were observed are missing",
                "land them again, or use what remains with --accept-loss REASON",
            )
        return following

    def days_whose_rows_may_go(
        self, days: Collection[date], to_recompute: Sequence[date]
    ) -> list[date]:
        """The days to observe again whose malformed rows may have disappeared.

        An unchanged row can only become well-formed by new settings. Then it stays in quarantine
        until its range is rebuilt, that is, from the first day to recompute on.
        """
        other_rows = (set(days) - self.known.keys()) | self.changes.changed | self.accepted
        first_to_recompute = to_recompute[0] if to_recompute else date.max
        return sorted(day for day in days if day in other_rows or day >= first_to_recompute)

    def to_recompute_among(self, new_days: Collection[date]) -> list[date]:
        """The whole days observed now that change published results."""
        if not self.recomputes:
            return []
        to_recompute = self.changes.changed | self.changes.behind | self.accepted
        return sorted(to_recompute & set(new_days))

    def facts_of(self, days: Collection[date]) -> dict[date, DayFacts]:
        """The facts to store for some days; days with missing rows keep their earlier facts."""
        nothing = DayFacts(0, "", self.landing_version, table_id=self.landing_id)
        return {day: self.landed.get(day, nothing) for day in days if day not in self.missing}

    @property
    def of_an_earlier_landing(self) -> LandingStatus:
        """The same status for a landing table read at a version before some days were observed.

        For these days that version counts. Other days with missing rows stay as they were observed.
        """
        return self.accepting([*self.missing & self.known_of_newer])

    @property
    def known_of_newer(self) -> frozenset[date]:
        """The days that were observed in a newer version of the landing table."""
        return frozenset(
            day
            for day, facts in self.known.items()
            if facts.landing_version > self.landing_version
            and facts.table_id in {None, self.landing_id}
        )

    def observed_otherwise(self, newest: Mapping[date, DayFacts], until_ms: int) -> list[date]:
        """The days before an instant that others have observed since, with rows not read here.

        Args:
            newest: the facts of each day when it was last observed.
            until_ms: the instant.
        """
        since = [day for day, facts in newest.items() if facts != self.known.get(day)]
        read = {day: facts.content for day, facts in self.facts_of(since).items()}
        others = (day for day in since if newest[day].content != read.get(day))
        return sorted(day for day in others if midnight_of(day) < until_ms)

    def accepting(self, days: Collection[date]) -> LandingStatus:
        """The same status for a run that uses some days with missing rows as they are now."""
        return replace(self, accepted=frozenset(days) & self.changes.missing)


def times_of_missing(
    spec: PipelineSpec, missing: Collection[date], times: Mapping[date, Sequence[TimeRange]]
) -> dict[date, list[TimeRange]]:
    """The event times of records that can no longer be read as observed, by arrival day.

    The event times of the day itself, and with `deduplicate` those of the days whose duplicates
    depend on it.

    Args:
        spec: the pipeline.
        missing: the days with missing rows.
        times: the event times of the days when observed.
    """
    rule = spec.source.deduplicate
    reach = 0 if rule is None else rule.days_back
    return {
        day: [
            event_times
            for other, of in times.items()
            if 0 <= (other - day).days <= reach
            for event_times in of
        ]
        for day in missing
    }


def landing_status_of(landing: Landing, store: Store, state: PipelineState) -> LandingStatus:
    """The landing status by the landing, the timeline and the ledger."""
    timeline = TimelineTable.open(store)
    known, observed = read_facts(timeline), observed_days(timeline)
    changes = landing.changes(
        KnownDays(
            known,
            frontier_ms=state.frontier_within(landing.log.known_until_ms),
            published_ms=state.largest_horizon(),
            first_id=state.first_landing_id,
        )
    )
    fingerprint = landing.spec.timeline_fingerprint
    return LandingStatus(
        landed=landing.begun,
        known=known,
        observed=frozenset(observed.get(fingerprint, set())),
        changes=changes,
        event_times=_times(landing.spec, timeline, changes.missing) if changes.missing else {},
        landing_version=landing.version,
        landing_id=landing.table_id,
        timeline=timeline,
        ready_ms=landing.ready_ms,
        recomputes=landing.recomputes_changes,
    )


def _times(
    spec: PipelineSpec, timeline: TimelineTable, missing: Collection[date]
) -> dict[date, list[TimeRange]]:
    of_missing_alone = spec.source.deduplicate is None
    return times_of_missing(
        spec, missing, read_event_times(timeline, missing if of_missing_alone else None)
    )
