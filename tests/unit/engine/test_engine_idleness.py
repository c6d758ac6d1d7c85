"""Where channels go idle, the steps of the combined watermark are those of the reference."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from activity import activity_of
from cells import axis_of
from dear import ASKED
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from spec_strategies import any_watermarks
from strategies import streams

from strandline.engine.idleness.activity import SILENCE
from strandline.engine.idleness.source import Source
from strandline.engine.idleness.state import Channel, SourceState
from strandline.engine.idleness.steps import Steps
from strandline.engine.position.axis import TICK_RANK
from strandline.model.intervals import day_of
from strandline.reference.answer import Cause

if TYPE_CHECKING:
    from strategies import Stream

IDLE = any_watermarks(idleness=True).filter(
    lambda w: w["idleness"] is not None and w["emit"] not in ("per_record", {"every": "0ms"})
)


def steps_of(stream: Stream) -> Steps:
    """The steps below the horizon, day by day."""
    axis = axis_of(stream)
    source, carried = Source(stream.spec, axis), SourceState.at_the_start(stream.spec, axis)
    known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    days = sorted({day_of(record.arrival_ms) for record in known})
    parts = []
    for day in days:
        activity = activity_of(stream, known)
        carried = SourceState.from_json(carried.to_json())
        for _, steps, after in source.advance_days(carried, [activity], [day], stream.horizon_ms):
            parts.append(steps)
            carried = after
    silent, carried = source.advance(carried, [SILENCE], stream.horizon_ms)
    table = pd.concat([*parts, silent], ignore_index=True)
    return Steps(table, axis, stream.horizon_ms, source.at_end(carried))


def expanded(steps: Steps) -> list[tuple[int, str, int]]:
    axis = steps.axis
    rows = []
    for row in steps.table.to_dict("records"):
        cause = "tick" if row["rank"] >= TICK_RANK else "record"
        for more in range(0, row["until"] - row["seen_from"] + 1, axis.ticks.interval_ms):
            at = axis.event_ms(int(row["seen_from"]) + more, int(row["rank"]))
            rows.append((at, cause, row["watermark_ms"] + more))
    return rows


def expected(stream: Stream) -> list[tuple[int, str, int]]:
    causes = {Cause.TICK: "tick", Cause.RECORD: "record", Cause.END: "end"}
    rises = [
        (w.origin.at_ms, causes[w.origin.cause], w.watermark_ms) for w in stream.replay().watermarks
    ]
    merged: list[tuple[int, str, int]] = []
    for row in rises:
        # by the clock, only the last rise of a tick is a step: no record lies between
        if merged and merged[-1][:2] == row[:2] and stream.spec.watermark.goes_by_the_clock:
            merged.pop()
        merged.append(row)
    return merged


def assert_crossed_where_the_reference_crosses(steps: Steps, stream: Stream) -> None:
    replayed = stream.replay()
    rises = [w.watermark_ms for w in replayed.watermarks][:12] or [stream.start_ms]
    thresholds = sorted({rise + by for rise in rises for by in (-1, 0, 1) if abs(rise) < 2**62})
    ended = np.full(len(thresholds), stream.end_of_input)
    seen, ranks = steps.crossings(thresholds, ended)
    for threshold, instant, rank in zip(thresholds, seen.tolist(), ranks.tolist(), strict=True):
        moment = replayed.crossing(threshold)
        if moment is None:
            assert instant == steps.axis.never, threshold
        elif moment.cause is Cause.END:
            assert instant == steps.axis.end, threshold
        else:
            assert steps.axis.event_ms(int(instant), rank) == moment.at_ms, threshold


@settings(max_examples=ASKED, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(streams(watermark=IDLE, most=40), st.integers(0, 100))
def test_the_steps_are_the_rises_of_the_reference(stream, back_ms):
    steps = steps_of(stream)
    found = expanded(steps)
    if stream.end_of_input:
        found += [(stream.horizon_ms - 1, "end", value) for _, value in steps.at_end]
    assert found == expected(stream)
    assert_crossed_where_the_reference_crosses(steps, stream)
    earlier = replace(stream, horizon_ms=stream.horizon_ms - back_ms, end_of_input=False)
    assert expanded(steps.before(earlier.horizon_ms)) == expected(earlier)


def test_a_state_keeps_the_names_under_which_older_timelines_hold_it():
    channel = Channel("a", joined=7, watermark_ms=2, active=False, last_shown_ms=3)
    state = SourceState(5, (channel,), combined_ms=4, says_idle=True, splits_idle=False)
    kept = json.loads(state.to_json())
    assert (kept["quiet"], kept["channels"][0]["heard_ms"]) == (True, 3)
    assert not {"says_idle", "last_shown_ms"} & {*kept, *kept["channels"][0]}
    assert SourceState.from_json(state.to_json()) == state
