"""The watermark of two inputs, found by when each reached a threshold, against the reference."""

from __future__ import annotations

from dataclasses import replace

import lakes
import numpy as np
import pandas as pd
import pytest
from dear import ASKED
from hypothesis import Phase, given, settings
from two_inputs import two_inputs

from strandline.engine.history.history import History
from strandline.engine.history.inputs import HistoryOfTwo, Input
from strandline.engine.idleness.activity import SILENCE, TICK_COLUMNS
from strandline.engine.idleness.state import Channel
from strandline.engine.idleness.union import InputSource, Union
from strandline.engine.position.axis import Axis, InputAxis
from strandline.model.intervals import DAY_MS, day_of
from strandline.reference.answer import Cause

SOME = settings(
    max_examples=max(ASKED // 3, 5),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""An example costs some 30 ms, and shrinking one minutes."""
FINE = (1,)
"""Slots so short that every millisecond is a threshold of the grid."""


@SOME
@given(two_inputs(slots_ms=FINE))
def test_two_inputs_reach_a_threshold_where_they_do_record_by_record(stream):
    crossings, replayed = stream.crossings(), stream.replay()
    axis = crossings.axis
    rises = [rise.watermark_ms for rise in replayed.watermarks][:12] or [0]
    asked = sorted({rise + by for rise in rises for by in (-1, 0, 1) if abs(rise) < 2**60})
    ended = np.full(len(asked), stream.end_of_input)
    seen, ranks = crossings.reached(asked, stream.horizon_ms, ended)
    for threshold, instant, rank in zip(asked, seen.tolist(), ranks.tolist(), strict=True):
        moment = next((r.origin for r in replayed.watermarks if r.watermark_ms >= threshold), None)
        if moment is None:
            assert instant == axis.never, threshold
        elif moment.cause is Cause.END:
            assert instant == axis.end, threshold
        else:
            assert axis.event_ms(int(instant), int(rank)) == moment.at_ms, threshold


def test_two_inputs_are_told_apart_by_their_names_and_not_by_the_order_they_come_in():
    spec = lakes.a_spec()
    axes = {"right": Axis.of(spec, 2 * DAY_MS), "left": Axis.of(spec, DAY_MS)}
    inputs = {
        name: Input(None, None, History(spec, axis, None, None)) for name, axis in axes.items()
    }
    places = HistoryOfTwo.of(None, spec, inputs).crossings.inputs
    found = [(name, place.axis.number, place.axis.own) for name, place in places.items()]
    assert found == [("left", 0, axes["left"]), ("right", 1, axes["right"])]


@SOME
@given(two_inputs())
def test_behind_one_valve_the_steps_of_two_inputs_are_the_rises_of_the_reference(stream):
    steps, told = stream.union_steps(), stream.replay_windows().watermarks
    axis = steps.axis
    rises = [(w.origin.at_ms, w.watermark_ms) for w in told if w.origin.cause is not Cause.END]
    found = [
        (axis.event_ms(int(row.seen_from), int(row.rank)), int(row.watermark_ms))
        for row in steps.table.itertuples()
    ]
    assert found == rises
    at_end = [w.watermark_ms for w in told if w.origin.cause is Cause.END]
    assert [value for _, value in steps.at_end if stream.end_of_input] == at_end


@pytest.mark.parametrize("until_ms", [None, DAY_MS])
def test_silent_days_that_come_one_by_one_are_those_of_one_stretch(until_ms):
    spec = lakes.a_spec(
        watermark={"strategy": "time_lag", "lag": "1s", "emit": {"every": "6h"}},
        source__channel=...,
        source__channels=...,
    )
    axes = InputAxis.of_two(Axis.of(spec, DAY_MS + 1), Axis.of(spec, DAY_MS + 1))
    heard = []

    class Heard(Union):
        def _advance(self, carried, activities, until_ms):
            heard.append(until_ms)
            return super()._advance(carried, activities, until_ms)

    inputs = [InputSource(spec, axis) for axis in axes]
    union = Union(*inputs)
    channels = (Channel("", joined=1000, last_shown_ms=6 * 3_600_000),)
    start = union.at_the_start()
    sources = tuple(replace(one, until_ms=until_ms, channels=channels) for one in start.sources)
    start = replace(start, until_ms=until_ms, sources=sources)
    end_ms = 5 * DAY_MS + 7
    tick = (day_of(5 * DAY_MS), "", 5 * DAY_MS + 1, np.nan, np.nan)
    active = replace(SILENCE, on_ticks=pd.DataFrame([tick], columns=[*TICK_COLUMNS]))
    activities = [active, SILENCE]
    at_once, after_all = union._advance(start, activities, end_ms)
    steps, after = Heard(*inputs).advance(start, activities, end_ms)
    assert heard == [2 * DAY_MS, 3 * DAY_MS, 4 * DAY_MS, 5 * DAY_MS, end_ms]
    assert after == after_all
    assert len(steps) > 12
    pd.testing.assert_frame_equal(steps, at_once, check_dtype=False)
