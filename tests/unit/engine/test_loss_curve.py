"""The loss curve: by replays at single settings, record by record, and by thresholds as sets."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cells import axis_of, history_by_record, instant_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from meter import a_meter
from spec_strategies import any_watermarks, cumulative_windows, sliding_windows, windows
from strategies import Stream, streams

from strandline.engine.losses.reached import Offer, reached
from strandline.engine.position.grid import WIDEST_MS, Grid
from strandline.model.intervals import EVERYTHING
from strandline.model.loss_curve import LossCurve, curve_of, totals_on_offer, unit_of
from strandline.reference.loss_curve import loss_curve
from strandline.reference.replay import replay

MANY = settings(max_examples=min(settings.default.max_examples, 100))
GRIDS = windows() | sliding_windows() | cumulative_windows()
LATENESS_MS = st.integers(0, 120)


def without_gaps(stream: Stream) -> bool:
    window = stream.spec.window
    return getattr(window, "every", 0) <= getattr(window, "sliding", 0)


def lost_by_replay(stream: Stream, bound_ms: int, lateness_ms: int) -> int:
    """The records that a job with these settings refuses."""
    watermark = stream.spec.watermark
    if watermark.bound_field is not None:
        watermark = watermark.model_copy(update={watermark.bound_field: bound_ms})
    else:
        lateness_ms += bound_ms
    rules = {"watermark": watermark, "allowed_lateness": lateness_ms}
    spec = stream.spec.model_copy(update=rules)
    answer = replay(spec, stream.records, start_ms=stream.start_ms, horizon_ms=stream.horizon_ms)
    return len(answer.late)


@MANY
@given(streams(watermark=any_watermarks(), window=GRIDS), st.lists(LATENESS_MS, max_size=4))
def test_each_setting_loses_just_as_many_records_as_a_job_with_it(stream, lengths):
    assume(without_gaps(stream))
    totals = sorted({0, *lengths, 2 * sum(lengths)})
    known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    curve = loss_curve(
        stream.spec, known, totals, start_ms=stream.start_ms, horizon_ms=stream.horizon_ms
    )
    assert curve.records == len(known)
    for total in totals:
        bound = total // 3
        assert curve.lost_at(total) == lost_by_replay(stream, bound, total - bound)


@MANY
@given(streams(watermark=any_watermarks(idleness=False), window=GRIDS))
def test_sets_of_thresholds_lose_just_what_records_one_by_one_do(stream):
    assume(without_gaps(stream) and stream.spec.total_lateness_ms < WIDEST_MS)
    if stream.spec.arrival_is_event_time:
        stream = replace(
            stream, records=tuple(replace(r, ts_ms=r.arrival_ms) for r in stream.records)
        )
    known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    grid_step = stream.spec.window.assigner.step_ms
    unit = next(ms for ms in range(max(grid_step // 3, 1), grid_step + 1) if grid_step % ms == 0)
    own = stream.spec.total_lateness_ms
    totals = tuple(sorted({0, unit, 2 * unit, 7 * unit, own}))
    offer = Offer(stream.spec, EVERYTHING, unit, totals)
    history = history_by_record(replace(stream, spec=offer.without_bound))
    closes = reached(history, offer, stream.horizon_ms)
    kept_from = [0] * (len(totals) + 1)
    for record in known:
        newest = int(offer.grid.newest_starts(record.ts_ms))
        row = closes.slots_ms.tolist().index(newest)
        kept_from[sum(instant_of(stream, record) >= seen for seen in closes.seen_from[row])] += 1
    expected = loss_curve(
        stream.spec, known, totals, start_ms=stream.start_ms, horizon_ms=stream.horizon_ms
    )
    assert axis_of(stream) == history.axis
    assert curve_of(totals, kept_from) == expected


@given(st.integers(1, 40), st.integers(0, 100), st.integers(-50, 50), st.integers(-200, 200))
def test_records_that_are_observed_as_one_have_one_newest_window(units, more_ms, offset_ms, ts_ms):
    """A size that is no multiple of the unit ends its windows elsewhere than it begins them."""
    window = {"sliding": f"{7 * units + more_ms}ms", "every": f"{7 * units}ms"}
    window["offset"] = f"{offset_ms % (7 * units)}ms"
    offer = Offer(a_meter(window), EVERYTHING, 7, (0,))
    panes, near = Grid.of(offer.without_bound), np.arange(ts_ms, ts_ms + 8)
    newest = dict(zip(panes.panes_of(near), offer.grid.newest_starts(near), strict=True))
    assert [newest[pane] for pane in panes.panes_of(near)] == [*offer.grid.newest_starts(near)]


def test_the_smallest_setting_keeps_the_share_and_the_one_below_does_not():
    curve = LossCurve((0, 10, 20, 30), (500, 10, 1, 0), 1_000)
    assert curve.smallest(Fraction("0.999")) == 20  # just 1 of 1,000
    assert curve.smallest(Fraction("0.9991")) == 30
    assert curve.smallest(Fraction(0)) == 0
    assert LossCurve((0, 10), (5, 1), 10).smallest(Fraction(1)) is None
    assert LossCurve((0, 10), (0, 0), 0).smallest(Fraction(1)) == 0


def test_between_two_offers_no_number_is_given():
    curve = LossCurve((0, 10), (5, 1), 10)
    assert curve.lost_at(10) == 1
    with pytest.raises(KeyError):
        curve.lost_at(5)


@given(st.integers(1, 10**9), st.integers(0, 10**10), st.none() | st.integers(0, 10**12))
def test_totals_are_multiples_of_a_unit_that_divides_the_step_and_the_one_in_force(
    step_ms, own_ms, span_ms
):
    unit = unit_of(step_ms, span_ms)
    totals = totals_on_offer(unit, own_ms)
    assert step_ms % unit == 0
    assert totals[0] == 0
    assert own_ms in totals
    assert all(total % unit == 0 for total in totals if total != own_ms)
    assert list(totals) == sorted(set(totals))
    assert len(totals) <= 50
