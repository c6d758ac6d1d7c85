"""How the report words what it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest

from strandline.quality.figures import (
    day_or_instant,
    duration,
    exact_duration,
    instant,
    least_shown,
    percent,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(2013, 1, 5, 6, tzinfo=UTC), "2013-01-05 06:00"),
        (datetime(2013, 1, 5, 6, 0, 7, tzinfo=UTC), "2013-01-05 06:00:07"),
        (datetime(2013, 1, 5, 6, 0, 0, 201_000, tzinfo=UTC), "2013-01-05 06:00:00.201"),
        (datetime(2013, 1, 5, 6, tzinfo=timezone(timedelta(hours=2))), "2013-01-05 04:00"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01 00:00"),
        (pd.Timestamp("2013-01-05T06:00Z"), "2013-01-05 06:00"),
        (pd.NaT, "–"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_moments_are_utc_and_as_fine_as_need_be(value, shown):
    assert instant(value) == shown


def test_midnight_is_a_date_where_only_days_matter():
    assert day_or_instant(datetime(2013, 1, 5, tzinfo=UTC)) == "2013-01-05"
    assert day_or_instant(datetime(2013, 1, 5, 1, tzinfo=UTC)) == "2013-01-05 01:00"


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (0, "0s"),
        (200, "200ms"),
        (7_200_000, "2h"),
        (19_260_000, "5h 21m"),
        (86_400_001, "1d"),
        (-1_500, "−1s 500ms"),
        (9_223_372_036_854_775_807, "106751991167d 7h"),
    ],
)
def test_durations_have_their_two_largest_units(duration_ms, shown):
    assert duration(duration_ms) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 0, "–"),
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 1_000_000, "< 0.01 %"),
        (999_999, 1_000_000, "> 99.99 %"),
        (843, 327_346, "0.26 %"),
        (1, 2, "50.0 %"),
    ],
)
def test_a_share_is_zero_or_all_only_if_it_is(part, whole, shown):
    assert percent(part, whole) == shown


@pytest.mark.parametrize(
    ("duration_ms", "exact", "at_least"),
    [
        (0, "0s", "0s"),
        (2_870 * 60_000, "1d 23h 50m", "2d"),
        (86_700_001, "1d 5m 1ms", "1d 1h"),
        (15_541_000, "4h 19m 1s", "4h 20m"),
        (1_500, "1s 500ms", "1s 500ms"),
        (7, "7ms", "7ms"),
        (-90_000, "−1m 30s", "−1m 30s"),
    ],
)
def test_a_setting_is_exact_and_what_saves_all_is_not_less(duration_ms, exact, at_least):
    assert exact_duration(duration_ms) == exact
    if duration_ms >= 0:
        assert duration(least_shown(duration_ms)) == at_least
