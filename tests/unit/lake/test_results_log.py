"""As of when the results of another pipeline are known, by its ledger."""

from __future__ import annotations

from strandline.lake.entry import Entry
from strandline.lake.results_log import known_over
from strandline.model.intervals import DAY_MS, TimeRange


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def ran(start: int, end: int, horizon: int, kind: str = "backfill") -> Entry:
    within = days(start, end)
    return Entry("r-1", 1, "published", kind, range=within, horizon_ms=horizon * DAY_MS)


def known(*entries: Entry) -> float | None:
    """The day as of which results of the days 1 to 5 are known."""
    known_ms = known_over([*entries], days(1, 5))
    return None if known_ms is None else known_ms / DAY_MS


def test_the_newest_run_over_all_of_them_tells_it():
    assert known() is None
    assert known(ran(1, 3, 9), ran(3, 5, 9)) is None  # nobody has run over all
    assert known(ran(0, 9, 7), ran(1, 5, 8)) == 8
    assert known(ran(0, 9, 8), ran(1, 5, 7)) == 7  # as of an earlier horizon again


def test_a_run_since_that_knows_less_of_a_part_does_as_well():
    assert known(ran(0, 9, 8), ran(3, 4, 9)) == 8
    assert known(ran(0, 9, 8), ran(3, 4, 6)) == 6
    assert known(ran(0, 9, 8), ran(6, 9, 6)) == 8  # not of these results


def test_a_run_that_was_taken_back_counts_for_nothing():
    assert known(ran(0, 9, 7), ran(0, 9, 8), ran(0, 9, 7, "revert")) == 7
    assert known(ran(0, 9, 8), ran(0, 9, 8, "revert")) is None
    assert known(ran(0, 9, 7), ran(3, 4, 6), ran(3, 4, 7, "revert")) == 7
