"""Closed up to: no window before it can change, whether its slot is published or has no record."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joined import JOIN
from meter import a_meter

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import (
    DAY_MS,
    HOUR_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    midnight_of,
)
from strandline.model.lateness import is_window_late
from strandline.pipeline.views.channels import emitted_before
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.watermark import closed_up_to, evaluated_watermark, first_accepting
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec, parse_any, parse_spec


def with_lateness(spec: PipelineSpec, lateness_ms: int) -> PipelineSpec:
    return spec.model_copy(update={"allowed_lateness": lateness_ms})


TEN = 20_000 * 24 * HOUR_MS + 10 * HOUR_MS
HOURS = with_lateness(a_meter({"tumbling": "1h"}), 2 * HOUR_MS)
WINDOWS = {
    "tumbling": a_meter({"tumbling": "10ms", "offset": "3ms"}),
    "sliding": a_meter({"sliding": "30ms", "every": "10ms"}),
    "cumulative": a_meter({"cumulative": "30ms", "step": "10ms"}),
    "sessions": a_meter({"session": "7ms"}),
}


def state_of(first_open_ms: int | None, *closed: TimeRange) -> PipelineState:
    """A pipeline's state after runs that closed ranges, and a scheduled run."""
    runs = [
        Entry(f"r-{number}", 1, "published", "backfill", range=one, horizon_ms=TEN, closed=True)
        for number, one in enumerate(closed)
    ]
    last = Entry("last", 1, "published", "advance", first_open_ms=first_open_ms)
    return PipelineState.of(
        replace(step, position=number) for number, step in enumerate([*runs, last], 1)
    )


def watermark_at(instant_ms: int | None) -> HeldBack:
    return HeldBack(instant_ms, None, None, None)


def test_it_is_a_slot_without_records_that_still_accepts_one():
    found = closed_up_to(HOURS, state_of(TEN), watermark_at(TEN - 1))
    assert found == TEN - 2 * HOUR_MS


def test_it_is_the_first_published_slot_that_is_open_if_all_before_are_late():
    assert closed_up_to(HOURS, state_of(TEN), watermark_at(TEN + 3 * HOUR_MS)) == TEN


def test_before_the_first_watermark_nothing_is_closed():
    assert closed_up_to(HOURS, state_of(TEN), watermark_at(None)) == LEAST_INSTANT_MS


def test_a_range_closed_by_hand_is_closed_whatever_the_watermark():
    by_hand = TimeRange(TEN - 3 * HOUR_MS, TEN - HOUR_MS)
    found = closed_up_to(HOURS, state_of(TEN, by_hand), watermark_at(TEN - 1))
    assert found == TEN - HOUR_MS


def test_without_a_watermark_of_its_own_or_with_all_slots_closed_it_goes_by_the_published_slots():
    assert closed_up_to(HOURS, state_of(TEN), None) == TEN
    assert closed_up_to(HOURS, state_of(None), watermark_at(TEN)) is None


def test_a_day_to_recompute_may_change_slots_though_all_are_closed():
    """After --close of the newest slots, all were once said to be final."""
    owed = Entry("late", 2, "owed", "backfill", owed=(date(2024, 3, 2),), position=9)
    by_hand = TimeRange(TEN - 2 * HOUR_MS, TEN)
    state = state_of(None, by_hand).after([owed])
    assert closed_up_to(HOURS, state, watermark_at(TEN - HOUR_MS - 1)) == TEN - 3 * HOUR_MS


def test_a_slot_that_no_watermark_closes_is_closed_by_hand():
    """Of windows of all time nothing was once closed after --close."""
    by_hand, every = TimeRange(TEN, TEN + HOUR_MS), TimeRange(LEAST_INSTANT_MS, 10 * TEN)
    saturated, all_time = with_lateness(HOURS, 2**63 - 1), a_meter({"global": {}})
    assert closed_up_to(saturated, state_of(TEN, by_hand), None) == TEN + HOUR_MS
    assert closed_up_to(all_time, state_of(LEAST_INSTANT_MS), None) == LEAST_INSTANT_MS
    assert closed_up_to(all_time, state_of(LEAST_INSTANT_MS, every), None) is None


