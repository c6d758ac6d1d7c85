"""The laws of a run: whatever ran before, in whatever order, the tables say what Flink would."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from lakes import RESULTS, Line, a_spec, a_week, few_at_once, instant, land
from replayed import (
    assert_books_balance,
    assert_nothing_written,
    assert_same_tables,
    assert_told_by_replay,
    by_days,
    of_range,
    published,
    told_by_replay,
)

from strandline.lake.store.days import Days
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.slot import channels_passed
from strandline.pipeline.views.slots import slots_of

pytestmark = pytest.mark.spark

WEEK = a_week(days=5)
SPEC = a_spec()
BY_SEQUENCE = a_spec(
    pipeline="by_sequence",
    source__arrival_date=None,
    source__channels="discovered",
    source__sequence="position",
    source__key={"who": "upper(device)"},
    source__valid="amount < 95",
    watermark__emit="per_record",
    window__offset="-20m",
    quality__gaps="allow",
    firings=True,
)


@pytest.fixture(scope="module")
def stages(spark, tmp_path_factory):
    """The week day by day, one day skipped and one repeated: the lake after each day."""
    line = Line(spark, tmp_path_factory.mktemp("days"), SPEC)
    land(line.folder, WEEK)
    kept = {}
    for day in ("2", "3", "5"):
        line.advance(day)
        kept[day] = line.copy(tmp_path_factory.mktemp(f"until{day}"))
    before = line.versions()
    again = line.advance("5")
    assert not again.changed
    assert line.versions() == before
    line.advance("6")
    kept["6"] = line.copy(tmp_path_factory.mktemp("until6"))
    return kept


@pytest.fixture(scope="module")
def in_one_go(spark, tmp_path_factory):
    """The week in one go, its landing in another order, in many files, not partitioned.

    By a driver of little memory.
    """
    line = Line(spark, tmp_path_factory.mktemp("one"), SPEC, audited=True)
    rows = list(WEEK)
    random.Random(7).shuffle(rows)
    for start in range(0, len(rows), 200):
        land(line.folder, rows[start : start + 200], mode="append", partition_by=[])
    with few_at_once(250):
        line.backfill("1", "7", as_of="6")
    return line


@pytest.mark.parametrize("day", ["2", "3", "5", "6"])
@pytest.mark.story
def test_each_day_leaves_what_flink_would_have_said_by_then(stages, day):
    assert_told_by_replay(stages[day], WEEK, day)


@pytest.mark.story
def test_day_by_day_equals_in_one_go_equals_one_advance_whatever_the_files(
    spark, tmp_path, stages, in_one_go
):
    advanced = Line(spark, tmp_path, SPEC)
    land(tmp_path, reversed(WEEK), partition_by=["arrived_on", "source"])
    advanced.advance("6 13:00")
    for name in RESULTS:
        assert stages["6"].rows(name) == in_one_go.rows(name) == advanced.rows(name), name


@pytest.mark.story
def test_every_book_of_every_run_balances(stages, in_one_go):
    assert_books_balance(stages["6"])
    assert_books_balance(in_one_go)
    (published,) = [entry for entry in in_one_go.ledger if entry.step == "published"]
    landed = {book.name: book.total for book in published.books}
    days = Counter(f"arrival day {row['arrived_on']}" for row in WEEK)
    expected = told_by_replay(SPEC, WEEK, "6")["quarantine"]
    malformed = sum(position[0] is None for position, _ in expected)
    assert landed == days | {"range": len(WEEK) - malformed}


def test_a_rerun_or_an_older_run_takes_nothing_back_and_writes_nothing(stages, tmp_path):
    line = stages["6"].copy(tmp_path)
    assert_nothing_written(line, lambda: line.backfill("1", "7"))
    assert_nothing_written(line, lambda: line.advance("3"))
    assert line.ledger[-1].frontier_ms == instant("6")


def test_what_a_run_by_hand_knows_ahead_of_the_schedule_is_not_taken_back(stages, tmp_path):
    line, final = stages["3"].copy(tmp_path), stages["6"]
    line.backfill("1", "3")  # all that ever came
    line.advance("5")
    for name in RESULTS:
        kept = of_range(line.rows(name), "1", "3")
        assert kept == of_range(final.rows(name), "1", "3"), name
    line.advance("6")
    assert line.published() == final.published()


def test_a_schedule_heals_what_a_run_as_of_an_earlier_day_has_taken_back(stages, tmp_path):
    line = stages["5"].copy(tmp_path)
    taken = line.backfill("1", "7", as_of="3")  # that windows go is no question there
    assert taken.diff["windows"]["delete"] > 0.2 * len(stages["5"].rows("windows"))
    assert taken.frontier_ms == instant("3")
    line.advance("6")
    assert line.published() == stages["6"].published()


@pytest.mark.story
def test_a_range_rebuilt_alone_equals_that_range_of_the_full_rebuild(spark, tmp_path, in_one_go):
    start, end = "3 07:20", "5 12:00"
    line = Line(spark, tmp_path, SPEC)
    land(tmp_path, WEEK)
    outcome = line.backfill(start, end, as_of="6")
    assert outcome.read["arrival_days"] < 5
    for name in RESULTS:
        alone, whole = line.rows(name), in_one_go.rows(name)
        assert of_range(alone, start, end) == of_range(whole, start, end) != [], name
        malformed = [row for row in whole if name == "quarantine" and row["slot_start"] is None]
        assert len(alone) == len(of_range(alone, start, end)) + len(malformed)
    assert outcome.frontier_ms is None


def test_a_new_aggregate_updates_every_window(stages, tmp_path):
    spec = a_spec(aggregates__largest="max(amount)")
    line = stages["6"].copy(tmp_path).of(spec)
    windows = len(line.rows("windows"))
    outcome = line.backfill("1", "7")
    assert outcome.diff["windows"] == {"insert": 0, "update": windows, "delete": 0}
    assert outcome.observed_days == []
    assert_told_by_replay(line, WEEK, "6")
    largest = defaultdict(int)
    for row in WEEK:
        largest[row["device"]] = max(largest[row["device"]], row["amount"])
    rows = line.rows("windows")
    assert all(row["mean"] <= row["largest"] <= largest[row["device"]] for row in rows)
    assert {row["spec_fingerprint"] for row in rows} == {spec.spec_fingerprint}


def test_another_bound_and_another_channel_observe_all_days_again(stages, tmp_path):
    spec = a_spec(watermark__bound="2h", source__channels=["a", "b", "z"])
    line = stages["6"].copy(tmp_path).of(spec)
    outcome = line.backfill("1", "7", as_of="6")
    assert len(outcome.observed_days) == 5
    assert "undeclared_channel" not in outcome.malformed
    assert_told_by_replay(line, WEEK, "6")


@pytest.fixture(scope="module")
def by_sequence(spark, tmp_path_factory):
    """The week by per-record watermarks and discovered channels, with the firing history."""
    line = Line(spark, tmp_path_factory.mktemp("sequence"), BY_SEQUENCE)
    return by_days(line, WEEK, "3", "6")


def test_day_by_day_equals_in_one_go_per_record_and_with_firings(by_sequence, tmp_path):
    assert_told_by_replay(by_sequence, WEEK, "6")
    once = Line(by_sequence.spark, tmp_path, BY_SEQUENCE)
    land(tmp_path, reversed(WEEK), partition_by=["source"])
    once.backfill("1", "7", as_of="6")
    assert_same_tables(once, by_sequence)


def test_the_last_firing_of_a_window_is_its_row(by_sequence):
    last = {}
    for row in sorted(by_sequence.rows("firings"), key=lambda row: row["firing"]):
        last[row["window_start"], row["who"]] = row
    windows = by_sequence.rows("windows")
    assert len(windows) == len(last)
    for window in windows:
        firing = last[window["window_start"], window["who"]]
        assert firing["firing"] == window["firings"]
        for name in ("window_end", "records", "total", "mean", "spec_fingerprint"):
            assert firing[name] == window[name]
    assert {row["timing"] for row in last.values()} == {"ON_TIME", "LATE"}


GOES_IDLE = a_spec(
    pipeline="goes_idle",
    watermark__emit={"every": "7m"},
    watermark__idleness="90m",
    source__channels="discovered",
    firings=True,
)


def test_where_channels_go_idle_day_by_day_equals_in_one_go_also_after_a_day_that_lands_late(
    spark, tmp_path
):
    before = [row for row in WEEK if row["arrived_on"].day != 4]
    line = by_days(Line(spark, tmp_path / "days", GOES_IDLE), before, "3", "6")
    assert_told_by_replay(line, before, "6")
    land(line.folder, [row for row in WEEK if row["arrived_on"].day == 4], mode="append")
    once = Line(spark, tmp_path / "once", GOES_IDLE)
    land(once.folder, reversed(WEEK), partition_by=["source"])
    outcome = once.backfill("1", "7", as_of="6")
    assert len(outcome.observed_days) == 5
    assert_told_by_replay(once, WEEK, "6")
    # a day follows from those before it: the one after the late one is observed again
    healed = line.backfill("1", "7", as_of="6")
    assert [day[-2:] for day in healed.observed_days] == ["04", "05"]
    assert_same_tables(line, once)
    line.backfill("1", "7", as_of="3")
    earlier = told_by_replay(GOES_IDLE, WEEK, "3")  # malformed rows of later days stay
    for name in ("windows", "completeness", "firings"):
        assert published(line)[name] == earlier[name], name


def test_the_last_channel_to_pass_a_window_is_the_one_that_fires_and_closes_it(stages):
    shown = Shown.of(SPEC, stages["6"].lake)
    judged = 0
    for slot in [*slots_of(shown, Days())][::3]:
        closes_ms = shown.causes.closes_at_ms(slot)
        channels, many = channels_passed(shown, shown.causes.fires_at_ms(slot), closes_ms)
        assert many == 2
        for of_slot, by_channel in (
            (slot.fired_at_ms, [one["fired_ms"] for one in channels]),
            (slot.closed_at_ms, [one["closed_ms"] for one in channels]),
        ):
            assert of_slot == (None if None in by_channel else max(by_channel))
        judged += slot.state == "closed"
    assert judged > 10
