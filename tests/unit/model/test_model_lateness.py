"""When a window fires and goes, at the very millisecond, and at the ends of 64 bits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.lateness import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    cleanup_time,
    is_window_fired,
    is_window_late,
    last_late_end,
    late_by,
    saturating_add,
    wrapping_add,
)

longs = st.integers(MIN_WATERMARK, MAX_WATERMARK)
lateness = st.integers(0, MAX_WATERMARK)
instants = st.integers(-(10**14), 10**14)


def test_a_watermark_at_the_last_millisecond_fires_and_one_before_does_not():
    assert is_window_fired(9, watermark_ms=9)
    assert not is_window_fired(9, watermark_ms=8)


def test_a_window_is_late_at_its_cleanup_time_and_not_one_before():
    assert is_window_late(9, allowed_lateness_ms=5, watermark_ms=14)
    assert not is_window_late(9, allowed_lateness_ms=5, watermark_ms=13)


def test_without_lateness_a_window_goes_as_it_fires():
    assert is_window_late(9, allowed_lateness_ms=0, watermark_ms=9)
    assert not is_window_late(9, allowed_lateness_ms=0, watermark_ms=8)


def test_a_cleanup_time_beyond_64_bits_is_the_end_of_the_input():
    assert cleanup_time(9, allowed_lateness_ms=MAX_WATERMARK) == MAX_WATERMARK
    assert not is_window_late(9, allowed_lateness_ms=MAX_WATERMARK, watermark_ms=MAX_WATERMARK - 1)
    assert is_window_late(9, allowed_lateness_ms=MAX_WATERMARK, watermark_ms=MAX_WATERMARK)


@given(longs, lateness)
def test_a_wrapping_sum_is_the_sum_modulo_64_bits(time_ms, lateness_ms):
    total = wrapping_add(time_ms, lateness_ms)
    assert MIN_WATERMARK <= total <= MAX_WATERMARK
    assert (total - time_ms - lateness_ms) % 2**64 == 0


@given(longs, lateness)
def test_sums_differ_only_where_they_overflow(time_ms, lateness_ms):
    saturated, wrapped = saturating_add(time_ms, lateness_ms), wrapping_add(time_ms, lateness_ms)
    if time_ms + lateness_ms <= MAX_WATERMARK:
        assert saturated == wrapped == time_ms + lateness_ms
    else:
        assert saturated == MAX_WATERMARK
        assert wrapped < time_ms


@given(longs, lateness, longs)
def test_a_late_window_has_fired(max_timestamp_ms, lateness_ms, watermark_ms):
    if is_window_late(max_timestamp_ms, allowed_lateness_ms=lateness_ms, watermark_ms=watermark_ms):
        assert is_window_fired(max_timestamp_ms, watermark_ms=watermark_ms)


@given(instants, st.integers(0, 10**9))
def test_the_last_late_end_is_that_of_a_late_window_and_no_later_window_is_late(
    watermark_ms, lateness_ms
):
    end_ms = last_late_end(watermark_ms, allowed_lateness_ms=lateness_ms)
    late = {"allowed_lateness_ms": lateness_ms, "watermark_ms": watermark_ms}
    assert is_window_late(end_ms - 1, **late)
    assert not is_window_late(end_ms, **late)


@given(instants, st.integers(0, 10**9), instants)
def test_late_by_is_the_least_extra_lateness_that_would_have_saved_a_record(
    max_timestamp_ms, lateness_ms, watermark_ms
):
    def is_late(extra_ms: int) -> bool:
        return is_window_late(
            max_timestamp_ms,
            allowed_lateness_ms=lateness_ms + extra_ms,
            watermark_ms=watermark_ms,
        )

    extra_ms = late_by(max_timestamp_ms, allowed_lateness_ms=lateness_ms, watermark_ms=watermark_ms)
    assert is_late(0) == (extra_ms >= 1)
    if extra_ms >= 1:
        assert is_late(extra_ms - 1)
        assert not is_late(extra_ms)
