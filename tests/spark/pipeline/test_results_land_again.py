"""A scheduled run over results, after rows of the other pipeline have landed again or late.

It leaves what a first run over the same results leaves: also where no result has changed, only the
watermark; where results have gone; and where other runs came in between.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from chained import DAYS, Chain, assert_told
from joined import COGROUP
from lakes import Line, a_record, a_spec, a_week, at, instant, land
from replayed import assert_told_by_replay

from strandline.errors import AuditFailedError, RetryableError, StaleStagingError
from strandline.model.intervals import TimeRange
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.request.request import Request
from strandline.spec import parse_any, parse_spec
from strandline.spec.join import SIDES

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]
WEEK = a_week(days=4)
SIX_HOURS: dict[str, Any] = {"window": {"tumbling": "6h", "offset": "15m"}}
GO = {"allow_removals": True}


def in_both(arrived: str, happened: str, position: int) -> Rows:
    """A record of each source, since the watermark is that of the slower one."""
    return [
        a_record(arrived, happened, name, device="d2", position=position - 2 * (name == "b"))
        for name in "ab"
    ]


FIRST = in_both("1 12:00", "1 11:50", -1)


def published(chain: Chain, rows: Rows, night: str, **more: Any) -> Chain:
    """Both pipelines' scheduled runs once some rows have landed."""
    land(chain.hours.folder, rows)
    for line in (chain.hours, chain.days):
        line.advance(night, **more)
    return chain


def hours_of(spark, folder, rows: Rows, night: str) -> Line:
    """What days begin with: their hours are published."""
    land(folder, rows)
    hours = Chain(spark, folder).hours
    hours.advance(night)
    return hours


def days_over(hours: Line, night: str, **rules: Any) -> Chain:
    """Both pipelines, once the days' first run has followed that of the hours."""
    chain = Chain(hours.spark, hours.folder, **SIX_HOURS, **rules)
    chain.days.advance(night)
    return chain


# the hours of the first are closed before dawn, so that none of their results changes
DAWN = [*WEEK, *in_both("2 00:50", "2 00:50", -5)]
BEFORE_DAWN = [*WEEK, *in_both("2 00:10", "2 00:17", -3), *in_both("2 00:50", "2 00:50", -9)]


def test_slots_close_at_their_new_times_though_a_run_by_hand_has_observed_the_rows_before(
    begun, spark, tmp_path
):
    chain = days_over(begun(hours_of, spark, tmp_path, DAWN, "5"), "5", allowed_lateness="6h")
    # on the second, both sources go ahead by four hours for a while
    more = [*DAWN, *in_both("2 03:00", "2 07:00", -1)]
    land(tmp_path, more)
    chain.hours.advance("5")
    chain.days.backfill("3 00:15", "4 00:15")
    chain.days.advance("5")
    assert_told(chain, more, "5")
    assert chain.to_rebuild("5") == []  # and no run does it again


def test_they_do_where_a_run_by_hand_has_observed_the_rows_during_a_scheduled_run(
    begun, spark, tmp_path
):
    rows = [*BEFORE_DAWN, *in_both("2 00:20", "2 00:20", -5)]
    more = [*BEFORE_DAWN, *in_both("2 00:20", "2 00:50", -5)]  # of the same hour: no firing changes
    chain = days_over(begun(hours_of, spark, tmp_path, rows, "4"), "4", allowed_lateness="6h")
    approved = chain.days.backfill("2 06:15", "2 12:15", prepare=True).run_id
    chain.hours.advance("5")  # a night that only goes on leaves an approval valid
    assert publish_prepared(chain.days.spec, chain.days.lake, approved, spark).status == "published"
    fired = chain.hours.table("firings").version()
    begun: list[str] = []

    def progress(begins: str) -> None:
        if begins == "audit" and not begun:
            begun.append(begins)
            kept = chain.days.backfill("2 06:15", "2 12:15", prepare=True).run_id
            land(tmp_path, more)
            chain.hours.advance("5")
            with pytest.raises(StaleStagingError, match="results of meter were published again"):
                publish_prepared(chain.days.spec, chain.days.lake, kept, spark)
            chain.days.backfill("2 06:15", "2 12:15")

    chain.days.run(Request("advance", to_ms=instant("5")), progress)
    assert (begun, chain.hours.table("firings").version()) == (["audit"], fired)
    chain.days.advance("5")
    assert_told(chain, more, "5")