def test_over_results_it_is_the_first_window_over_results_that_have_changed():
    """The next scheduled run rebuilds it, and so it was no longer closed where it once said so."""
    content = {
        "pipeline": "days",
        "source": {"pipeline": HOURS.pipeline, "key": ["device"]},
        "window": {"tumbling": "1d"},
        "aggregates": {"n": "count(*)"},
    }
    days = parse_any(content, origin="days.yaml").over(HOURS)
    tenth = 20_000 * DAY_MS
    changed = [day_of(tenth - 2 * DAY_MS), day_of(tenth - DAY_MS)]
    assert closed_up_to(days, state_of(tenth), None, changed) == tenth - 2 * DAY_MS
    assert closed_up_to(days, state_of(None), None, changed) == tenth - 2 * DAY_MS
    assert closed_up_to(days, state_of(tenth), None) == tenth
    by_hand = TimeRange(tenth - 2 * DAY_MS, tenth - DAY_MS)
    assert closed_up_to(days, state_of(tenth, by_hand), None, changed) == tenth - DAY_MS


@pytest.mark.parametrize(("ahead_ms", "closed"), [(-1, TEN - HOUR_MS), (0, TEN), (1, TEN)])
def test_of_an_interval_join_it_is_the_slot_of_the_watermark(ahead_ms, closed):
    """A record at the watermark itself is not late."""
    pairs = parse_spec(JOIN, origin="near.yaml")
    assert pairs.quality.session_slot == HOUR_MS
    assert closed_up_to(pairs, state_of(TEN), watermark_at(TEN + ahead_ms)) == closed


@pytest.mark.parametrize("kind", WINDOWS)
@given(watermark_ms=st.integers(0, 2_000), lateness_ms=st.integers(0, 60), ms=st.data())
def test_a_record_before_it_is_late_and_one_of_its_slot_is_not(kind, watermark_ms, lateness_ms, ms):
    spec = with_lateness(WINDOWS[kind], lateness_ms)
    first_ms = first_accepting(spec, watermark_ms)

    def is_late(start_ms: int) -> bool:
        longest_ms = 7 if kind == "sessions" else {"tumbling": 10}.get(kind, 30)
        return is_window_late(
            start_ms + longest_ms - 1, allowed_lateness_ms=lateness_ms, watermark_ms=watermark_ms
        )

    step_ms, offset_ms = {
        "tumbling": (10, 3),
        "sliding": (10, 0),
        "cumulative": (30, 0),
        "sessions": (1, 0),
    }[kind]
    start_ms = ms.draw(st.integers(-20, 200)) * step_ms + offset_ms
    if start_ms < first_ms:
        assert is_late(start_ms)
    slot_ms = spec.quality.session_slot if kind == "sessions" else 1
    assert not is_late(first_ms + slot_ms - 1)


def test_a_watermark_that_waits_for_a_tick_counts_once_the_tick_has_come():
    """A tick at midnight comes before the records of the new day, and after the data cut-off."""
    days = [date(2024, 3, 1), date(2024, 3, 2)]
    hourly = a_meter({"tumbling": "1h"}, {"strategy": "ascending", "emit": {"every": "1h"}})
    rows = {"channel": "", "arrival_date": days, "settled_ms": [5, 7], "pending_ms": [6, 8]}
    channels = pd.DataFrame(rows)

    def pending_on(last: date) -> list[int | None]:
        over_ms = midnight_of(last) + DAY_MS
        found = emitted_before(over_ms, channels, hourly, 0)["pending_ms"]
        return [None if pd.isna(value) else value for value in found]

    assert pending_on(date(2024, 3, 2)) == [6, None]
    assert pending_on(date(2024, 3, 3)) == [6, 8]


def test_a_first_run_by_hand_up_to_an_hour_of_the_first_day_is_closed_up_to_its_first_open_slot():
    """Nothing had arrived by the midnight before that hour, and nothing was closed, then."""
    spec, store = a_meter({"tumbling": "1h"}), Lake.at("no-lake").pipeline("meter")
    first = Entry(
        "r-1", 1, "published", "backfill", horizon_ms=TEN + 5 * HOUR_MS, first_open_ms=TEN
    )
    state = PipelineState.of([first])
    assert closed_up_to(spec, state, evaluated_watermark(ReadPipeline(spec, store, state))) == TEN
