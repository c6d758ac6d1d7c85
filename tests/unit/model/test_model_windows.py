"""The rule that assigns records to tumbling windows, by its laws and by Flink's own examples."""

from __future__ import annotations

import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.windows import TimeWindow, TumblingWindows

instants = st.integers(-(10**14), 10**14)


@st.composite
def assigners(draw: st.DrawFn) -> TumblingWindows:
    size_ms = draw(st.integers(1, 10**9))
    return TumblingWindows(size_ms, draw(st.integers(1 - size_ms, size_ms - 1)))


@given(assigners(), instants)
def test_a_window_holds_the_event_time_that_it_was_assigned_for(assigner, ts_ms):
    (window,) = assigner.windows_of(ts_ms)
    assert window.start_ms <= ts_ms < window.end_ms
    assert window.end_ms - window.start_ms == assigner.size_ms


@given(assigners(), instants)
def test_windows_lie_side_by_side_without_gap_or_overlap(assigner, ts_ms):
    (window,) = assigner.windows_of(ts_ms)
    assert assigner.windows_of(window.max_timestamp_ms) == (window,)
    (following,) = assigner.windows_of(window.end_ms)
    assert following.start_ms == window.end_ms


@DEAR
@given(assigners(), instants)
def test_an_assignment_is_what_java_computes_with_its_remainder_of_the_dividends_sign(
    assigner, ts_ms
):
    from_offset = ts_ms - assigner.offset_ms
    remainder = abs(from_offset) % assigner.size_ms * (1 if from_offset >= 0 else -1)
    start_ms = ts_ms - (remainder + assigner.size_ms if remainder < 0 else remainder)
    assert assigner.newest_start(ts_ms) == start_ms


@given(assigners(), instants)
def test_offsets_a_whole_size_apart_are_the_same(assigner, ts_ms):
    shifted = TumblingWindows(assigner.size_ms, assigner.offset_ms % assigner.size_ms)
    assert shifted.windows_of(ts_ms) == assigner.windows_of(ts_ms)


@pytest.mark.parametrize(
    ("offset_ms", "ts_ms", "window"),
    [
        (0, -1, TimeWindow(-10, 0)),
        (0, -10, TimeWindow(-10, 0)),
        (0, -11, TimeWindow(-20, -10)),
        (3, 2, TimeWindow(-7, 3)),
        (3, 3, TimeWindow(3, 13)),
        (3, 12, TimeWindow(3, 13)),
        (3, 13, TimeWindow(13, 23)),
        (-3, 6, TimeWindow(-3, 7)),
        (-3, 7, TimeWindow(7, 17)),
        (-3, -4, TimeWindow(-13, -3)),
    ],
)
def test_windows_of_ten_with_an_offset_are_those_that_flink_assigns(offset_ms, ts_ms, window):
    assert TumblingWindows(10, offset_ms).windows_of(ts_ms) == (window,)


def test_the_last_millisecond_of_a_window_is_one_before_its_end():
    assert TimeWindow(0, 10).max_timestamp_ms == 9
