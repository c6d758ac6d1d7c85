"""The valve over several channels: Flink's own cases, and what never fails."""

from __future__ import annotations

from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.valve import StatusWatermarkValve


def valve_at(a: int, b: int) -> StatusWatermarkValve:
    valve = StatusWatermarkValve(["a", "b"])
    valve.input_watermark("a", a)
    valve.input_watermark("b", b)
    return valve


def test_the_slowest_channel_decides():
    valve = StatusWatermarkValve(["a", "b"])
    assert valve.input_watermark("a", 10) is None
    assert valve.input_watermark("b", 20) == 10
    assert valve.input_watermark("a", 15) == 15
    assert valve.input_watermark("a", 30) == 20


def test_a_channel_that_has_not_spoken_holds_everything_back():
    valve = StatusWatermarkValve(["a", "b"])
    assert valve.input_watermark("a", 10) is None
    assert valve.watermark_ms == MIN_WATERMARK


def test_a_watermark_that_does_not_rise_is_ignored():
    valve = valve_at(10, 20)
    assert valve.input_watermark("a", 10) is None
    assert valve.input_watermark("a", 9) is None
    assert valve.watermark_ms == 10


def test_a_channel_that_goes_idle_is_left_out():
    valve = valve_at(10, 20)
    assert valve.input_idle("a") == 20


def test_a_channel_that_comes_back_behind_does_not_hold_back_until_it_has_caught_up():
    valve = valve_at(10, 20)
    valve.input_idle("a")
    valve.input_active("a")
    assert valve.input_watermark("a", 15) is None
    assert valve.input_watermark("b", 30) == 30
    assert valve.input_watermark("a", 31) is None
    assert valve.input_watermark("b", 40) == 31


def test_all_idle_lets_the_largest_through_if_the_valve_waited_for_the_last():
    valve = valve_at(10, 20)
    assert valve.input_idle("b") is None
    assert not valve.idle
    assert valve.input_idle("a") == 20
    assert valve.idle


def test_all_idle_lets_nothing_through_if_the_last_to_go_idle_is_behind():
    valve = StatusWatermarkValve(["a", "b", "c"])
    for channel, watermark_ms in (("a", 10), ("b", 20), ("c", 30)):
        valve.input_watermark(channel, watermark_ms)
    assert valve.input_idle("a") == 20
    valve.input_active("a")
    assert valve.input_idle("c") is None
    assert valve.input_idle("b") is None
    assert valve.input_idle("a") is None
    assert valve.idle
    assert valve.watermark_ms == 20


def test_an_idle_channels_watermark_is_ignored_and_a_second_idle_changes_nothing():
    valve = valve_at(10, 20)
    valve.input_idle("a")
    assert valve.input_watermark("a", 50) is None
    assert valve.input_idle("a") is None
    assert valve.watermark_ms == 20


def test_a_newcomer_holds_back_from_its_first_moment_and_takes_nothing_back():
    valve = StatusWatermarkValve()
    valve.join("a")
    assert valve.input_watermark("a", 10) == 10
    valve.join("b")
    assert valve.input_watermark("a", 30) is None
    assert valve.input_watermark("b", 5) is None
    assert valve.watermark_ms == 10
    assert valve.input_watermark("b", 20) == 20


events = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(-20, 20) | st.just("idle")), max_size=60
)


@DEAR
@given(events)
def test_what_a_valve_emits_always_rises(events):
    valve, emitted = StatusWatermarkValve(["a", "b", "c"]), []
    for channel, event in events:
        if event == "idle":
            emitted.append(valve.input_idle(channel))
        else:
            valve.input_active(channel)
            emitted.append(valve.input_watermark(channel, event))
    rising = [watermark_ms for watermark_ms in emitted if watermark_ms is not None]
    assert rising == sorted(set(rising))


@DEAR
@given(events)
def test_while_none_is_idle_the_valve_is_the_minimum_of_its_channels(events):
    valve = StatusWatermarkValve(["a", "b", "c"])
    largest = dict.fromkeys("abc", MIN_WATERMARK)
    for channel, event in events:
        if event != "idle":
            valve.input_watermark(channel, event)
            largest[channel] = max(largest[channel], event)
            assert valve.watermark_ms == min(largest.values())
