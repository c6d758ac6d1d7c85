"""Commits an observation: quarantine, days to recompute, commits to the timeline, mostly one."""

from __future__ import annotations

from datetime import date

from strandline.lake.publish.staging import Part
from strandline.lake.timeline.commit import DaysToWrite, commit_days, refresh_facts
from strandline.lake.timeline.rows import SCHEMA as TIMELINE_SCHEMA
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import observed_days, read_facts
from strandline.pipeline.observe.malformed import Malformed, publish_malformed
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.journal import Journal


def commit_observed(
    ctx: Context, journal: Journal, observation: Observation, malformed: Malformed
) -> None:
    """Commit the observations of a run: malformed rows, the books of the days, the timeline.

    The caller holds the lock and has finished any dead publish.
    """
    ctx.store.create("timeline", TIMELINE_SCHEMA, ["arrival_date"])
    is_new = observation.new_days or observation.status.changes.rewritten
    if is_new or malformed.rows is not None:
        _commit_new_days(ctx, journal, observation, malformed.rows)
    journal.write("observed", books=malformed.books)


def _commit_new_days(
    ctx: Context, journal: Journal, observation: Observation, malformed: Part | None
) -> None:
    """Commit new days: malformed rows into quarantine, then commits to the timeline, mostly one."""
    spec, status = observation.history.spec, observation.status
    newest = status.timeline.newest(ctx.store)
    days = _not_observed_meanwhile(observation, newest)
    of_other_rules = observed_days(newest).keys() - {spec.timeline_fingerprint}
    to_recompute = [day for day in observation.days_to_recompute if day in days]
    if to_recompute:  # before the days are observed, so that a run killed in between loses none
        journal.write("owed", owed=to_recompute)
    journal.quarantined = publish_malformed(ctx, malformed, days, observation)
    if days or of_other_rules:
        written = DaysToWrite(
            spec,
            observation.axes,
            observation.fresh,
            observation.observed_steps,
            days,
            status.facts_of(days),
            observation.violations,
        )
        commit_days(ctx.store, written, replace=bool(of_other_rules), missing=status.missing)
    refresh_facts(ctx.store, status.facts_of(status.changes.rewritten - set(days)))


def _not_observed_meanwhile(observation: Observation, newest: TimelineTable) -> list[date]:
    """The new days that no other run has observed since this run began.

    If days depend on the days before them, they count only if these are unchanged.
    """
    spec, status = observation.history.spec, observation.status
    facts, observed = read_facts(newest), observed_days(newest)
    by_now = observed.get(spec.timeline_fingerprint, set())
    days = [
        day
        for day in observation.new_days
        if facts.get(day) == status.known.get(day) and (day in by_now) == (day in status.observed)
    ]
    is_as_before = len(days) == len(observation.new_days) and by_now == status.observed
    return days if is_as_before or not spec.days_follow_each_other else []
