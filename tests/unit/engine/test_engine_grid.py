"""The grid of windows: it assigns what the assigners assign, and its thresholds are all of them."""

from __future__ import annotations

import numpy as np
from cells import window_of
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from spec_strategies import cumulative_windows, sliding_windows, windows

from strandline.engine.position.grid import Grid
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK, is_window_late
from strandline.model.windows import TimeWindow
from strandline.spec import PipelineSpec, parse_any, parse_spec


def a_spec(window: dict[str, str], lateness_ms: int = 0) -> PipelineSpec:
    content = {
        "pipeline": "test",
        "source": {"table": "t", "arrival_time": "a", "event_time": "e"},
        "watermark": {"strategy": "ascending"},
        "window": window,
        "allowed_lateness": f"{lateness_ms}ms",
    }
    return parse_spec(content, origin="test.yaml")


EVERY_KIND = windows() | sliding_windows() | cumulative_windows()
SPECS = st.builds(a_spec, EVERY_KIND, st.sampled_from([0, 1, 7, 400, MAX_WATERMARK]))
WATERMARKS = st.integers(-500, 500) | st.sampled_from([MIN_WATERMARK, MAX_WATERMARK])
TIMES = st.integers(-300, 300)


def pane_of(grid: Grid, ts_ms: int) -> int:
    return int(grid.panes_of(np.array([ts_ms]))[0])


def ids_of(grid: Grid, ts_ms: int) -> range:
    """The windows of an event time by the grid, newest first."""
    oldest, newest = grid.windows_of_panes(np.array([pane_of(grid, ts_ms)]))
    return range(int(newest[0]), int(oldest[0]) - 1, -grid.step_ms)


@given(SPECS, TIMES)
def test_an_event_time_has_the_windows_that_the_assigner_gives_it(spec, ts_ms):
    grid = Grid.of(spec)
    assigned = spec.window.assigner.windows_of(ts_ms)
    assert [window_of(grid, window) for window in ids_of(grid, ts_ms)] == list(assigned)
    assert len(assigned) <= grid.most_windows
    newest = int(grid.newest_starts(np.array([ts_ms]))[0])
    assert newest == spec.window.assigner.newest_start(ts_ms)


@given(SPECS, TIMES, st.integers(-30, 30), st.integers(-30, 30))
def test_a_start_and_an_end_are_a_window_only_where_the_assigner_has_it(spec, ts_ms, start, end):
    grid = Grid.of(spec)
    for window in spec.window.assigner.windows_of(ts_ms):
        moved = TimeWindow(window.start_ms + start, window.end_ms + end)
        if moved.start_ms < moved.end_ms:
            has = grid.has_windows(np.array([moved.start_ms]), np.array([moved.end_ms]))
            assert has == [moved in spec.window.assigner.windows_of(moved.start_ms)]


@DEAR
@given(SPECS, TIMES, st.integers(0, 60))
def test_a_pane_holds_event_times_of_the_same_windows_only(spec, ts_ms, further_ms):
    grid = Grid.of(spec)
    other_ms = ts_ms + further_ms
    if pane_of(grid, ts_ms) == pane_of(grid, other_ms):
        assert ids_of(grid, ts_ms) == ids_of(grid, other_ms)


@DEAR
@given(SPECS, TIMES, TIMES, st.integers(0, 100))
def test_the_ids_of_a_range_are_those_of_the_windows_that_start_in_it(
    spec, ts_ms, from_ms, long_ms
):
    grid, within = Grid.of(spec), TimeRange(from_ms, from_ms + long_ms)
    for window in ids_of(grid, ts_ms):
        assert (window in grid.ids_within(within)) == (window_of(grid, window).start_ms in within)


@given(SPECS, TIMES, st.integers(0, 50))
def test_within_a_part_no_window_and_no_threshold_begins(spec, ts_ms, delay_ms):
    grid = Grid.of(spec)
    into = (ts_ms - grid.offset_ms) % grid.step_ms
    cuts = grid.parts(delay_ms)
    if into and into not in cuts:
        assert pane_of(grid, ts_ms) == pane_of(grid, ts_ms - 1)
        assert all((ts_ms - delay_ms - residue) % grid.step_ms for residue in grid.residues)


@given(SPECS, WATERMARKS, st.integers(-50, 50))
def test_all_before_the_first_start_that_is_not_final_is_dropped(spec, at_ms, number):
    grid = Grid.of(spec)
    first_ms = grid.first_not_final(at_ms)
    assert first_ms <= LEAST_INSTANT_MS or grid.newest_starts(np.array([first_ms]))[0] == first_ms
    some = grid.ids_within(TimeRange(first_ms, first_ms + grid.span_ms)).start
    window = some + number * grid.step_ms
    dropped = is_window_late(
        window_of(grid, window).max_timestamp_ms,
        allowed_lateness_ms=grid.allowed_lateness_ms,
        watermark_ms=at_ms,
    )
    saturated = grid.close_thresholds(np.array([window]))[0] == MAX_WATERMARK
    before_time = window_of(grid, window).start_ms < LEAST_INSTANT_MS
    if not (saturated or before_time):
        assert dropped or window_of(grid, window).start_ms >= first_ms


