"""The figures of an audit, as someone on call reads them."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pandas as pd
import pytest

from strandline.model.intervals import HOUR_MS, TimeRange
from strandline.quality.audit.result import Audit, AuditResult
from strandline.quality.audit.wording import (
    Gaps,
    RangeFigures,
    of_exception,
    of_removals,
    of_result,
    shown,
)
from strandline.quality.completeness import slots_within


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2013, 1, 5, 6, tzinfo=UTC), "2013-01-05T06:00:00Z"),
        (pd.Timestamp("2013-01-05T06:00", tz="America/New_York"), "2013-01-05T11:00:00Z"),
        (date(2013, 1, 5), "2013-01-05"),
        (pd.NaT, "null"),
        (float("nan"), "null"),
        (None, "null"),
        (True, "true"),
        (1_234_567, "1,234,567"),
        (0.1234567, "0.123457"),
        (["EWR", 1], "[EWR, 1]"),
        ("x" * 101, "x" * 99 + "…"),
    ],
)
def test_values_are_shown_as_people_read_them(value, text):
    assert shown(value) == text


def test_what_spark_collects_in_the_zone_of_the_machine_is_shown_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        collected = datetime.fromtimestamp(1_357_365_600)  # noqa: DTZ006 - as pyspark does
        assert shown(collected) == "2013-01-05T06:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"unexpected_count": 0, "element_count": 1}, "1 row"),
        ({"unexpected_count": 2, "element_count": 1_000, "partial_unexpected_list": [7, 8]},
         "2 of 1,000 rows: 7; 8"),
        ({"unexpected_count": 1, "element_count": 9,
          "partial_unexpected_index_list": [{"v": 3, "origin": "EWR"}]},
         "1 of 9 rows: origin=EWR v=3"),
        ({"observed_value": 2.5}, "observed 2.5"),
        ({"observed_value": None, "details": {"missing": ["a"]}}, "missing [a]"),
        ({"observed_value": None}, "nothing observed"),
        ({}, "no figures"),
    ],
)  # fmt: skip
def test_figures_are_what_was_observed_and_where(result, text):
    assert of_result(result, {}, ["origin"]) == text
    assert of_result(result, {"column": "v", "min_value": 4}, ["origin"]) == (
        f"column v, min_value 4: {text}"
    )


def of_range(**counts):
    without = {"accepted": 0, "late": 0, "gaps": Gaps(0), "max_late_share": None}
    return RangeFigures(**{**without, "slots_expected": 0, "slots_missing": (), **counts})


@pytest.mark.parametrize(
    ("late", "accepted", "limit", "text"),
    [
        (310, 9_690, 0.02, "late share 0.031 (310 of 10,000) > 0.02"),
        (20_001, 979_999, 0.02, "late share 0.020001 (20,001 of 1,000,000) > 0.02"),
        (1, 0, 0.0, "late share 1 (1 of 1) > 0"),
        (2, 98, 0.02, "late share 0.02 (2 of 100) ≤ 0.02"),
        (0, 0, 0.02, "no record in the range"),
    ],
)
def test_a_late_share_is_shown_so_that_it_differs_from_its_limit(late, accepted, limit, text):
    assert of_range(late=late, accepted=accepted, max_late_share=limit).of_late_share == text


@pytest.mark.parametrize(
    ("removed", "published", "text"),
    [
        (3, 4, "3 of 4 published windows go (0.75) > 0.5"),
        (1, 2, "1 of 2 published windows go (0.5) ≤ 0.5"),
        (10_001, 20_000, "10,001 of 20,000 published windows go (0.50005) > 0.5"),
    ],
)
def test_a_share_of_removed_windows_is_shown_so_that_it_differs_from_its_limit(
    removed, published, text
):
    assert of_removals(removed, published, 0.5) == text


def test_gaps_that_are_not_listed_count_as_well():
    assert str(Gaps(0)) == "no gap"
    assert str(Gaps(1_000_001)) == "1,000,001 gaps"


def test_of_many_gaps_the_first_are_shown_and_how_many_more_up_to_where():
    examples = ("2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z to 2024-04-14 (1,028 slots)")
    said = str(Gaps(1_030, examples, shown=1_029, last="2024-04-20T00:00:00Z"))
    assert said.startswith("1,030 gaps: 2024-03-01T00:00:00Z; 2024-03-02")
    assert said.endswith("; and 1 more, up to 2024-04-20T00:00:00Z")


def test_gaps_of_a_row_that_is_only_in_part_in_the_range_are_not_said_to_be_all_of_it():
    start = pd.Timestamp("2024-03-01", tz="UTC")
    row = {"slot_start": [start], "slot_end": [start + pd.Timedelta("1500h")], "slots": [1_500]}
    assert str(Gaps.of(pd.DataFrame(row), 24)) == (
        "24 gaps, in whole or in part in: "
        "2024-03-01T00:00:00Z to 2024-05-02T12:00:00Z (1,500 slots)"
    )


def test_a_row_of_gaps_that_begins_before_the_range_is_an_example_of_its_gaps():
    """A run over a day amid a long silence said how many hours are empty, and not which."""
    first, hour = pd.Timestamp("2024-03-01", tz="UTC"), pd.Timedelta("1h")
    starts = [first, first + 1500 * hour, first + 1600 * hour]
    slots = pd.DataFrame({"slot_start": starts, "slots": pd.Series([1_500, None, 50])})
    slots["slot_end"] = slots["slot_start"] + slots["slots"].fillna(1) * hour
    day_ms = int((first + 1490 * hour).timestamp() * 1000)
    for hours, found in ((10, [first]), (11, starts[:2]), (200, starts)):
        within = TimeRange(day_ms, day_ms + hours * HOUR_MS)
        assert [*slots_within(slots, within)["slot_start"]] == found
    later = TimeRange(day_ms + 10 * HOUR_MS, day_ms + 200 * HOUR_MS)
    assert [*slots_within(slots, later)["slot_start"]] == starts[1:]


def test_acknowledged_gaps_are_counted_apart():
    assert str(Gaps(0, known=3)) == "no other gap; 3 acknowledged"
    starts = pd.to_datetime(["2024-03-01"], utc=True)
    row = pd.DataFrame({"slot_start": starts, "slot_end": starts + pd.Timedelta("1h")})
    assert str(Gaps.of(row, 1, 3)) == "1 gap: 2024-03-01T00:00:00Z; 3 acknowledged"


def test_an_exception_is_told_by_its_first_line():
    assert of_exception("no such column\n  at line 7\n") == "could not be evaluated: no such column"
    of_the_gateway = "An error occurred while calling o1.x.\n: java.io.IOException: no python3"
    assert of_exception(of_the_gateway).endswith("evaluated: java.io.IOException: no python3")
    assert of_exception("") == "could not be evaluated: unknown reason"


def test_only_a_critical_failure_blocks():
    warning = AuditResult("expect_no_gaps", "range", "warning", False, "1 gap")
    audit = Audit((warning, AuditResult("expect_it", "windows", "critical", True, "9 rows")))
    assert not audit.blocked
    assert audit.failures == (warning,)
    failed = AuditResult("expect_it", "windows", "critical", False, "1 of 9 rows")
    assert Audit((warning, failed)).blocked
    assert Audit((warning, failed)).blocking == (failed,)
    assert audit.to_json()[0] == {
        "expectation": "expect_no_gaps",
        "table": "range",
        "severity": "warning",
        "success": False,
        "figures": "1 gap",
    }


def test_the_first_gaps_are_shown_and_many_in_a_row_as_one_with_their_number():
    starts = pd.to_datetime(["2013-01-01", "2013-03-01", "2013-01-05", "2013-01-04"], utc=True)
    ends = starts + pd.to_timedelta([1, 1, 1_100, 1], unit="h")
    gaps = pd.DataFrame({"slot_start": starts, "slot_end": ends, "slots": [1, None, 1_100, 1]})
    found = Gaps.of(gaps)
    assert [*found.examples[:2]] == [starts[0], starts[3]]
    assert found.examples[2].endswith("(1,100 slots)")
    assert (found.count, found.shown, found.last) == (1_103, 1_102, ends[1])
    assert Gaps.of(gaps[:0]) == Gaps(0)
    assert Gaps.of(gaps, 5_000).count == 5_000  # not all of them are listed


def test_a_last_row_of_many_gaps_counts_to_its_end():
    """It named where the row begins, three weeks before."""
    starts = pd.Timestamp("2024-03-01", tz="UTC") + pd.to_timedelta([0, 2, 4, 6], unit="h")
    ends = starts + pd.to_timedelta([1, 1, 1, 500], unit="h")
    gaps = pd.DataFrame({"slot_start": starts, "slot_end": ends, "slots": [1, 1, 1, 500]})
    assert str(Gaps.of(gaps)).endswith("; and 500 more, up to 2024-03-22T02:00:00Z")


def test_gaps_whose_slots_touch_or_overlap_are_shown_as_one():
    hours = [*range(30), 40, 41, 50, 60]
    starts = pd.Timestamp("2024-03-10", tz="UTC") + pd.to_timedelta(hours, unit="h")
    for length in ("1h", "90min"):
        gaps = pd.DataFrame({"slot_start": starts, "slot_end": starts + pd.Timedelta(length)})
        found = Gaps.of(gaps)
        first, second, third = found.examples
        assert first.startswith("2024-03-10T00:00:00Z to 2024-03-11T0")
        assert first.endswith("(30 slots)")
        assert second.endswith("(2 slots)")
        assert third == starts[32]
        assert (found.shown, found.last) == (33, starts[33] + pd.Timedelta(length))


def test_a_gap_of_cumulative_slots_ends_with_the_longest_of_each_day():
    day = pd.Timestamp("2024-03-10", tz="UTC")
    slots = [(d, hours) for d in range(3) for hours in (24, 6, 12, 18)]
    starts = pd.Series([day + pd.Timedelta(days=d) for d, _ in slots])
    ends = pd.Series([day + pd.Timedelta(days=d, hours=hours) for d, hours in slots])
    found = Gaps.of(pd.DataFrame({"slot_start": starts, "slot_end": ends}))
    assert found.examples == ["2024-03-10T00:00:00Z to 2024-03-13T00:00:00Z (12 slots)"]