def test_windows_that_no_run_has_built_are_built_though_the_watermark_has_passed_them(
    spark, tmp_path
):
    chain = published(Chain(spark, tmp_path, **SIX_HOURS), FIRST, "3")
    rows = [*FIRST, *in_both("2 10:00", "2 09:50", -5), *in_both("2 20:00", "4 20:00", -9)]
    published(chain, rows, "4")
    assert_told(chain, rows, "4")
    assert chain.to_rebuild("4") == []


def test_firings_have_the_watermark_of_now_though_none_comes_at_another_time(
    begun, spark, tmp_path
):
    rows = [*BEFORE_DAWN, *in_both("2 00:20", "2 00:20", -5)]
    chain = days_over(begun(hours_of, spark, tmp_path, rows, "4"), "4", firings=True)
    further = [
        row | ({"happened_at": at("2 00:51")} if row["position"] in {-9, -11} else {})
        for row in rows
    ]
    assert_told(published(chain, further, "4"), further, "4")


OF_THE_FOURTH = in_both("2 10:00", "4 10:00", -5)  # by clocks that are wrong
RIGHT = [*FIRST, *in_both("2 10:00", "2 09:50", -5), *in_both("2 11:00", "2 10:50", -9)]


def test_an_open_window_goes_with_its_results(spark, tmp_path):
    wrong = [*FIRST, *OF_THE_FOURTH, *in_both("2 11:00", "4 12:00", -9)]
    chain = published(Chain(spark, tmp_path, **SIX_HOURS), wrong, "3")
    assert {row["state"] for row in chain.days.rows("completeness")} > {"open"}
    assert_told(published(chain, RIGHT, "3", **GO), RIGHT, "3")


def test_a_rebuild_that_was_rejected_is_asked_for_until_it_is_published(spark, tmp_path):
    wrong = [*FIRST, *OF_THE_FOURTH, *in_both("2 11:00", "4 20:00", -9)]
    chain = published(Chain(spark, tmp_path, **SIX_HOURS), wrong, "3")
    land(tmp_path, RIGHT)
    chain.hours.advance("3", **GO)
    # the windows of the fourth would go; those before are rebuilt at once
    with pytest.raises(AuditFailedError, match="1 of 1 published windows go"):
        chain.days.advance("3")
    assert [one.kind for one in chain.to_rebuild("3")] == ["backfill"]
    rejected = next(step for step in reversed(chain.days.ledger) if step.step == "rejected")
    days = chain.days
    publish_prepared(days.spec, days.lake, rejected.run_id, spark, accept="clocks were wrong")
    assert [entry.kind for entry in chain.days.ledger[-1:]] == ["backfill"]
    assert chain.to_rebuild("3") == []
    done = chain.days.advance("3")
    assert not any("has first rebuilt" in note for note in done.notes)
    assert_told(chain, RIGHT, "3")


