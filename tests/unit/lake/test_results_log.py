"""As of when the results of another pipeline are known, by its ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from strandline.lake.entry import Entry
from strandline.lake.ledger import taken_back
from strandline.lake.results_log import known_over
from strandline.model.intervals import DAY_MS, TimeRange


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def ran(start: int, end: int, horizon: int, kind: str = "backfill") -> Entry:
    within = days(start, end)
    return Entry("r-1", 1, "published", kind, range=within, horizon_ms=horizon * DAY_MS)


def numbered(entries: Iterable[Entry]) -> list[Entry]:
    return [replace(entry, position=number) for number, entry in enumerate(entries)]


def known(*entries: Entry) -> float | None:
    """The day as of which results of the days 1 to 5 are known."""
    known_ms = known_over(numbered(entries), days(1, 5))
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


def test_a_revert_takes_back_the_last_run_over_just_its_range():
    runs = [ran(0, 9, 7), ran(3, 4, 8), ran(0, 9, 8), ran(0, 9, 7, "revert"), ran(3, 4, 8)]
    runs += [ran(3, 4, 7, "revert"), ran(5, 6, 9, "revert")]
    pairs = [(done.position, back.position) for done, back in taken_back(numbered(runs))]
    assert pairs == [(2, 3), (4, 5)]
