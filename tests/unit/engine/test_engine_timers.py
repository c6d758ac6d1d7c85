"""The times at which windows fire early: all of them, and when they are reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cells import axis_of, history_by_record, slots_in
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_strategies import cumulative_windows, sliding_windows, windows
from strategies import Stream, streams

from strandline.engine import columns as c
from strandline.engine.calendar.timers import most_times, timer_columns, times_of
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.position.grid import Grid
from strandline.model.intervals import EVERYTHING
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.trigger import Continuous

MANY = settings(max_examples=min(settings.default.max_examples, 100))
STREAMS = streams(window=windows() | sliding_windows() | cumulative_windows())
INTERVALS = st.integers(1, 50) | st.just(MAX_WATERMARK)


def early(stream: Stream, interval_ms: int) -> Stream:
    trigger = Continuous(continuous=f"{interval_ms}ms")
    return replace(stream, spec=stream.spec.model_copy(update={"trigger": trigger}))


@given(STREAMS, INTERVALS, st.integers(-200, 200))
def test_the_times_of_a_window_are_the_multiples_inside_it_and_its_end(stream, interval_ms, ts_ms):
    stream = early(stream, interval_ms)
    grid = Grid.of(stream.spec)
    ids = grid.ids_within(EVERYTHING)
    window_id = ids.start + (ts_ms - ids.start) // ids.step * ids.step
    window, (times, counts) = grid.window(window_id), times_of(grid, np.array([window_id]))
    inside = range(window.start_ms + 1, window.max_timestamp_ms)
    assert times.tolist() == [
        *(ms for ms in inside if ms % interval_ms == 0),
        window.max_timestamp_ms,
    ]
    assert counts.tolist() == [len(times)]
    assert len(times) <= most_times(grid)


@given(STREAMS, INTERVALS, st.integers(-200, 200))
def test_every_time_is_a_threshold_of_the_grid(stream, interval_ms, ts_ms):
    grid = Grid.of(early(stream, interval_ms).spec)
    assert [grid.residues] == [Grid.of(stream.spec).residues]
    reached = max(ts_ms - (ts_ms - least) % step for step, least in grid.thresholds)
    assert reached >= ts_ms - ts_ms % min(interval_ms, grid.interval_ms)


@MANY
@given(STREAMS, st.integers(1, 50))
def test_times_are_reached_when_they_are_record_by_record(stream, interval_ms):
    stream = early(stream, interval_ms)
    history, replayed = history_by_record(stream), stream.replay()
    ended = (Closure(EVERYTHING, stream.horizon_ms),) if stream.end_of_input else ()
    clock = Clock(stream.horizon_ms, ended)
    slots = slots_in(history, EVERYTHING, clock)
    columns = {n: a.to_pylist() for n, a in timer_columns(slots, history, clock).items()}
    for place, slot in enumerate(slots.itertuples()):
        times, _ = times_of(history.grid, np.array([slot.window_id]))
        crossings = [replayed.crossing(ms) for ms in times.tolist()]
        assert columns[c.TIMES_AT][place] == [one and one.at_ms for one in crossings]
        assert columns[c.TIMES][place][-1] == slot.fire_from
        reached = sum(crossing is not None for crossing in crossings)
        assert columns[c.LAST_TIME][place] == (reached - len(times) if reached else None)
        at_end = axis_of(stream).end if stream.end_of_input else axis_of(stream).never
        assert columns[c.ENDS_FROM][place] == at_end
