"""The watermark of two inputs, found by when each reached a threshold, against the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, given, settings
from two_inputs import two_inputs

from strandline.reference.answer import Cause

SOME = settings(
    max_examples=max(settings.default.max_examples // 3, 5),
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
