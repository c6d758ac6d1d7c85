"""What a record offers as a watermark, and the tick that shows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Candidate, Ticks

instants = st.integers(-(10**14), 10**14)
longs = st.integers(MIN_WATERMARK, MAX_WATERMARK)
ticks = st.builds(Ticks, instants, st.integers(1, 10**7))


@given(longs, longs, st.integers(0, MAX_WATERMARK))
def test_a_later_event_time_never_offers_less(one_ms, other_ms, delay_ms):
    candidate = Candidate(delay_ms)
    least, largest = sorted((one_ms, other_ms))
    assert candidate.of(least) <= candidate.of(largest)


@given(longs, st.integers(0, MAX_WATERMARK))
def test_an_offer_is_the_event_time_less_the_delay_and_never_underflows(ts_ms, delay_ms):
    assert Candidate(delay_ms).of(ts_ms) == max(ts_ms - delay_ms, MIN_WATERMARK)


@given(ticks, instants)
def test_a_record_is_seen_by_the_first_tick_strictly_after_its_arrival(ticks, arrival_ms):
    tick_ms = ticks.after(arrival_ms)
    number, rest = divmod(tick_ms - ticks.start_ms, ticks.interval_ms)
    assert rest == 0
    assert number >= 1
    assert tick_ms > arrival_ms
    assert number == 1 or tick_ms - ticks.interval_ms <= arrival_ms


def test_a_record_on_a_ticks_millisecond_is_seen_by_the_next_one():
    assert Ticks(0, 200).after(199) == 200
    assert Ticks(0, 200).after(200) == 400


def test_nothing_is_emitted_at_the_start_itself_nor_before():
    assert Ticks(1_000, 200).after(1_000) == 1_200
    assert Ticks(1_000, 200).after(-5_000) == 1_200
