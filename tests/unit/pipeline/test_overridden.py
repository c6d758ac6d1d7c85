"""Which ranges stand by rules of one run alone, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

from strandline.lake.ledger import Entry
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.overridden import of_overridden, overridden_ranges

SIX_HOURS = {"allowed_lateness": "6h"}


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def published(*steps: Entry) -> list[Entry]:
    """A ledger of published runs, one after the other."""
    return [
        replace(step, run_id=f"r-{number}", position=number) for number, step in enumerate(steps, 1)
    ]


def a_run(start: int, end: int, kind: str = "backfill", **more) -> Entry:
    return Entry("", 1, "published", kind, days(start, end), **more)


def test_a_range_by_other_rules_stands_until_another_run_publishes_into_it():
    entries = published(a_run(0, 9, "advance"), a_run(2, 6, overrides=SIX_HOURS))
    (one,) = overridden_ranges(entries)
    assert (one.windows, one.overrides, one.run_id) == (days(2, 6), SIX_HOURS, "r-2")
    later = [a_run(0, 9, "advance"), a_run(2, 6, overrides=SIX_HOURS), a_run(3, 4)]
    ranges = [found.windows for found in overridden_ranges(published(*later))]
    assert ranges == [days(2, 3), days(4, 6)]
    assert overridden_ranges(published(*later, a_run(0, 9, "advance"))) == []


def test_a_run_that_was_reverted_counts_nowhere():
    entries = published(a_run(2, 6, overrides=SIX_HOURS), a_run(2, 6, "revert"))
    assert overridden_ranges(entries) == []


def test_a_scheduled_run_that_recomputes_it_names_it_and_the_way_back():
    entries = published(a_run(2, 6, overrides=SIX_HOURS))
    (note,) = of_overridden("meter", entries, days(4, 20), by_hand=False)
    assert "windows from 1970-01-05T00:00:00Z to 1970-01-07T00:00:00Z" in note
    assert "run r-1 with allowed_lateness: 6h" in note
    assert "strandline backfill meter --start 1970-01-03T00:00:00Z --end 1970-01-07T" in note
    assert "--allowed-lateness 6h --reason" in note
    assert not [*of_overridden("meter", entries, days(6, 20), by_hand=False)]
    assert not [*of_overridden("meter", entries, days(4, 20), by_hand=True)]
