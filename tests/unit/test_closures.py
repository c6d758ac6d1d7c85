"""Which windows `--close` keeps closed, by the ledger; and what a run plans around them."""

from __future__ import annotations

from strandline.engine.history import Closure
from strandline.lake.ledger import Entry
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange
from strandline.pipeline.planning import closures_in


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def ran(start, end, horizon=20, **more) -> Entry:
    within = days(start, end)
    more = {"kind": "backfill", "step": "published"} | more
    return Entry("r-1", 1, range=within, horizon_ms=horizon * DAY_MS, **more)


def closed(start: int, end: int, horizon: int = 20) -> Closure:
    return Closure(days(start, end), horizon * DAY_MS)


def test_a_closed_range_stays_closed_whatever_runs_over_it_without_reopening():
    entries = [ran(1, 9, closed=True), ran(0, 30), ran(0, 30, 25, kind="advance")]
    assert closures_in(entries, EVERYTHING) == [closed(1, 9)]


def test_only_what_was_published_counts():
    assert closures_in([ran(1, 9, closed=True, step="rejected")], EVERYTHING) == []


def test_reopening_a_part_leaves_the_rest_closed():
    entries = [ran(1, 9, closed=True), ran(3, 5, reopened=True)]
    assert closures_in(entries, EVERYTHING) == [closed(1, 3), closed(5, 9)]
    assert closures_in(entries, days(3, 5)) == []
    assert closures_in([*entries, ran(0, 30, 30, reopened=True)], EVERYTHING) == []


def test_closing_again_at_another_horizon_wins_where_it_was_asked():
    entries = [ran(1, 9, closed=True), ran(5, 12, 30, closed=True, reopened=True)]
    assert closures_in(entries, EVERYTHING) == [closed(1, 5), closed(5, 12, 30)]
    assert closures_in(entries, days(0, 2)) == [closed(1, 5)]
