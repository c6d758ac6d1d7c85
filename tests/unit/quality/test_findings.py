"""What must not be green: each rule about a run's data, as a function of figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from lakes import a_spec
from meter import HALF_DAYS as SPEC

from strandline.model.intervals import DAY_MS, HOUR_MS, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.pipeline.audit.channel_checks import _pauses, check_of_ahead, check_of_epoch
from strandline.quality.audit.result import AuditResult
from strandline.quality.findings.ahead import (
    Raised,
    check_of_one_channel,
    check_of_watermark,
    raised_in_words,
)
from strandline.quality.findings.check import Finding, findings_in, state_line
from strandline.quality.findings.epoch import FROM_MS, UNTIL_MS, LastDay, check_of_1970
from strandline.quality.findings.freshness import (
    ScheduledRun,
    check_of_freshness,
    fresh_within_ms,
    not_run_since,
)
from strandline.quality.findings.malformed import (
    RowsOfDay,
    checks_of_malformed,
    looks_like_event_date,
)
from strandline.quality.findings.silence import (
    FOUR_WEEKS_MS,
    ChannelArrivals,
    Pause,
    check_of_silence,
    longest_pauses,
    silent_channels,
)
from strandline.quality.findings.volume import check_of_volume, unusual_days, unusual_in_words
from strandline.quality.report.state import State
from strandline.spec.quality import Quality
from strandline.spec.values import parse_duration

DAY = date(2026, 3, 2)
START_MS = 1_700_000_000_000 - 1_700_000_000_000 % DAY_MS


def malformed(quality: Quality, *days: tuple[int, dict[str, int]], dateless=None):
    """The checks of consecutive days, each with its well-formed rows and its malformed ones."""
    rows = {DAY + timedelta(n): RowsOfDay(good, bad) for n, (good, bad) in enumerate(days)}
    return [*checks_of_malformed(quality, rows, [max(rows)], RowsOfDay(malformed=dateless or {}))]


# ---------------------------------------------------------------------------------- malformed share


def test_by_default_a_twentieth_malformed_is_a_warning_and_nine_tenths_are_critical():
    (calm,) = malformed(Quality(), (95, {"invalid": 5}))
    (warned,) = malformed(Quality(), (10, {"invalid": 12}))
    (failed,) = malformed(Quality(), (0, {"null_arrival": 52_281}))
    assert calm.success
    assert (warned.success, warned.severity, warned.limit) == (False, "warning", 0.05)
    assert (failed.success, failed.severity, failed.limit) == (False, "critical", 0.9)
    assert failed.sentence == (
        "100 % of rows malformed (52,281 of 52,281: null_arrival 52,281) of arrival day "
        "2026-03-02, above 0.9"
    )


def test_a_day_of_cancelled_flights_warns_and_lets_publish():
    (check,) = malformed(Quality(), (145, {"null_event_time": 520}))
    assert (check.success, check.severity) == (False, "warning")


@given(st.integers(0, 200), st.integers(0, 200), st.floats(0, 1))
def test_a_number_is_one_critical_limit(good, bad, limit):
    quality = Quality(max_malformed_share=limit)
    (check,) = malformed(quality, (good, {"invalid": bad}))
    assert check.severity == "critical"
    assert check.success == (good + bad == 0 or bad / (good + bad) <= limit)


def test_a_reason_has_a_limit_of_its_own_beside_the_default():
    quality = Quality(max_malformed_share={"undeclared_channel": 0})
    every, of_reason = malformed(quality, (999, {"undeclared_channel": 1}))
    assert every.success
    assert (of_reason.success, of_reason.severity) == (False, "critical")
    assert of_reason.column == "max_malformed_share undeclared_channel"
    assert of_reason.sentence.startswith("undeclared_channel 0.10 % (1 of 1,000)")


def test_null_asks_nothing_and_rows_of_no_arrival_day_count():
    assert malformed(Quality(max_malformed_share=None), (0, {"invalid": 1})) == []
    (check,) = malformed(Quality(), (1, {}), dateless={"null_arrival": 99})
    assert "of arrival day 2026-03-02 and of 99 rows without one, above" in check.sentence
    assert check.value == 0.99


def test_the_days_in_a_row_are_named_and_none_after_the_checked_ones():
    (check,) = malformed(Quality(), (9, {}), (0, {"invalid": 3}), (0, {"invalid": 4}))
    days = "from 2026-03-03 to 2026-03-04"  # a later day may be a good one when this is read
    assert check.sentence.endswith(f"above 0.9; so on each day with rows {days}")


def test_days_without_rows_are_no_days_above_the_limit():
    """One malformed day before two empty ones is not "each day since"."""
    bad, empty = RowsOfDay(0, {"invalid": 2}), RowsOfDay()
    days = [DAY + timedelta(days=n) for n in range(4)]

    def sentence(*rows: RowsOfDay | None) -> str:
        known = {day: one for day, one in zip(days, rows, strict=False) if one is not None}
        (check,) = checks_of_malformed(Quality(), known, days[1:], RowsOfDay())
        return check.sentence

    for nothing in (None, empty):  # a day that is not known, and one whose rows are gone
        assert sentence(RowsOfDay(99), bad, nothing, nothing).endswith("above 0.9")
        assert f"with rows from {DAY} to " in sentence(bad, nothing, bad, nothing)


def test_the_checked_days_are_named_as_ranges_and_none_between_them():
    """A run of 31 March that recomputes the 1st was said to be of all March."""
    days = [date(2024, 3, 1), date(2024, 3, 2), date(2024, 3, 3), date(2024, 3, 31)]
    known = dict.fromkeys(days, RowsOfDay(1, {"invalid": 1}))

    def sentence(*checked: date) -> str:
        (check,) = checks_of_malformed(Quality(), known, checked, RowsOfDay())
        return check.sentence

    apart = sentence(days[0], days[3])
    assert apart.startswith(
        "50.0 % of rows malformed (2 of 4: invalid 2) of arrival days 2024-03-01, 2024-03-31, above"
    )
    assert "of arrival days 2024-03-01 to 2024-03-03, 2024-03-31, above" in sentence(*days)


def test_rows_that_cross_midnight_show_that_a_column_is_the_events_day():
    outside = {"arrival_outside_partition": 8}
    days = {DAY: RowsOfDay(280, outside, within_a_date=True)}
    assert "8 rows are arrival_outside_partition" in (looks_like_event_date(days, [DAY]) or "")
    assert looks_like_event_date({DAY: RowsOfDay(280, outside, within_a_date=False)}, [DAY]) is None
    assert looks_like_event_date({DAY: RowsOfDay(280)}, [DAY]) is None
    # a stray row on a calm day is no sign where rows of other days have arrived later
    before = {DAY - timedelta(days=1): RowsOfDay(280, within_a_date=False)}
    assert looks_like_event_date(before | days, [DAY]) is None


# ---------------------------------------------------------------------------------------- freshness


@pytest.mark.parametrize(
    ("asked", "schedule", "expected"),
    [
        ("default", "0 6 * * *", 26 * HOUR_MS),
        ("default", "0 6 * * 1", 7 * DAY_MS + 2 * HOUR_MS),
        ("default", None, 26 * HOUR_MS),
        (HOUR_MS, "0 6 * * *", HOUR_MS),
        (None, "0 6 * * *", None),
    ],
)
def test_records_are_fresh_for_an_interval_of_the_schedule_and_two_hours(asked, schedule, expected):
    assert fresh_within_ms(asked, schedule) == expected


def test_what_arrived_too_long_before_the_horizon_is_not_fresh():
    last_ms, within_ms = START_MS - 29 * 60_000, 26 * HOUR_MS
    assert check_of_freshness(last_ms, START_MS, within_ms).success
    stale = check_of_freshness(last_ms, START_MS + 2 * DAY_MS, within_ms)
    assert not stale.success
    assert stale.sentence.startswith("no arrival since 2023-11-13T23:31:00Z: 2d")
    side = check_of_freshness(last_ms, START_MS + 2 * DAY_MS, within_ms, "right")
    assert side.sentence.startswith("no well-formed arrival from right since ")
    limit_ms = DAY_MS + 30 * 60_000 + 10_000
    longer = check_of_freshness(last_ms, last_ms + limit_ms + 10_000, limit_ms)
    assert "1d 30m 20s before the data cut-off" in longer.sentence
    assert longer.sentence.endswith("at most 1d 30m 10s may be")
    nothing = check_of_freshness(None, START_MS, within_ms)  # or `where` leaves nothing
    assert not nothing.success
    assert nothing.sentence.startswith(
        "no row with a readable arrival time has arrived yet, before the data cut-off "
    )
    kept = check_of_freshness(None, START_MS, within_ms, where="source.where")
    assert kept.sentence.startswith(
        "no row with a readable arrival time of the rows that source.where keeps has arrived "
    )


def test_a_schedule_that_is_not_run_is_named_once_it_has_kept_up():
    at_six = START_MS + 6 * HOUR_MS + 60_000
    live, past = ScheduledRun(START_MS, at_six), ScheduledRun(0, at_six)
    later = at_six + 9 * DAY_MS
    found = not_run_since("0 6 * * *", [live], later)
    assert found is not None
    assert found.sentence.startswith("not run since 2023-11-14T06:01:00Z")
    assert not_run_since("0 6 * * *", [live], at_six + DAY_MS) is None
    assert not_run_since("0 6 * * *", [past], later) is None  # the demo fills in the past
    assert not_run_since("0 6 * * *", [], later) is None
    assert not_run_since(None, [live], later) is None


# ------------------------------------------------------------------------------------------- volume


def weeks(*records: int) -> dict[date, int]:
    """The records of one weekday, the latest last."""
    return {DAY - timedelta(weeks=n): count for n, count in enumerate(reversed(records))}


def test_a_day_far_from_the_median_of_its_weekday_is_unusual():
    (found,) = unusual_days(weeks(100, 100, 100, 100, 60), [DAY])
    assert str(found) == "2026-03-02: 60 records, usually 100 (70 to 130)"
    assert unusual_days(weeks(100, 100, 100, 100, 130), [DAY]) == []
    assert unusual_days(weeks(100, 60, 140, 100, 100, 200), [DAY]) != []


def test_days_that_scatter_may_scatter():
    """Three times the deviation where that is more than 30 %."""
    assert unusual_days(weeks(100, 60, 140, 60, 140, 150), [DAY]) == []


def test_the_range_in_words_holds_what_is_usual_and_nothing_else():
    """The median 11 ± 8.9: 2 and 20 records are unusual."""
    for records in (2, 20):
        (found,) = unusual_days(weeks(8, 10, 12, 14, records), [DAY])
        assert str(found) == f"2026-03-02: {records} records, usually 11 (3 to 19)"


def test_less_than_four_weeks_say_nothing_and_a_day_without_a_row_has_none():
    assert unusual_days(weeks(100, 100, 100, 1), [DAY]) == []
    known = weeks(100, 100, 100, 100, 1)
    del known[DAY]
    (found,) = unusual_days(known, [DAY])
    assert found.records == 0


def test_unusual_days_are_named_as_ranges_the_furthest_from_what_is_usual_first():
    """Six of ten empty days were named one by one, and not the day with ten times the records."""
    days = [DAY + timedelta(days=n) for n in range(60)]
    known = dict.fromkeys(days, 72) | {days[30]: 75, days[33]: 15}
    known |= dict.fromkeys(days[40:50], 0) | {days[50]: 5, days[51]: 790, days[55]: 3}
    check = check_of_volume("warn", known, days)
    assert check is not None
    first = unusual_in_words(unusual_days(known, days), 1)
    assert first.endswith("; and 3 more days, the last 2026-04-26")
    assert check.value == 14
    assert check.sentence == (
        "2026-04-11 to 2026-04-21: 0 to 5 records a day, usually 72; 2026-04-22: 790 records, "
        "usually 72 (51 to 93); 2026-04-26: 3 records, usually 72 (51 to 93); and 1 more day, "
        "2026-04-04"
    )


def test_days_of_one_record_each_have_one_record_a_day():
    days = [DAY + timedelta(days=n) for n in range(60)]
    known = dict.fromkeys(days, 72) | dict.fromkeys(days[40:42], 1)
    said = unusual_in_words(unusual_days(known, days))
    assert said == "2026-04-11 to 2026-04-12: 1 record a day, usually 72"


def test_volume_is_a_warning_or_what_is_asked():
    known = weeks(100, 100, 100, 100, 1)
    assert check_of_volume("allow", known, [DAY]) is None
    for asked, severity in (("warn", "warning"), ("fail", "critical")):
        check = check_of_volume(asked, known, [DAY])
        assert check is not None
        assert (check.success, check.severity) == (False, severity)


def test_what_is_usual_is_not_known_of_the_first_weeks():
    first = check_of_volume("warn", weeks(100, 100), [DAY])
    assert first.success
    assert first.sentence.startswith("what is usual is not known yet: it takes 4 earlier days")
    later = check_of_volume("warn", weeks(100, 100, 100, 100, 100), [DAY])
    assert later.sentence == "as many records as usual"


# ------------------------------------------------------------------------------------------ silence


@DEAR
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 23)), max_size=30))
def test_the_longest_pause_is_the_longest_between_two_hours_that_follow(spoken):
    """Channels, days and hours in any order."""
    masks: dict[tuple[int, int], int] = {}
    for channel, day, hour in spoken:
        masks[channel, day] = masks.get((channel, day), 0) | 1 << hour
    channels, days = ([key[n] for key in masks] for n in (0, 1))
    found = longest_pauses(
        np.array(channels, dtype=np.int64),
        np.array([START_MS + day * DAY_MS for day in days], dtype=np.int64),
        np.array([*masks.values()], dtype=np.int64),
    )
    expected = {}
    for channel in {key for key, _, _ in spoken}:
        hours = sorted({24 * day + hour for key, day, hour in spoken if key == channel})
        if len(hours) > 1:
            pauses = (later - hour for hour, later in pairwise(hours))
            expected[channel] = Pause(max(pauses) * HOUR_MS, hours[-1] - hours[0] < 24)
    assert found == expected


def test_all_channels_that_are_silent_are_named_with_the_time_since_when():
    horizon_ms = START_MS + DAY_MS
    channels = [
        ChannelArrivals("0", horizon_ms - 5 * HOUR_MS, Pause(3 * HOUR_MS)),
        ChannelArrivals("1", horizon_ms - 7 * HOUR_MS, Pause(3 * HOUR_MS)),
        ChannelArrivals("2", None),
        ChannelArrivals("3", None),
        ChannelArrivals("young", START_MS),
    ]
    check = check_of_silence(channels, "default", horizon_ms, START_MS)
    assert check is not None
    assert (check.success, check.severity, check.value) == (False, "warning", 3)
    assert check.sentence == (
        "3 of 5 channels silent: channels 2, 3 since the start, 2023-11-14T00:00:00Z; channel 1 "
        "since 2023-11-14T17:00:00Z; before the data cut-off 2023-11-15T00:00:00Z, longer than "
        "silent_after allows"
    )
    never = check_of_silence(channels[2:4], "default", horizon_ms, START_MS)
    assert never is not None
    assert never.sentence == (
        "2 of 2 channels silent: channels 2, 3 since the start, 2023-11-14T00:00:00Z; before the "
        "data cut-off 2023-11-15T00:00:00Z"
    )


def test_an_own_limit_holds_for_every_channel_and_null_asks_nothing():
    channels = [ChannelArrivals("a", START_MS), ChannelArrivals("b", None)]
    found = silent_channels(channels, 2 * HOUR_MS, START_MS + 2 * HOUR_MS, START_MS)
    assert found == []
    found = silent_channels(channels, 2 * HOUR_MS, START_MS + 2 * HOUR_MS + 1, START_MS)
    assert [one.name for one in found] == ["b", "a"]
    assert check_of_silence(channels, None, START_MS, START_MS) is None
    assert check_of_silence([], "default", START_MS, START_MS) is None


def test_a_channel_whose_pauses_are_not_known_is_silent_after_four_weeks():
    channels = [ChannelArrivals("a", START_MS)]
    at = START_MS + FOUR_WEEKS_MS
    assert silent_channels(channels, "default", at, START_MS) == []
    assert len(silent_channels(channels, "default", at + 1, START_MS)) == 1


def test_a_channel_that_spoke_once_may_pause_as_long_as_the_others_and_two_days_at_least():
    at = START_MS + 2 * DAY_MS
    daily = ChannelArrivals("daily", at, Pause(20 * HOUR_MS))
    once = ChannelArrivals("once", START_MS)
    assert silent_channels([daily, once], "default", at, START_MS) == []
    found = silent_channels([daily, once], "default", at + 1, START_MS)
    assert [one.name for one in found] == ["once"]
    weekly = ChannelArrivals("weekly", at, Pause(7 * DAY_MS))
    assert silent_channels([weekly, once], "default", START_MS + 14 * DAY_MS, START_MS) == []


def test_a_channel_that_stops_on_its_first_day_is_silent_after_a_day_however_short_its_pause():
    """A weekly one that had spoken in two neighbouring hours was named from the third hour on."""
    noon_ms, hourly = START_MS + 12 * HOUR_MS, Pause(HOUR_MS, within_a_day=True)
    b = ChannelArrivals("b", noon_ms, hourly)
    for pause_ms, silent in ((3 * HOUR_MS, []), (DAY_MS, []), (DAY_MS + 1, ["b"])):
        at = noon_ms + pause_ms
        active = ChannelArrivals("active", at, Pause(HOUR_MS))
        found = silent_channels([active, b], "default", at, START_MS)
        assert [one.name for one in found] == silent


def test_within_a_first_day_all_channels_may_pause_together_at_night_for_two_days_at_most():
    evening_ms, hourly = START_MS + 18 * HOUR_MS, Pause(HOUR_MS, within_a_day=True)
    office = [ChannelArrivals(name, evening_ms, hourly) for name in "ab"]
    early = ChannelArrivals("early", START_MS + 9 * HOUR_MS, hourly)
    at = evening_ms + 2 * DAY_MS
    assert silent_channels([*office, early], "default", START_MS + DAY_MS, 0) == []
    assert silent_channels([*office, early], "default", evening_ms + DAY_MS, 0) == [early]
    assert silent_channels(office, "default", at, 0) == []
    assert silent_channels(office, "default", at + 1, 0) == office


@pytest.mark.parametrize("hours", [[None, None], [1 << 23, None]])
def test_first_arrivals_alone_show_no_pause_within_a_day(hours):
    """A timeline from before hours were kept: of the days 1 and 2, at 23:10 and 00:10."""
    days = pd.DataFrame({"channel": "a", "arrival_date": [DAY, DAY + timedelta(days=1)]})
    days["first_arrival_ms"] = [midnight_of(DAY) + DAY_MS + n * 3_000_000 for n in (-1, 1)]
    days["arrival_hours"] = pd.array(hours, dtype="Int64")
    assert _pauses(days) == {}
    days["arrival_hours"] = pd.array([1 << 23, 1], dtype="Int64")
    assert _pauses(days) == {"a": Pause(HOUR_MS, within_a_day=True)}
    later = days.assign(arrival_date=[DAY, DAY + timedelta(days=2)], arrival_hours=[None, 1 << 23])
    assert _pauses(later) == {"a": Pause(2 * DAY_MS)}


def of_silent_channels(count):
    channels = [ChannelArrivals(f"{n:05}", None) for n in range(count)]
    check = check_of_silence(channels, "default", START_MS + 1, START_MS)
    assert check is not None
    return check


def test_of_a_thousand_silent_channels_twenty_are_named_in_the_line_and_all_beside_it():
    check = of_silent_channels(1_000)
    assert "00019 since" in check.sentence
    assert "and 980 more, all named by --json and in the report" in check.sentence
    assert len(check.every) == 1_000
    assert check.every[-1] == "00999: since the start, 2023-11-14T00:00:00Z"
    kept = AuditResult("expect_no_silent_channel", "range", "warning", False, "…", check.every)
    (finding,) = findings_in([kept.to_json()])
    assert finding.to_json()["every"] == check.every
    state = State.of([finding], [{}])
    assert state.needs_list
    assert "every" not in AuditResult("expect_it", "range", "info", True, "9 rows").to_json()


def test_of_ten_thousand_silent_channels_the_ledger_keeps_a_thousand_names_and_the_line_says_so():
    """Each step of a run kept them all, 431 kB."""
    check = of_silent_channels(10_000)
    assert "10,000 of 10,000 channels silent" in check.sentence
    assert "and 9,980 more, the first 1,000 named by --json and in the report" in check.sentence
    assert len(check.every) == 1_000


# -------------------------------------------------------------------------------------------- ahead


def test_a_watermark_ahead_of_the_horizon_names_the_record_and_what_would_have_spared_it():
    raised = Raised(START_MS + 14 * DAY_MS, START_MS, "b", records=48, refused=[1, 1, 1, 1])
    behind = raised_in_words([raised], 214)
    check = check_of_watermark("warn", START_MS + 14 * DAY_MS - 1, START_MS + DAY_MS, behind)
    assert check is not None
    assert (check.success, check.severity) == (False, "warning")
    assert check.sentence == (
        "at 2023-11-27T23:59:59.999Z, 12d 23h ahead of the data cut-off 2023-11-15T00:00:00Z; "
        "raised by the record of channel b that arrived at 2023-11-14T00:00:00Z with the event "
        "time 2023-11-28T00:00:00Z, 14d ahead; source.max_ahead: 1h would have quarantined 1 of "
        "48 records of that arrival day, and spared up to 214 records late behind it"
    )
    assert raised_in_words([raised], 1).endswith(", and spared up to 1 record late behind it")
    of_two = [
        replace(raised, side="left"),
        Raised(START_MS + 40_000, START_MS, "", "right", 9, [2]),
    ]
    assert raised_in_words(of_two, 0) == (
        "raised by the record of channel b of left that arrived at 2023-11-14T00:00:00Z with the "
        "event time 2023-11-28T00:00:00Z, 14d ahead, and by the record of right that arrived at "
        "2023-11-14T00:00:00Z with the event time 2023-11-14T00:00:40Z, 40s ahead; "
        "sources.left.max_ahead: 1h would have quarantined 1 of 48 records of that arrival day; "
        "sources.right.max_ahead: 1s would have quarantined 2 of 9 records of that arrival day"
    )


def test_a_watermark_that_may_be_ahead_is_not_looked_for():
    """It was, and so was the record that had raised it, by a job of the engine."""
    spec = SPEC.model_copy(
        update={"quality": SPEC.quality.model_copy(update={"watermark_ahead": "allow"})}
    )
    planned = SimpleNamespace(horizon_ms=0, plan=SimpleNamespace(closes_now=False))
    assert check_of_ahead(SimpleNamespace(spec=spec), planned, staged=None) is None


def test_where_most_records_are_ahead_the_zone_or_the_unit_is_named_in_place_of_max_ahead():
    """Of a producer in local time `max_ahead: 1h` would have quarantined every record."""
    local = Raised(START_MS + 2 * HOUR_MS, START_MS, "", records=96, refused=[96])
    assert raised_in_words([local], 3).endswith(
        "2h ahead; 96 of 96 records of that arrival day are more than 1h ahead of their arrival: "
        "is the event time a local time that is read as UTC? to_utc_timestamp(…, ZONE) in "
        "event_time corrects it"
    )
    unit = Raised(1_000 * START_MS, START_MS, "", records=96, refused=[49, 49, 49, 49])
    assert raised_in_words([unit], 3).endswith(
        "49 of 96 records of that arrival day are more than 1h ahead of their arrival: is the "
        "event time in another unit than it is read in, such as microseconds read as milliseconds?"
    )
    one_channel = check_of_one_channel("warn", local, START_MS)
    assert one_channel is not None
    assert "max_ahead" not in one_channel.sentence
    assert "to_utc_timestamp" in one_channel.sentence


def test_where_most_records_are_ahead_of_a_bound_a_larger_one_that_refuses_few_is_proposed():
    """One record 14d ahead, among others 2h ahead, was asked for its unit."""
    raised = Raised(START_MS + 14 * DAY_MS, START_MS, "", records=96, refused=[96, 1, 1, 1])
    assert raised_in_words([raised], 3).endswith(
        "14d ahead; source.max_ahead: 195m would have quarantined 1 of 96 records of that arrival "
        "day, and spared up to 3 records late behind it"
    )
    of_zones = replace(raised, refused=[96, 90, 60, 2])
    said = raised_in_words([of_zones], 0)
    assert "source.max_ahead: 855m would have quarantined 2 of 96" in said
    assert parse_duration(of_zones.max_ahead.rpartition(" ")[2]) == of_zones.max_ahead_ms
    for hours, asked in ((14, "a local time that is read as UTC?"), (15, "in another unit")):
        bounds = 3 if hours == 14 else 4
        all_ahead = Raised(START_MS + hours * HOUR_MS, START_MS, "", "", 9, [9] * bounds)
        assert len(all_ahead.bounds_ms) == bounds
        assert f"is the event time {asked}" in all_ahead.way_out


def test_a_watermark_at_the_horizon_is_not_ahead():
    for watermark_ms in (None, START_MS - 1, START_MS):
        check = check_of_watermark("warn", watermark_ms, START_MS)
        assert check is not None
        assert check.success
        assert "tick" not in check.sentence
    assert check_of_watermark("allow", START_MS + 1, START_MS) is None
    failed = check_of_watermark("fail", START_MS + 1, START_MS)
    assert failed is not None
    assert (failed.success, failed.severity) == (False, "critical")


def test_a_watermark_that_waits_for_a_tick_is_not_said_to_be_reached():
    check = check_of_watermark("warn", START_MS - 1, START_MS, waits=True)
    assert check is not None
    assert check.sentence == (
        "at 2023-11-13T23:59:59.999Z once the next tick has emitted it, not ahead of the data "
        "cut-off"
    )


def test_one_channel_far_ahead_is_judged_as_the_watermark_is():
    raised = Raised(START_MS + 14 * DAY_MS, START_MS, "b")
    severities = {"allow": None, "warn": "warning", "fail": "critical"}
    for asked, severity in severities.items():
        check = check_of_one_channel(asked, raised, START_MS + DAY_MS)
        assert (check and (check.success, check.severity)) == (severity and (False, severity))


@DEAR
@given(st.integers(1, 10**9))
def test_the_bound_that_is_proposed_would_have_refused_the_record(ahead_ms):
    assert Raised(START_MS + ahead_ms, START_MS, "").max_ahead_ms < ahead_ms


# ----------------------------------------------------------------------------- events of early 1970


def test_seconds_that_are_read_as_milliseconds_are_a_question_with_what_they_would_be():
    """A run without a window, whose watermark lay 56 years behind its arrivals, was green."""
    ms = 1_772_409_600_000
    found = check_of_1970("warn", [LastDay("", DAY, ms // 1_000)])
    assert found is not None
    assert (found.success, found.severity, found.every) == (False, "warning", ())
    assert found.sentence == (
        "the latest event of the last arrival day, 2026-03-02, is of 1970-01-21T12:20:09.600Z: is "
        "the event time a number of seconds that is read as milliseconds (as seconds, by "
        "timestamp_seconds, it would be 2026-03-02T00:00:00Z)? If not, is the clock of the device "
        "set?"
    )
    others = [LastDay("b", DAY, ms // 1_000 - 1), LastDay("c", DAY, ms)]
    of_channels = check_of_1970("fail", [LastDay("a", DAY, ms // 1_000), *others])
    assert of_channels is not None
    assert (of_channels.value, of_channels.severity) == (2, "critical")
    said = of_channels.sentence
    assert said.startswith("the latest event of channel a on its last arrival day")
    assert said.endswith("; so of 1 more channel, named by --json and in the report")
    assert of_channels.every[1].startswith("channel b on its last arrival day, 2026-03-02, is of ")


def test_a_zero_for_a_missing_event_time_is_no_number_of_seconds():
    for ts_ms in (-5 * HOUR_MS, 0, 14 * HOUR_MS):
        found = check_of_1970("warn", [LastDay("", DAY, ts_ms)])
        assert found is not None
        assert found.sentence.endswith(
            "is a 0 sent where the event time is missing? If not, is the clock of the device set?"
        )
        assert "seconds" not in found.sentence


def test_seconds_far_from_the_arrival_are_a_question_about_the_clock():
    """A device that began at 1970-01-01 was said to be of 1980 as seconds."""
    arrived_s = midnight_of(DAY) // 1_000
    for ts_ms, asked in (
        (4 * DAY_MS, False),
        (arrived_s - 61 * 86_400, False),
        (arrived_s - 60 * 86_400, True),
    ):
        found = check_of_1970("warn", [LastDay("", DAY, ts_ms)])
        assert found is not None
        assert found.sentence.endswith("is the clock of the device set?")
        assert ("it would be 2026-01-01T00:00:00Z" in found.sentence) is asked


def test_only_a_day_of_early_1970_alone_that_has_arrived_decades_later_is_one():
    for ts_ms, day in (
        (FROM_MS - 1, DAY),
        (UNTIL_MS, DAY),
        (midnight_of(DAY), DAY),
        (DAY_MS, date(1970, 1, 3)),
    ):
        found = check_of_1970("warn", [LastDay("", day, ts_ms)])
        assert found is not None
        assert found.success
    assert check_of_1970("allow", [LastDay("", DAY, 0)]) is None
    nothing = check_of_1970("warn", [])
    assert nothing is not None
    assert nothing.success


def checked_at_the_epoch(days: dict[str, tuple[date, int]], watermark_ms: int, asked="warn"):
    """The check over the last arrival day and the latest event of each channel."""
    channel_days = pd.DataFrame(
        [(channel, *of_day) for channel, of_day in days.items()],
        columns=["channel", "arrival_date", "largest_ts_ms"],
    )
    history = SimpleNamespace(
        timeline=SimpleNamespace(channel_days=channel_days),
        crossings=SimpleNamespace(watermark_reached=lambda horizon_ms: watermark_ms),
    )
    observation = SimpleNamespace(history=history)
    spec = a_spec(quality__events_of_1970=asked)
    planned = SimpleNamespace(observation=observation, horizon_ms=midnight_of(DAY) + 999 * DAY_MS)
    return check_of_epoch(spec, planned)


def test_a_channel_of_1970_that_has_not_spoken_for_four_weeks_is_not_checked():
    """One record with a 0 a year ago was a finding of every run.

    The weeks count back from the newest arrival: a run by hand may have any data cut-off.
    """
    now_ms = midnight_of(DAY)
    for days, succeeds in ((28, False), (29, True)):
        of_channels = {"a": (DAY, 0), "b": (DAY + timedelta(days), now_ms + days * DAY_MS)}
        assert checked_at_the_epoch(of_channels, now_ms).success is succeeds
    assert not checked_at_the_epoch({"a": (DAY, 0)}, now_ms).success


def test_a_channel_of_1970_that_holds_the_watermark_is_checked_however_long_ago_it_spoke():
    of_channels = {"a": (DAY, 9), "b": (DAY + timedelta(99), midnight_of(DAY) + 99 * DAY_MS)}
    assert not checked_at_the_epoch(of_channels, 9 - 1).success
    assert checked_at_the_epoch(of_channels, MIN_WATERMARK).success


def test_where_events_of_1970_are_allowed_no_day_is_looked_at():
    assert checked_at_the_epoch({"a": ("no day", 0)}, 0, asked="allow") is None
    assert checked_at_the_epoch({}, MIN_WATERMARK).success


# ----------------------------------------------------------------------------------------- findings


def test_findings_are_what_does_not_hold_the_gravest_first():
    audit = [
        {"expectation": "expect_no_gaps", "severity": "warning", "success": False, "figures": "g"},
        {"expectation": "expect_x", "severity": "info", "success": True, "figures": ""},
        {
            "expectation": "expect_malformed_share_to_be_at_most",
            "severity": "critical",
            "success": False,
            "figures": "m",
        },
    ]
    assert [(one.name, one.severity) for one in findings_in(audit, "r")] == [
        ("max_malformed_share", "critical"),
        ("gaps", "warning"),
    ]


# ----------------------------------------------------------------------------------- the first line


def test_the_first_line_is_the_gravest_finding_and_how_many_more_there_are():
    stale = Finding("fresh_within", "warning", "no arrival since Monday")
    behind = Finding("open_behind_watermark", "critical", "7 windows open behind the watermark")
    closed = Finding("closed", "info", "windows from 2024-03-01 to 2024-03-02 closed by --close")
    rules = Finding("overridden", "info", "windows from 2024-03-01 to 2024-03-02 by other rules")
    assert state_line([]) == state_line([closed]) == "OK"
    assert state_line([rules, closed]) == "OK: 1 range by other rules"
    assert state_line([rules, rules]) == "OK: 2 ranges by other rules"
    assert state_line([stale, rules]) == "STALE: no arrival since Monday"
    assert state_line([stale, behind]) == (
        "CRITICAL: 7 windows open behind the watermark (and 1 more)"
    )


def test_of_equally_severe_findings_the_first_line_has_staleness_and_then_causes_before_effects():
    names = (
        "fresh_within",
        "watermark_ahead",
        "events_of_1970",
        "max_malformed_share",
        "silent_after",
        "owed",
        "volume",
        "gaps",
    )
    found = [Finding(name, "warning", f"the sentence of {name}") for name in names]
    for count in range(len(names)):
        label = "WARNING" if count else "STALE"
        others = f" (and {len(names) - count - 1} more)" if found[count + 1 :] else ""
        line = f"{label}: the sentence of {names[count]}{others}"
        assert state_line(reversed(found[count:])) == line
    missed = Finding("schedule", "warning", "not run since Monday")
    assert state_line([*found[1:], missed]).startswith("STALE: not run since Monday")
