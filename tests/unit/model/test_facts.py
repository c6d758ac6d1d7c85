"""The facts of arrival days where the file counts rows for other days than before."""

from datetime import date

import pytest

from strandline.model.facts import DayFacts, KnownDays, LandedDays, compare
from strandline.model.intervals import midnight_of

DAYS = [date(2024, 11, day) for day in (1, 2, 3)]
ALL_PUBLISHED = midnight_of(date(2024, 11, 5))


def facts(by: str, *rows: int) -> dict[date, DayFacts]:
    return {
        day: DayFacts(count, f"{by}:{count}" if by else f"files of {day}", 1)
        for day, count in zip(DAYS, rows, strict=False)
    }


def known(by: str, *rows: int) -> KnownDays:
    return KnownDays(facts(by, *rows), ALL_PUBLISHED, ALL_PUBLISHED)


@pytest.mark.parametrize("before", ["", "landed"], ids=["partitions", "an expression"])
def test_rows_that_count_for_other_days_since_an_edit_are_not_missing(before):
    by_utc = dict(list(facts("utc", 0, 100, 112).items())[1:])  # no row of the first day
    found = compare(known(before, 12, 109, 91), LandedDays(by_utc, by_rows=True, rows=212))
    assert (found.changed, found.missing) == ({*DAYS}, frozenset())


def test_days_are_compared_by_their_rows_where_fewer_rows_are_there_than_before_the_edit():
    found = compare(
        known("landed", 12, 109, 91), LandedDays(facts("utc", 12, 100, 99), by_rows=True, rows=211)
    )
    assert found.missing == {DAYS[1]}


def test_a_day_that_loses_rows_without_an_edit_lacks_them_however_many_came_elsewhere():
    landed = facts("utc", 12, 100, 999)
    found = compare(known("utc", 12, 109, 91), LandedDays(landed, by_rows=True, rows=1111))
    assert (found.changed, found.missing) == ({DAYS[2]}, {DAYS[1]})
