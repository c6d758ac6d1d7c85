"""A day of arrivals is over so long after its midnight as its pipeline says. No Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from changes import march
from lakes import a_spec, instant

from strandline.errors import InputError
from strandline.lake.timeline.rows import TimelineTable
from strandline.model.facts import DayFacts, KnownDays, LandedDays, compare
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.observe.observation import DaysToObserve
from strandline.pipeline.request.request import Request

TWO_HOURS = 2 * 3_600_000


def asked(to: str, now: str | None, **more: Any) -> Request:
    now_ms = None if now is None else instant(now)
    return Request("advance", to_ms=instant(to), now_ms=now_ms, **more)


def a_world(*landed: int, observed: tuple[int, ...] = (), now: str | None = None) -> LandingStatus:
    facts = {march(day): DayFacts(1, "as it is", 0) for day in landed}
    known = {march(day): facts[march(day)] for day in observed}
    changes = compare(KnownDays(known), LandedDays(facts))
    ready_ms = EVERYTHING.end_ms if now is None else instant(now) - TWO_HOURS
    seen = frozenset(known)
    return LandingStatus(facts, known, seen, changes, {}, 0, TimelineTable(None), ready_ms=ready_ms)


@pytest.mark.parametrize(
    ("to", "now", "until"),
    [
        ("4", "4 01:59", "3"),
        ("4 01:30", "4 01:30", "3"),
        ("4", "4 02:00", "4"),
        ("2", "4 00:10", "2"),
        ("4", None, "4"),
    ],
    ids=["too early", "by the day", "just ready", "of long ago", "nobody asks the clock"],
)
def test_a_scheduled_run_goes_up_to_the_last_midnight_that_is_ready(to, now, until):
    request = asked(to, now).ready(TWO_HOURS)
    assert request.until_ms == instant(until)
    assert bool(request.notes) == (until != "4" and to != until)
    if request.notes:
        assert request.notes == [
            "the day before 2024-03-04T00:00:00Z is not ready (source.ready_after): this run goes "
            "up to 2024-03-03T00:00:00Z"
        ]
    assert request.ready(TWO_HOURS) == request


def test_it_waits_for_days_where_that_is_asked_for_and_not_at_all_where_nothing_is():
    assert asked("4", "4 00:30").ready(3 * 86_400_000).until_ms == instant("1")
    assert asked("4", "4").ready(None) == asked("4", "4")


def test_a_run_by_hand_is_held_back_by_nothing():
    by_hand = Request("backfill", TimeRange(0, 1), now_ms=instant("4"))
    assert by_hand.ready(TWO_HOURS) is by_hand


def test_a_day_that_is_not_ready_is_read_and_not_observed_as_a_whole():
    spec = a_spec(source__ready_after="2h")
    landing: Any = SimpleNamespace(spec=spec, days=[march(2), march(3), march(4)])
    early, later = (a_world(2, 3, 4, now=f"4 0{hour}:00") for hour in (1, 3))
    days = DaysToObserve.of(landing, early, instant("4 01:00"))
    assert (days.whole, days.partial) == ([march(2)], [march(3), march(4)])
    days = DaysToObserve.of(landing, later, instant("4 03:00"))
    assert (days.whole, days.partial) == ([march(2), march(3)], [march(4)])


def test_one_that_was_observed_before_somebody_asked_for_patience_counts_once():
    landing: Any = SimpleNamespace(spec=a_spec(), days=[march(2), march(3), march(4)])
    world = a_world(2, 3, 4, observed=(2, 3), now="4 01:00")
    days = DaysToObserve.of(landing, world, instant("4 01:00"))
    assert (days.whole, days.partial) == ([], [march(4)])
    grown = replace(world, landed={**world.landed, march(3): DayFacts(2, "grown", 1)})
    assert DaysToObserve.of(landing, grown, instant("4 01:00")).whole == []


def test_it_decides_no_number():
    waits, at_once = a_spec(source__ready_after="2h"), a_spec()
    assert waits.spec_fingerprint == at_once.spec_fingerprint
    assert waits.timeline_fingerprint == at_once.timeline_fingerprint
    assert at_once.spec_fingerprint == "d19f7a5be29e4654"  # as of old lakes


def test_a_negative_time_is_refused():
    with pytest.raises(InputError, match=r"source.ready_after: '-1h' is a negative duration"):
        a_spec(source__ready_after="-1h")