@given(SPECS, st.integers(-500, 500))
def test_the_first_open_start_is_the_first_whose_longest_window_is_not_closed(spec, at_ms):
    """Of cumulative windows a start whose windows are all closed was once said to be open."""
    grid = Grid.of(spec)
    first_ms = grid.first_open(at_ms)

    def is_closed(start_ms: int) -> bool:
        return is_window_late(
            start_ms + grid.size_ms - 1,
            allowed_lateness_ms=grid.allowed_lateness_ms,
            watermark_ms=at_ms,
        )

    assert not is_closed(first_ms)
    assert first_ms == LEAST_INSTANT_MS or is_closed(first_ms - grid.span_ms)


@given(SPECS)
def test_if_no_window_is_final_the_first_instant_is_the_start_whatever_the_offset(spec):
    """Runs over all windows were said to begin at 0001-01-01T00:15:00Z."""
    assert Grid.of(spec).first_not_final(MIN_WATERMARK) == LEAST_INSTANT_MS


@given(SPECS, TIMES)
def test_every_threshold_has_one_of_the_residues(spec, ts_ms):
    grid = Grid.of(spec)
    assert len(grid.residues) <= 2
    for window in ids_of(grid, ts_ms):
        fires_ms = int(grid.fire_thresholds(np.array([window]))[0])
        assert fires_ms == window_of(grid, window).max_timestamp_ms
        assert fires_ms % grid.step_ms in grid.residues
        assert (fires_ms + grid.allowed_lateness_ms) % grid.step_ms in grid.residues


def test_a_window_wider_than_all_years_overflows_nothing():
    grid = Grid.of(a_spec({"tumbling": f"{MAX_WATERMARK}ms", "offset": "-1ms"}))
    assert grid.size_ms > END_OF_INSTANTS_MS - LEAST_INSTANT_MS
    assert 2 * grid.size_ms < MAX_WATERMARK
    grid = Grid.of(a_spec({"sliding": f"{MAX_WATERMARK}ms", "every": "1h"}))
    assert 2 * grid.size_ms < MAX_WATERMARK


def of_sessions(gap: str, slot_ms: int) -> Grid:
    spec = a_spec({"session": gap})
    quality = spec.quality.model_copy(update={"slot": slot_ms})
    return Grid.of(spec.model_copy(update={"quality": quality}))


@given(st.integers(1, 10**9), st.integers(1, 10**9), TIMES)
def test_sessions_have_the_slots_of_their_calendar_in_equal_parts(gap_ms, slot_ms, ts_ms):
    grid = of_sessions(f"{gap_ms}ms", slot_ms)
    (slot,) = ids_of(grid, ts_ms)
    assert slot <= ts_ms < slot + slot_ms == window_of(grid, slot).end_ms
    assert slot_ms % grid.threshold_step_ms == 0
    assert window_of(grid, slot).max_timestamp_ms % grid.threshold_step_ms in grid.residues


def test_the_parts_of_a_slot_are_an_eighth_of_the_gap_and_at_most_3600():
    assert of_sessions("10s", 3_600_000).threshold_step_ms == 1_250
    assert of_sessions("1ms", 3_600_000).threshold_step_ms == 1_000
    assert of_sessions("gap_ms", 3_600_000).threshold_step_ms == 1_000
    assert of_sessions("30d", 3_600_000).threshold_step_ms == 3_600_000


@given(st.integers(1, 10**6), st.integers(-(10**6), 10**6), st.integers(0, 10**6))
def test_the_edges_around_a_range_are_thresholds_next_to_it(gap_ms, start_ms, length_ms):
    grid = of_sessions(f"{gap_ms}ms", 3_600_000)
    below, past = grid.edges_around(TimeRange(start_ms, start_ms + length_ms))
    step = grid.threshold_step_ms
    assert start_ms - step <= below < start_ms
    assert start_ms + length_ms <= past < start_ms + length_ms + step
    assert {below % step, past % step} == {grid.residues[0]}


@given(st.sampled_from([LEAST_INSTANT_MS, 0, END_OF_INSTANTS_MS - 2]), st.sampled_from([0, 7]))
def test_windows_of_all_time_are_one_slot_that_only_the_end_of_the_input_ends(ts_ms, lateness_ms):
    content = {
        "pipeline": "p",
        "source": {"table": "t", "arrival_time": "a", "event_time": "t"},
        "watermark": {"strategy": "ascending"},
        "window": {"global": {}},
        "allowed_lateness": f"{lateness_ms}ms",
    }
    grid = Grid.of(parse_any(content, origin="p.yaml"))
    (slot,) = ids_of(grid, ts_ms)
    assert window_of(grid, slot) == TimeWindow(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
    assert grid.fire_thresholds(np.array([slot])) == [MAX_WATERMARK]
    assert grid.close_thresholds(np.array([slot])) == [MAX_WATERMARK]
    assert grid.first_not_final(END_OF_INSTANTS_MS - 3) == LEAST_INSTANT_MS
    assert grid.one_window_each
