"""Steps of a long past, read by the days that a question needs, answer as all of them do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from activity import step_days
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.engine.history.observed import ObservedDay
from strandline.engine.idleness.state import SourceState
from strandline.engine.idleness.steps import STEP_COLUMNS, Steps
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark.channels import ProbeOrder
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK

HOUR_MS = 3_600_000
AXIS = Axis(start_ms=0, interval_ms=HOUR_MS, sequenced=False)
DAYS = 9


@dataclass(frozen=True)
class Past:
    """Steps on hourly ticks of some days: all at once, and kept by days."""

    whole: Steps
    kept: StepCrossings


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """Runs of ticks and single ones; some days have none, the last ones are at hand."""
    days = sorted(draw(st.sets(st.integers(0, DAYS - 1), min_size=1)))
    observed, watermark_ms, tick = list[ObservedDay](), MIN_WATERMARK, 0
    for day in days:
        until_ms, rows = (day + 1) * DAY_MS, []
        while (tick := tick + draw(st.integers(1, 30))) * HOUR_MS < until_ms:
            if watermark_ms == MIN_WATERMARK:
                watermark_ms = 0
            watermark_ms += draw(st.integers(1, 40)) * HOUR_MS // 2
            room = (until_ms - 1) // HOUR_MS - tick
            more = draw(st.integers(0, min(room, 6)))
            seen = tick * HOUR_MS
            rows.append(
                (day_of(day * DAY_MS), seen, seen + more * HOUR_MS, TICK_RANK, watermark_ms)
            )
            watermark_ms += more * HOUR_MS
            tick += more
        tick = until_ms // HOUR_MS - 1
        steps = pd.DataFrame(rows, columns=[*STEP_COLUMNS])
        carried = SourceState(until_ms=until_ms, combined_ms=watermark_ms)
        observed.append(ObservedDay(day_of(day * DAY_MS), steps, carried))
    at_hand = draw(st.integers(0, len(observed)))
    before, after = observed[: len(observed) - at_hand], observed[len(observed) - at_hand :]
    horizon_ms, at_end = DAYS * DAY_MS, ((TICK_RANK, MAX_WATERMARK),)
    whole = Steps(concatenated(observed), AXIS, horizon_ms, at_end)
    kept, later, none = step_days(before), concatenated(after), ProbeOrder((), [])
    return Past(whole, StepCrossings(kept, later, AXIS, horizon_ms, at_end, order=none))


def concatenated(observed: list[ObservedDay]) -> pd.DataFrame:
    there = [one.steps for one in observed if len(one.steps)]
    return pd.concat(there, ignore_index=True) if there else pd.DataFrame(columns=[*STEP_COLUMNS])


@DEAR
@given(pasts(), st.lists(st.integers(-30, 700), max_size=6), st.booleans())
def test_thresholds_are_reached_where_all_steps_together_reach_them(past, halves, closes):
    thresholds = [*(half * HOUR_MS // 2 for half in halves), MAX_WATERMARK]
    ended = np.full(len(thresholds), closes)
    found = past.kept.reached(thresholds, past.whole.horizon_ms, ended)
    expected = past.whole.crossings(thresholds, ended)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


@DEAR
@given(pasts(), st.integers(1, DAYS * 24))
def test_the_watermark_at_an_instant_is_that_of_all_steps(past, hours):
    horizon_ms = hours * HOUR_MS
    assert past.kept.watermark_reached(horizon_ms) == past.whole.before(horizon_ms).watermark_ms


@DEAR
@given(pasts())
def test_there_is_no_watermark_at_the_first_instant(past):
    assert past.kept.watermark_reached(LEAST_INSTANT_MS) == MIN_WATERMARK


@DEAR
@given(pasts(), st.sets(st.integers(0, DAYS - 1), min_size=1))
def test_of_a_day_its_steps_are_read_and_the_last_one_before(past, days):
    asked = [day_of(day * DAY_MS) for day in days]
    found = past.kept.on_days(asked, past.whole.horizon_ms).table
    for day in asked:
        start_ms = midnight_of(day)
        assert seen_on(found, start_ms) == seen_on(past.whole.table, start_ms)


def seen_on(table: pd.DataFrame, start_ms: int) -> list[tuple]:
    """The steps that a record of a day can see, from the last one before it on."""
    on_day = (table["until"] >= start_ms) & (table["seen_from"] < start_ms + DAY_MS)
    earlier = np.flatnonzero((table["until"] < start_ms).to_numpy(dtype=bool))
    chosen = on_day.to_numpy(dtype=bool)
    chosen[earlier[-1:]] = True
    return list(table[chosen].itertuples(index=False, name=None))


@DEAR
@given(pasts())
def test_a_day_is_named_if_a_step_lies_on_it(past):
    table = past.whole.table
    spans = zip(table["seen_from"], table["until"], strict=True)
    lie_on = {day_of(tick) for seen, until in spans for tick in range(seen, until + 1, HOUR_MS)}
    assert lie_on <= past.kept.days_of_steps(past.whole.horizon_ms)