@pytest.mark.parametrize("over_results", [True, False], ids=["results", "a landing table"])
def test_a_run_by_hand_over_all_that_remains_lets_no_window_stay_whose_records_have_gone(
    begun, spark, tmp_path, over_results
):
    chain = Chain(spark, tmp_path, **SIX_HOURS)
    line: Line = chain.days if over_results else chain.hours.of(a_spec())
    of_the_first = [row for row in DAWN if row["happened_at"] and row["happened_at"].day == 1]
    if over_results:
        begun(hours_of, spark, tmp_path, DAWN, "5")
    else:
        land(tmp_path, DAWN)
    line.advance("5")
    rows = [
        row | {"happened_at": row["happened_at"] + timedelta(days=1)}
        if row in of_the_first
        else row
        for row in DAWN
    ]
    land(tmp_path, rows)
    if over_results:
        chain.hours.advance("5", **GO)
    by_hand = line.backfill("2 00:15", "6 00:15", **GO)
    assert line.ledger[-1].completes_ms is None
    assert by_hand.changed
    line.advance("5", **GO)
    if over_results:
        assert_told(chain, rows, "5")
    else:
        assert_told_by_replay(line, rows, "5")


def test_windows_published_as_of_a_later_cut_off_are_rebuilt_as_of_it(spark, tmp_path):
    rows = [
        row for row in a_week(days=5) if row["arrived_at"] and row["arrived_at"] < at("5 12:00")
    ]
    chain = Chain(spark, tmp_path, **SIX_HOURS)
    land(tmp_path, rows)
    chain.hours.backfill("1", "7", as_of="5 12:00")
    chain.days.backfill("2024-02-28T00:15:00Z", "7 00:15", as_of="5 12:00")
    of_the_morning = chain.days.rows("windows")[-1]["window_start"]
    assert of_the_morning >= at("5 00:00")
    edited = [
        row | {"amount": (row["amount"] or 0) + 1000} if row["arrived_at"] > at("5 01:00") else row
        for row in rows
    ]
    land(tmp_path, edited)
    chain.hours.backfill("1", "7", as_of="5 12:00")
    chain.days.advance("5", **GO)
    assert_told(chain, edited, "5 12:00")
    removed = [step.diff["windows"]["delete"] for step in chain.days.ledger if step.diff]
    assert not any(removed)  # and not inserted again by the scheduled run itself


@pytest.mark.parametrize(
    ("of_two", "edit"),
    [(False, {"allowed_lateness": "6h"}), (True, {})],
    ids=["by edited rules", "over a cogroup"],
)
def test_a_scheduled_run_goes_back_to_no_day_to_which_nothing_has_been_added(
    spark, tmp_path, of_two, edit
):
    cogroup = parse_spec(COGROUP | {"firings": True}, origin="both.yaml")
    first = Line(spark, tmp_path, cogroup if of_two else a_spec(firings=True))
    content = {
        **DAYS,
        **SIX_HOURS,
        "source": {"pipeline": first.spec.pipeline, "key": ["device"]},
        "aggregates": {"total": "sum(ours)" if of_two else "sum(total)"},
    }
    same, edited = (
        parse_any(content | rules, origin="days.yaml").over(first.spec) for rules in ({}, edit)
    )
    tables = [f"landing/{name}" for name in SIDES] if of_two else ["landing/meter"]
    for night, landing in (("3", (1, 2)), ("4", (3,))):
        for number, table in enumerate(tables):
            arrived = [
                a_record(f"{day} {hour:02}:30", f"{day} {hour:02}:10", name, amount=number)
                for day in landing
                for hour in range(24 if day < 3 else 12)
                for name in "ab"
            ]
            land(first.folder, arrived, table=table, mode="append")
        first.advance(night)
        if night == "3":
            first.of(same).advance(night)
    assert range_of_advance(first.of(edited), "4").start_ms >= instant("2")


def range_of_advance(line: Line, night: str) -> TimeRange:
    """What a scheduled run would rebuild, after results that have changed; it does not."""

    def stops(step: str) -> None:
        if step == "rebuild" and line.ledger[-1].kind == "advance":
            raise RetryableError("here", "the range is known", "-")

    with pytest.raises(RetryableError):
        line.run(Request("advance", to_ms=instant(night)), stops)
    assert (line.ledger[-1].kind, line.ledger[-1].step) == ("advance", "failed")
    return line.ledger[-1].range
