"""Which windows `--close` keeps closed, by the ledger; and what a run plans around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from cells import a_cell, cell_of, history_from, history_of
from edge_streams import a_stream
from meter import a_meter
from remembered import remembered_by

from strandline.engine.history.history import History
from strandline.engine.idleness.steps import STEP_COLUMNS
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.scope import Scope
from strandline.engine.sessions.rebuild import SessionRebuild
from strandline.engine.watermark.by_steps import StepCrossings, StepDays
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.timeline.rows import TimelineTable
from strandline.model.facts import KnownDays, LandedDays, compare
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    HOUR_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
)
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.plan.backfill import plan_backfill
from strandline.pipeline.request.request import Request

UNCHANGED = LandingStatus(
    {},
    {},
    frozenset(),
    compare(KnownDays(), LandedDays()),
    {},
    0,
    TimelineTable(None),
)


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def ran(start, end, horizon=20, **more) -> Entry:
    within = days(start, end)
    more = {"kind": "backfill", "step": "published"} | more
    return Entry("r-1", 1, range=within, horizon_ms=horizon * DAY_MS, **more)


def closed(start: int, end: int, horizon: int = 20) -> Closure:
    return Closure(days(start, end), horizon * DAY_MS)


def test_a_closed_range_stays_closed_whatever_runs_over_it_without_reopening():
    entries = [ran(1, 9, closed=True), ran(0, 30), ran(0, 30, 25, kind="advance")]
    assert PipelineState.of(entries).closures_in(EVERYTHING) == [closed(1, 9)]


def test_only_what_was_published_counts():
    assert PipelineState.of([ran(1, 9, closed=True, step="rejected")]).closures_in(EVERYTHING) == []


def test_reopening_a_part_leaves_the_rest_closed():
    entries = [ran(1, 9, closed=True), ran(3, 5, reopened=True)]
    assert PipelineState.of(entries).closures_in(EVERYTHING) == [closed(1, 3), closed(5, 9)]
    assert PipelineState.of(entries).closures_in(days(3, 5)) == []
    assert PipelineState.of([*entries, ran(0, 30, 30, reopened=True)]).closures_in(EVERYTHING) == []


def test_closing_again_at_another_horizon_wins_where_it_was_asked():
    entries = [ran(1, 9, closed=True), ran(5, 12, 30, closed=True, reopened=True)]
    assert PipelineState.of(entries).closures_in(EVERYTHING) == [closed(1, 5), closed(5, 12, 30)]
    assert PipelineState.of(entries).closures_in(days(0, 2)) == [closed(1, 5)]


def sliding_history() -> History:
    """Records at 5, 15 and 25 ms in windows of 30 ms every 10 ms: those from 0 on are open."""
    watermark = {"strategy": "ascending", "emit": "per_record"}
    spec = a_meter({"sliding": "30ms", "every": "10ms"}, watermark)
    thresholds = {5: None, 15: 9, 25: 19}
    rows = [
        a_cell(ts, ts, slot=ts - 5, threshold=threshold, first_instant=100 + ts)
        for ts, threshold in thresholds.items()
    ]
    return history_from(rows, spec, Axis.of(spec, 0))


SCHEDULED = Request("advance", to_ms=DAY_MS)


def planned(start, end, horizon, entries=(), history=None, **asked):
    request = Request("backfill", range=TimeRange(start, end), **asked)
    remembered = remembered_by(PipelineState.of(entries))
    return plan_backfill(request, history or sliding_history(), horizon, remembered, UNCHANGED)


def of_ms(start, end, horizon, **more) -> Entry:
    return replace(ran(0, 0, **more), range=TimeRange(start, end), horizon_ms=horizon)


def test_a_run_by_hand_has_processed_all_only_with_the_older_windows_of_its_records():
    """No scheduled run published the windows that start before such a range."""
    assert planned(0, DAY_MS, 2 * DAY_MS).completes_ms is None
    assert planned(-20, DAY_MS, 2 * DAY_MS).completes_ms == 2 * DAY_MS
    assert planned(-20, 20, 2 * DAY_MS).completes_ms is None


def test_windows_are_not_closed_before_older_ones_that_share_their_records():
    with pytest.raises(InputError, match="would be open longer than the one from") as no:
        planned(20, 40, 150, close=True)
    assert "the window from 1970-01-01T00:00:00.010Z" in str(no.value)
    assert "let --close begin at 1970-01-01T00:00:00Z or before" in str(no.value)
    assert planned(0, 40, 150, close=True).clock.closures == (Closure(TimeRange(0, 40), 150),)


def test_windows_that_have_no_record_yet_are_not_open_longer_than_newer_ones_either():
    """A record that came for both later was accepted and late, and the books were off for good."""
    entries = [of_ms(60, 90, 150, closed=True)]
    with pytest.raises(InputError, match="would be open longer than the one from") as no:
        planned(60, 90, 150, close=True)
    assert "the window from 1970-01-01T00:00:00.050Z" in str(no.value)
    assert "let --close begin at 1970-01-01T00:00:00Z or before" in str(no.value)
    with pytest.raises(InputError, match="reach to the end of what was closed"):
        planned(50, 70, 200, entries, reopen=True)


def test_windows_that_are_open_longer_by_now_close_with_the_newer_ones_that_were_closed():
    """A rebuild refuses nothing: rows have gone since, or rules were edited."""
    closed_once = [of_ms(20, 40, 150, closed=True)]
    by_now = (Closure(TimeRange(0, 40), 150),)
    assert planned(10, 40, 200, closed_once, started_by=SCHEDULED).clock.closures == by_now
    assert planned(-20, 0, 200, closed_once, started_by=SCHEDULED).clock.closures == by_now
    before = of_ms(-20, 10, 120, closed=True)
    found = planned(10, 40, 200, [before, *closed_once], started_by=SCHEDULED).clock.closures
    assert found == (Closure(TimeRange(-20, 10), 120), Closure(TimeRange(10, 40), 150))
    at_once = [of_ms(0, 40, 150, closed=True)]
    assert planned(10, 40, 200, at_once, started_by=SCHEDULED).clock.closures == by_now


def test_where_no_older_window_has_a_record_all_of_them_are_closed_too():
    whole = TimeRange(LEAST_INSTANT_MS, 40)
    assert planned(-20, 40, 150, close=True).scope.windows == whole
    nothing = history_from([], sliding_history().spec, Axis.of(sliding_history().spec, 0))
    closed_before = planned(20, 40, 150, close=True, history=nothing)
    assert closed_before.clock.closures == (Closure(whole, 150),)
    assert planned(20, 40, 150, history=nothing).scope.windows == TimeRange(20, 40)


def test_windows_are_not_reopened_while_newer_ones_that_share_their_records_stay_closed():
    entries = [of_ms(0, 40, 150, closed=True)]
    with pytest.raises(InputError, match="reach to the end of what was closed"):
        planned(0, 20, 200, entries, reopen=True)
    assert planned(0, 40, 200, entries, reopen=True).clock.closures == ()
    assert planned(20, 40, 200, entries, reopen=True).clock.closures == (
        Closure(TimeRange(0, 20), 150),
    )


def test_a_run_knows_the_closures_of_windows_that_share_records_with_its_own():
    entries = [of_ms(0, 40, 150, closed=True)]
    assert planned(-20, 0, 200, entries).clock.closures == (Closure(TimeRange(0, 40), 150),)
    assert planned(-90, -50, 200, entries).clock.closures == ()


def test_a_closed_range_is_rebuilt_at_another_horizon_only_where_it_is_to_stay_closed():
    entries = [of_ms(0, 40, 150, closed=True)]
    with pytest.raises(InputError, match="were closed at"):
        planned(0, 40, 200, entries)
    plan = planned(0, 40, 200, entries, started_by=SCHEDULED)
    assert plan.clock.closures == (Closure(TimeRange(0, 40), 150),)
    assert ["stay closed, since their input ended at" in note for note in plan.notes] == [True]


def test_the_end_of_an_idle_source_closes_nothing_and_the_plan_says_so():
    open_end = sliding_history()
    nothing = pd.DataFrame(columns=list(STEP_COLUMNS))
    order = open_end.crossings.order
    steps = StepCrossings(StepDays.none(), nothing, open_end.axis, 150, order=order)
    idle = replace(open_end, crossings=steps)
    plan = planned(0, 40, 150, history=idle, close=True)
    assert plan.clock.closures == ()
    assert plan.notes == (
        "the source is idle, and Flink drops the end of such an input: none is closed",
    )


def test_the_day_in_which_channels_end_raises_the_watermark_though_none_before_it_did():
    stream = a_stream((1, 4, "a"), (2, 27, "c"), channels=["a", "b", "c"])
    history = history_of(replace(stream, horizon_ms=3 * DAY_MS))
    whole = Closure(EVERYTHING, 3 * DAY_MS)
    assert history.advance_days(EVERYTHING, Clock(3 * DAY_MS)) == []
    assert history.advance_days(EVERYTHING, Clock(3 * DAY_MS, (whole,))) == []
    ended = Clock(3 * DAY_MS, (whole,), by_channel=True)
    assert history.advance_days(EVERYTHING, ended) == [day_of(2 * DAY_MS)]
    earlier = replace(ended, closures=(replace(whole, at_ms=DAY_MS),))
    assert history.advance_days(EVERYTHING, earlier) == []


def test_an_end_of_input_makes_sessions_read_whole_chains_only_where_these_may_reach_it():
    of_day = [(day * DAY_MS + 12 * HOUR_MS, day * DAY_MS + 11 * HOUR_MS, "a") for day in range(9)]
    stream = a_stream(
        *of_day,
        channels=["a"],
        window={"session": "2h"},
        quality={"slot": "1h"},
        horizon_ms=9 * DAY_MS,
    )
    axis = Axis.of(stream.spec, 0)
    cells = [cell_of(stream.spec, axis, record) for record in stream.records]
    history = history_from(cells, stream.spec, axis)

    def reads_whole(start_ms: int, ended: TimeRange, at_ms: int) -> bool:
        scope = Scope(TimeRange(start_ms, 9 * DAY_MS))
        clock = Clock(9 * DAY_MS, (Closure(ended, at_ms),))
        none: Any = None
        rebuild = SessionRebuild(none, none, history, clock, scope, none, none, none, 0)
        return rebuild.needs_whole_chains

    a_day = TimeRange(2 * DAY_MS, 3 * DAY_MS)
    assert not reads_whole(5 * DAY_MS, a_day, 3 * DAY_MS)
    assert reads_whole(5 * DAY_MS, a_day, 6 * DAY_MS)  # records of the range arrived before the end
    assert reads_whole(3 * DAY_MS + HOUR_MS, a_day, 3 * DAY_MS)  # or are connected with it
    assert reads_whole(5 * DAY_MS, EVERYTHING, 3 * DAY_MS)
    assert not reads_whole(2 * DAY_MS, a_day, 6 * DAY_MS)  # what ends begins in the range itself
