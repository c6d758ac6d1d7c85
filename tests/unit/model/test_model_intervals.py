"""Ranges and days, in UTC and half-open."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    EVERYTHING,
    LEAST_INSTANT_MS,
    TimeRange,
    consecutive,
    datetime_of,
    day_of,
    days_named,
    instant_of,
    merged,
    midnight_before,
    midnight_of,
    text_of,
)

instants = st.integers(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
near = st.integers(-50, 50)


@given(instants)
def test_an_instant_survives_the_way_through_a_datetime(instant_ms):
    assert instant_of(datetime_of(instant_ms)) == instant_ms


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_datetime_is_floored_to_its_millisecond(moment):
    assert timedelta() <= moment - datetime_of(instant_of(moment)) < timedelta(milliseconds=1)


@given(instants)
def test_an_instant_lies_in_its_day(instant_ms):
    midnight_ms = midnight_of(day_of(instant_ms))
    assert midnight_ms == midnight_before(instant_ms)
    assert midnight_ms <= instant_ms < midnight_ms + DAY_MS


def test_days_are_utc_whatever_the_zone_of_the_datetime():
    evening = datetime(2013, 1, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert day_of(instant_of(evening)) == date(2013, 1, 2)


def test_the_millisecond_before_1970_lies_on_the_last_day_of_1969():
    assert day_of(-1) == date(1969, 12, 31)


def test_a_range_holds_its_start_and_not_its_end():
    hours = TimeRange(0, 10)
    assert 0 in hours
    assert 9 in hours
    assert 10 not in hours


@given(st.builds(TimeRange, near, near), st.builds(TimeRange, near, near))
def test_ranges_overlap_exactly_if_they_share_an_instant(one, other):
    if one.start_ms < one.end_ms and other.start_ms < other.end_ms:
        shared = any(instant in one and instant in other for instant in range(-50, 51))
        assert one.overlaps(other) == other.overlaps(one) == shared


def test_everything_is_the_years_1_to_9999():
    assert datetime_of(EVERYTHING.start_ms) == datetime(1, 1, 1, tzinfo=UTC)
    assert datetime_of(EVERYTHING.end_ms - 1).year == 9999


def test_a_text_has_a_fraction_only_if_there_is_one():
    assert text_of(1_356_998_400_000) == "2013-01-01T00:00:00Z"
    assert text_of(1_356_998_400_007) == "2013-01-01T00:00:00.007Z"
    assert text_of(-1) == "1969-12-31T23:59:59.999Z"


def test_days_are_named_as_ranges_and_not_too_many_of_them():
    march = [date(2024, 3, day) for day in (4, 1, 2, 9)]
    assert days_named(march) == "2024-03-01 to 2024-03-02, 2024-03-04, 2024-03-09"
    assert days_named(["2024-03-01"]) == "2024-03-01"
    every_other = [date(2024, 3, day) for day in range(1, 31, 2)]
    assert days_named(every_other).endswith("2024-03-09 and 10 more days")
    assert days_named([]) == ""


def test_days_are_grouped_into_consecutive_ones():
    first, second, fourth = (date(2024, 3, day) for day in (1, 2, 4))
    assert consecutive([fourth, second, first]) == [[first, second], [fourth]]
    assert consecutive([]) == []


ranges = st.tuples(near, near).map(lambda ends: TimeRange(min(ends), max(ends)))


@given(ranges, ranges, near)
def test_outside_another_range_lies_just_what_that_does_not_hold(one, other, instant):
    is_outside = any(instant in part for part in one.outside(other))
    assert is_outside == (instant in one and instant not in other)


def test_ranges_that_touch_or_overlap_are_merged_into_one():
    ranges = [TimeRange(5, 9), TimeRange(0, 2), TimeRange(2, 3), TimeRange(6, 7)]
    assert merged(ranges) == [TimeRange(0, 3), TimeRange(5, 9)]
    assert merged([]) == []
