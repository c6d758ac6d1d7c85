"""What has landed, held against what was known of it: asked before anything is observed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from strandline.errors import InputError
from strandline.lake.landing import Landing
from strandline.lake.state import PipelineState
from strandline.lake.store import Store
from strandline.lake.timeline import observed_days, read_event_times, read_facts
from strandline.lake.timeline_rows import TimelineTable
from strandline.model.facts import DayFacts, KnownDays, LandingChanges
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, midnight_of
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class World:
    """What has landed, and what was known of it.

    Attributes:
        landed: what the landing table says of each arrival day that has begun.
        known: what it said when the day was observed.
        observed: the days that were observed under the pipeline's present rules.
        changes: what has become of the days that were observed before.
        event_times: those of the records of each day whose rows have gone.
        accepted: the days that the run goes by what is left of.
        owes: whether all is judged again from a day on that has changed; no: what it changes is
            set otherwise.
        ready_ms: the days that end by then are over, by the clock and by what the pipeline says.
        landing_version: the version of the landing table.
        landing_id: the table that it is a version of.
        timeline: the timeline table, as it was asked.
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
    owes: bool = True

    @property
    def lost(self) -> frozenset[date]:
        """The days whose rows have gone, and that still count as they were observed."""
        return self.changes.lost - self.accepted

    def lost_within(self, events: TimeRange) -> list[date]:
        """The days whose rows have gone that were observed with records of some event times."""
        return sorted(
            day
            for day in self.lost
            if any(held.overlaps(events) for held in self.event_times.get(day, ()))
        )

    def lost_since(self, since_ms: int, before_ms: int) -> list[date]:
        """Of the days from an instant on, those whose rows of event times before one have gone."""
        events = TimeRange(EVERYTHING.start_ms, before_ms)
        return [day for day in self.lost_within(events) if midnight_of(day) >= since_ms]

    def last_lost_within(self, events: TimeRange) -> int | None:
        """The largest of these event times that a record of such a day may have had."""
        return max(
            (
                held.end_ms - 1
                for day in self.lost
                for held in self.event_times.get(day, ())
                if held.overlaps(events)
            ),
            default=None,
        )

    def days_to_observe(self, spec: PipelineSpec, horizon_ms: int) -> list[date]:
        """The whole days below a horizon that are to be observed now, in their order.

        Where a day follows from the one before, all from the first of them on.

        Raises:
            InputError: one of those is to be observed again although rows of it have gone.
        """
        there = sorted({*self.landed, *self.accepted, *self.changes.changed})
        end_ms = min(horizon_ms, self.ready_ms)
        whole = [day for day in there if midnight_of(day) + DAY_MS <= end_ms]
        again = self.changes.changed | self.accepted
        new = [day for day in whole if day not in self.observed or day in again]
        if not (spec.days_follow_each_other and new):
            return new
        following = [day for day in whole if day >= new[0]]
        known_lost = sorted(
            d for d in self.lost & self.observed if new[0] <= d and midnight_of(d) < horizon_ms
        )
        if known_lost:
            raise InputError(
                f"{spec.pipeline}: source.table",
                f"{new[0]} has to be observed, and with it all days after it, but rows of "
                f"{known_lost[0]} that were observed have gone",
                "land them again, or go by what is left with --accept-loss REASON",
            )
        return following

    def days_whose_rows_may_go(self, days: Collection[date], owed: Sequence[date]) -> list[date]:
        """Of days that are observed again: those whose malformed rows may have vanished.

        What stands in the landing as before can only be malformed no longer by other rules. Such a
        row stays in quarantine until its range is rebuilt; so it is from the first day to
        recompute on.
        """
        other_rows = (set(days) - self.known.keys()) | self.changes.changed | self.accepted
        first_to_recompute = owed[0] if owed else date.max
        return sorted(day for day in days if day in other_rows or day >= first_to_recompute)

    def to_recompute_among(self, new_days: Collection[date]) -> list[date]:
        """Of the whole days that are observed now: those that change what may be published."""
        if not self.owes:
            return []
        owed = self.changes.changed | self.changes.behind | self.accepted
        return sorted(owed & set(new_days))

    def facts_of(self, days: Collection[date]) -> dict[date, DayFacts]:
        """What to keep of some days; of those whose rows have gone, what is kept already stays."""
        nothing = DayFacts(0, "", self.landing_version, table_id=self.landing_id)
        return {day: self.landed.get(day, nothing) for day in days if day not in self.lost}

    @property
    def of_an_earlier_landing(self) -> World:
        """The same, where the landing table is read as it was before some days were observed.

        Of these that counts. Other days whose rows have gone stand as they were observed.
        """
        return self.accepting([*self.lost & self.known_of_newer])

    @property
    def known_of_newer(self) -> frozenset[date]:
        """The days that somebody has observed in a newer version of the landing table."""
        return frozenset(
            day
            for day, said in self.known.items()
            if said.landing_version > self.landing_version
            and said.table_id in {None, self.landing_id}
        )

    def accepting(self, days: Collection[date]) -> World:
        """The same, where a run goes by what is left of some days whose rows have gone."""
        return replace(self, accepted=frozenset(days) & self.changes.lost)


def times_of_lost(
    spec: PipelineSpec, lost: Collection[date], times: Mapping[date, Sequence[TimeRange]]
) -> dict[date, list[TimeRange]]:
    """The event times of records that can no longer be read as they were, by the day that has lost.

    Those of the day itself, and where rows decide what is a duplicate, of the days that they do so
    for.

    Args:
        spec: the pipeline.
        lost: the days whose rows have gone.
        times: the event times that days were observed with.
    """
    rule = spec.source.deduplicate
    reach = 0 if rule is None else rule.days_back
    return {
        day: [
            held for other, of in times.items() if 0 <= (other - day).days <= reach for held in of
        ]
        for day in lost
    }


def world_of(landing: Landing, store: Store, state: PipelineState) -> World:
    """What has landed, held against what the timeline and the ledger know of it."""
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
    return World(
        landed=landing.begun,
        known=known,
        observed=frozenset(observed.get(fingerprint, set())),
        changes=changes,
        event_times=_times(landing.spec, timeline, changes.lost) if changes.lost else {},
        landing_version=landing.version,
        landing_id=landing.table_id,
        timeline=timeline,
        ready_ms=landing.ready_ms,
        owes=landing.recomputes_changes,
    )


def _times(
    spec: PipelineSpec, timeline: TimelineTable, lost: Collection[date]
) -> dict[date, list[TimeRange]]:
    of_lost_alone = spec.source.deduplicate is None
    return times_of_lost(spec, lost, read_event_times(timeline, lost if of_lost_alone else None))
