"""The facts of arrival days where the file counts rows for other days than before."""

from datetime import date

import pytest

from strandline.model.facts import DayFacts, KnownDays, LandedDays, compare
from strandline.model.intervals import midnight_of

DAYS = [date(2024, 11, day) for day in (1, 2, 3, 4)]
ALL_PUBLISHED = midnight_of(date(2024, 11, 5))


def facts(by: str, *rows: int, table_id: str | None = None) -> dict[date, DayFacts]:
    """By `before` the digests are of an earlier version of the program, which kept a number."""
    prefix = {"": "files of ", "before": ""}.get(by, f"{by}:")
    return {
        day: DayFacts(count, f"{prefix}{count}", version, table_id=table_id)
        for version, (day, count) in enumerate(zip(DAYS, rows, strict=False), 1)
    }


def known(by: str, *rows: int, table_id: str | None = None) -> KnownDays:
    return KnownDays(facts(by, *rows, table_id=table_id), ALL_PUBLISHED, ALL_PUBLISHED)


def landed(by: str, *rows: int, kept_since: int = 9, table_id: str | None = None) -> LandedDays:
    """A table of which no commit has removed rows since a version."""
    return LandedDays(
        facts(by, *rows, table_id=table_id),
        by_rows=True,
        keeps_rows_since=lambda version: version >= kept_since,
    )


@pytest.mark.parametrize("before", ["", "landed"], ids=["partitions", "an expression"])
def test_rows_that_count_for_other_days_since_an_edit_are_not_missing(before):
    by_utc = dict(list(facts("utc", 0, 100, 112).items())[1:])  # no row of the first day
    found = compare(
        known(before, 12, 109, 91),
        LandedDays(by_utc, by_rows=True, keeps_rows_since=lambda version: version == 1),
    )
    assert (found.changed, found.missing) == ({*DAYS[:3]}, frozenset())


@pytest.mark.parametrize("new_rows", [99, 200, 9999])
def test_rows_that_are_removed_beside_an_edit_are_missing_however_many_come(new_rows):
    """Days that landed since stood in for them, and windows were deleted without a word."""
    by_utc = landed("utc", 12, 9, 91, new_rows, kept_since=2)
    found = compare(known("landed", 12, 109, 91), by_utc)
    assert found.missing == {DAYS[1]}


@pytest.mark.parametrize(("rows", "missing"), [(212, False), (211, True), (None, True)])
def test_where_commits_have_been_cleaned_up_the_number_of_all_rows_shows_if_rows_are_missing(
    rows, missing
):
    """Delta cleans its log after 30 days: every day that an edit has moved was said to be lost."""
    by_utc = LandedDays(facts("utc", 0, 100, 112), by_rows=True, rows=rows)
    found = compare(known("landed", 12, 109, 91), by_utc)
    assert bool(found.missing) == missing


def test_rows_of_a_table_that_is_created_again_beside_an_edit_are_compared_by_their_days():
    before = known("landed", 12, 109, 91, table_id="one")
    found = compare(before, landed("utc", 12, 100, 99, kept_since=0, table_id="other"))
    assert found.missing == {DAYS[1]}


def test_a_day_that_loses_rows_without_an_edit_lacks_them_however_many_came_elsewhere():
    found = compare(known("utc", 12, 109, 91), landed("utc", 12, 100, 999))
    assert (found.changed, found.missing) == ({DAYS[2]}, {DAYS[1]})


def test_days_that_an_earlier_version_has_observed_go_by_the_present_expression():
    """Each of them counted as moved: all were processed again, and none could lack rows."""
    found = compare(known("before", 12, 109, 91), landed("utc", 12, 9, 91, 200, kept_since=0))
    assert (found.rewritten, found.changed) == ({DAYS[0], DAYS[2]}, frozenset())
    assert (found.missing, found.behind) == ({DAYS[1]}, {DAYS[3]})
    assert not compare(known("utc", 12), landed("utc", 12)).rewritten  # once
    hashes_below_0 = KnownDays({DAYS[0]: DayFacts(12, "-5", 1)})
    (of_files,) = facts("", 12).values()
    assert compare(hashes_below_0, LandedDays({DAYS[0]: of_files}, by_rows=True)).changed
    by_rows = {DAYS[0]: DayFacts(12, "utc:-5", 1)}
    assert compare(hashes_below_0, LandedDays(by_rows, by_rows=True)).rewritten
