"""A schedule's five fields: held against croniter, which Airflow reads them with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.intervals import DAY_MS, HOUR_MS, instant_of
from strandline.spec.cron import Cron, interval_of

croniter = pytest.importorskip("croniter").croniter
FIELDS = (
    ("0", "*/15", "5,35", "*"),
    ("6", "*", "0-6/2", "22,23"),
    ("*", "1", "1,15", "31"),
    ("*", "1-3", "feb", "*/4"),
    ("*", "1", "1-5", "sat,sun", "7"),
)


@given(st.tuples(*map(st.sampled_from, FIELDS)), st.integers(0, 400), st.integers(0, 1439))
def test_a_schedule_fires_next_when_croniter_says(fields, day, minute):
    text = " ".join(fields)
    at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=day, minutes=minute)
    expected = croniter(text, at).get_next(datetime)
    cron = Cron.of(text)
    assert cron is not None
    assert cron.after(instant_of(at)) == instant_of(expected)


@pytest.mark.parametrize(
    ("text", "pause_ms"),
    [
        ("0 6 * * *", DAY_MS),
        ("@hourly", HOUR_MS),
        ("0 6 * * 1-5", 3 * DAY_MS),
        ("0 6,18 * * *", DAY_MS // 2),
        ("0 0 1 * *", 31 * DAY_MS),
        ("0 0 30 2 *", None),
    ],
)
def test_the_longest_pause_of_a_schedule(text, pause_ms):
    cron = Cron.of(text)
    assert cron is not None
    assert cron.longest_pause_ms == pause_ms


@pytest.mark.parametrize("text", ["0 6 * *", "0 6 * * 1#2", "61 * * * *", "a b c d e", "@often"])
def test_what_is_not_understood_is_no_schedule_and_counts_as_a_day(text):
    assert Cron.of(text) is None
    assert interval_of(text) == DAY_MS
    assert interval_of(None) == DAY_MS
