"""When a schedule fires next, and how long it pauses at most."""

from __future__ import annotations

import pytest

from strandline.model.intervals import DAY_MS, HOUR_MS
from strandline.spec.cron import longest_interval_ms, next_after
from strandline.spec.values import parse_instant


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("0 6 * * *", "2024-02-29T06:00:00Z", "2024-03-01T06:00:00Z"),
        ("0 6 * * 1-5", "2024-03-01T06:00:00Z", "2024-03-04T06:00:00Z"),
        ("@hourly", "2024-03-01T06:20:00Z", "2024-03-01T07:00:00Z"),
        ("0 0 30 2 *", "2024-03-01T06:20:00Z", None),
        ("@once", "2024-03-01T06:20:00Z", None),
        (None, "2024-03-01T06:20:00Z", None),
    ],
)
def test_a_schedule_fires_next_after_an_instant(schedule, after, expected):
    assert next_after(schedule, parse_instant(after)) == (expected and parse_instant(expected))


@pytest.mark.parametrize(
    ("schedule", "longest_ms"),
    [
        ("0 6 * * *", DAY_MS),
        ("@hourly", HOUR_MS),
        ("0 6 * * 1-5", 3 * DAY_MS),
        ("* 8-18 * * 1-5", 2 * DAY_MS + 13 * HOUR_MS + 60_000),
        ("0 6,18 * * *", DAY_MS // 2),
        ("0 6,8 * * *", 22 * HOUR_MS),
        ("0 0 1 * *", 31 * DAY_MS),
        ("0 0 1 1 *", 366 * DAY_MS),
        ("0 0 30 2 *", DAY_MS),
        ("a b c d e", DAY_MS),
        (None, DAY_MS),
    ],
)
def test_the_longest_interval_of_a_schedule(schedule, longest_ms):
    assert longest_interval_ms(schedule) == longest_ms
