"""Whole jobs, replayed: emission, channels, ties, horizon and end, example by example."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import InputError
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.windows import TimeWindow
from strandline.reference.answer import Cause, Outcome, Replay, Timing
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.spec import PipelineSpec, parse_spec


def pipeline(
    *,
    strategy: str = "bounded_out_of_orderness",
    bound: str | None = "0ms",
    emit: Any = "per_record",
    channels: Any = None,
    sequence: str | None = None,
    lateness: str = "0ms",
    **watermark: Any,
) -> PipelineSpec:
    generator = {"strategy": strategy} | ({} if bound is None else {"bound": bound})
    content = {
        "pipeline": "test",
        "source": {
            "table": "t",
            "arrival_time": "arrival",
            "event_time": "ts",
            "channel": None if channels is None else "channel",
            "channels": channels,
            "sequence": sequence,
        },
        "watermark": {**generator, "emit": emit, **watermark},
        "window": {"tumbling": "10ms"},
        "allowed_lateness": lateness,
    }
    return parse_spec(content, origin="test.yaml")


def by_arrival(*event_times: int, channel: str = "") -> list[Record]:
    return [Record(i, ts, f"{i:02d}", channel) for i, ts in enumerate(event_times, start=1)]


def job(spec: PipelineSpec, records: list[Record], **clock: Any) -> Replay:
    return replay(spec, records, start_ms=clock.pop("start_ms", 0), **clock)


def watermarks(told: Replay) -> list[tuple[int, int]]:
    return [(emission.origin.at_ms, emission.watermark_ms) for emission in told.watermarks]


def fired(told: Replay) -> list[tuple[int, list[int]]]:
    return [(f.window.start_ms, sorted(r.ts_ms for r in f.members)) for f in told.firings]


def late(told: Replay) -> list[int]:
    return [refused.record.ts_ms for refused in told.late]


# ------------------------------------------------------------------------------------- generators


def test_a_bounded_watermark_fires_the_window_when_the_bound_has_passed():
    told = job(pipeline(bound="5ms"), by_arrival(1, 4, 12, 15, 3, 16, 9), end_of_input=True)
    assert fired(told) == [(0, [1, 4]), (10, [12, 15, 16])]
    assert late(told) == [3, 9]
    assert told.firings[0].watermark_ms == 9
    assert told.firings[0].origin.after_record == Record(4, 15, "04")


def test_a_legacy_bounded_watermark_is_one_millisecond_ahead():
    spec = pipeline(strategy="legacy_bounded_out_of_orderness", bound="5ms")
    told = job(spec, by_arrival(1, 4, 12, 14, 9))
    assert fired(told) == [(0, [1, 4])]
    assert late(told) == [9]


def test_an_ascending_watermark_spares_an_equal_event_time():
    told = job(pipeline(strategy="ascending", bound=None), by_arrival(9, 10, 9, 11, 9))
    assert watermarks(told) == [(1, 8), (2, 9), (4, 10)]
    assert late(told) == [9, 9]


def test_the_bounded_generator_counts_from_the_largest_event_time_so_far():
    assert watermarks(job(pipeline(bound="5ms"), by_arrival(0, 10, 9))) == [(1, -6), (2, 4)]


# --------------------------------------------------------------------------------------- emission


def test_no_record_is_late_because_of_its_own_watermark():
    told = job(pipeline(), by_arrival(100))
    assert told.outcomes == {"01": Outcome.ON_TIME}


def test_on_ticks_a_record_between_two_of_them_is_judged_by_the_first():
    spec = pipeline(emit={"every": "200ms"})
    records = [Record(0, 0, "1"), Record(10, 12, "2"), Record(199, 5, "3"), Record(200, 6, "4")]
    told = job(spec, records)
    assert watermarks(told) == [(200, 11)]
    assert late(told) == [6]
    assert fired(told) == [(0, [0, 5])]
    assert told.firings[0].origin.cause is Cause.TICK


def test_a_tick_comes_before_the_records_of_its_very_millisecond():
    spec = pipeline(emit={"every": "200ms"})
    told = job(spec, [Record(100, 12, "1"), Record(200, 50, "2"), Record(400, 3, "3")])
    assert watermarks(told) == [(200, 11), (400, 49)]


def test_ticks_are_counted_from_the_start_of_the_clock_and_none_is_at_the_start():
    spec = pipeline(emit={"every": "200ms"})
    told = job(spec, [Record(0, 5, "1"), Record(1_350, 6, "2")], start_ms=1_000)
    assert watermarks(told) == [(1_200, 4)]


def test_an_interval_of_zero_emits_nothing_before_the_end():
    spec = pipeline(emit={"every": "0ms"})
    told = job(spec, by_arrival(5, 500, 1), end_of_input=True)
    assert watermarks(told) == [(3, MAX_WATERMARK)]
    assert late(told) == []


@pytest.mark.parametrize("emit", ["per_record", {"every": "0ms"}])
def test_idleness_has_no_effect_where_no_tick_judges_it(emit):
    records = [Record(0, 5, "1", "a"), Record(0, 6, "2", "b"), Record(9_999, 500, "3", "a")]
    without = job(pipeline(emit=emit, channels=["a", "b"]), records)
    assert job(pipeline(emit=emit, channels=["a", "b"], idleness="1ms"), records) == without


def test_a_quiet_channel_goes_idle_at_the_tick_that_flinks_arithmetic_names():
    """ID1: ticks of 200 ms, last record at 50: idle at 1600 with 1000 ms, at 1400 with 999 ms."""
    for idleness, idle_at_ms in (("1000ms", 1600), ("999ms", 1400), ("60000ms", 60600)):
        spec = pipeline(emit={"every": "200ms"}, idleness=idleness)
        told = job(spec, [Record(50, 5, "1")], horizon_ms=100_000)
        assert [(s.origin.at_ms, s.status) for s in told.valve_status] == [(idle_at_ms, "idle")]


def test_a_violation_of_ascending_order_moves_nothing_but_is_counted_and_may_fail():
    """WM5: an equal event time is none."""
    records = by_arrival(5, 3, 5, 4, 6)
    told = job(pipeline(strategy="legacy_ascending", bound=None), records)
    assert watermarks(told) == [(1, 4), (5, 5)]
    assert told.violations == 2
    with pytest.raises(InputError, match="event time 3 is smaller than 5"):
        job(pipeline(strategy="legacy_ascending", bound=None, on_violation="fail"), records)


# --------------------------------------------------------------------------------------- channels


def test_a_declared_channel_that_never_speaks_holds_everything_back():
    told = job(pipeline(channels=["a", "b"]), by_arrival(5, 500, 1, channel="a"))
    assert told.watermarks == ()
    assert told.final_watermark_ms == MIN_WATERMARK
    assert late(told) == []


def test_the_slowest_channel_decides_what_is_late():
    records = [Record(1, 30, "1", "a"), Record(2, 15, "2", "b"), Record(3, 9, "3", "a")]
    told = job(pipeline(channels=["a", "b"]), [*records, Record(4, 10, "4", "a")])
    assert watermarks(told) == [(2, 14)]
    assert late(told) == [9]


def test_channels_are_probed_in_their_declared_order_at_one_tick():
    records = [Record(1, 12, "1", "a"), Record(2, 25, "2", "b"), Record(201, 99, "3", "a")]
    first = [Record(0, 10, "0", "a"), Record(0, 10, "00", "b")]
    second = [Record(202, 45, "4", "b"), Record(400, 0, "5", "b")]
    told = job(pipeline(emit={"every": "200ms"}, channels=["a", "b"]), [*first, *records, *second])
    assert watermarks(told) == [(200, 11), (400, 24), (400, 44)]
    turned = job(
        pipeline(emit={"every": "200ms"}, channels=["b", "a"]), [*first, *records, *second]
    )
    assert watermarks(turned) == [(200, 11), (400, 44)]


def test_an_undeclared_channel_is_refused():
    with pytest.raises(InputError, match=r"test: source\.channels: .*'c'.*malformed"):
        job(pipeline(channels=["a", "b"]), by_arrival(1, channel="c"))


def test_a_discovered_channel_takes_part_from_its_first_record_on():
    records = [Record(1, 30, "1", "a"), Record(2, 12, "2", "b"), Record(3, 50, "3", "a")]
    told = job(pipeline(channels="discovered"), [*records, Record(4, 45, "4", "b")])
    assert watermarks(told) == [(1, 29), (4, 44)]
    assert late(told) == [12]


def test_a_newcomer_waits_for_its_own_tick_and_holds_back_until_then():
    spec = pipeline(emit={"every": "200ms"}, channels="discovered")
    records = [Record(1, 30, "1", "a"), Record(250, 60, "2", "a"), Record(399, 40, "3", "b")]
    told = job(spec, [*records, Record(401, 70, "4", "b"), Record(600, 0, "5", "a")])
    assert watermarks(told) == [(200, 29), (400, 39), (600, 59)]


# ------------------------------------------------------------------------------------------- ties


def test_without_a_sequence_tied_records_are_all_judged_by_the_watermark_before_them():
    tied = [Record(1, 99, "1"), Record(1, 5, "2"), Record(2, 6, "3")]
    told = job(pipeline(), tied)
    assert late(told) == [6]
    assert watermarks(told) == [(1, 98)]


def test_with_a_sequence_each_is_judged_after_what_the_one_before_it_caused():
    tied = [Record(1, 99, "1", sequence=1), Record(1, 5, "2", sequence=2)]
    told = job(pipeline(sequence="offset"), tied)
    assert late(told) == [5]


def test_what_a_tied_instant_causes_comes_after_its_last_record():
    tied = [Record(1, 99, "1"), Record(1, 5, "2")]
    (emission,) = job(pipeline(), tied).watermarks
    assert emission.origin.after_record == tied[0]
    assert emission.origin.cause is Cause.RECORD


def test_what_a_tied_instant_causes_goes_by_channel_as_inside_a_tick():
    first = [Record(1, 10, "1", "a"), Record(1, 10, "2", "b")]
    tied = [Record(2, 30, "3", "a"), Record(2, 20, "4", "a"), Record(2, 25, "5", "b")]
    told = job(pipeline(channels=["a", "b"]), first + tied)
    assert watermarks(told) == [(1, 9), (2, 24)]
    turned = job(pipeline(channels=["b", "a"]), first + tied)
    assert watermarks(turned) == [(1, 9), (2, 24)]
    ahead = [Record(2, 15, "0", "a"), Record(3, 40, "6", "a"), Record(3, 50, "7", "b")]
    told = job(pipeline(channels=["a", "b"]), [*first, *ahead, Record(2, 12, "8", "b")])
    assert watermarks(told) == [(1, 9), (2, 11), (3, 39)]
    behind = [Record(2, 30, "3", "b"), Record(3, 40, "6", "a"), Record(3, 50, "7", "b")]
    assert watermarks(job(pipeline(channels=["b", "a"]), first + behind)) == [(1, 9), (3, 39)]
    assert watermarks(job(pipeline(channels=["a", "b"]), first + behind)) == [
        (1, 9),
        (3, 29),
        (3, 39),
    ]


def test_tied_records_accepted_late_fire_one_by_one_in_ascending_event_time():
    tied = [Record(2, 7, "1"), Record(2, 3, "2"), Record(2, 3, "0")]
    told = job(pipeline(lateness="1s"), [Record(1, 10, "first"), *tied])
    assert fired(told) == [(0, [3]), (0, [3, 3]), (0, [3, 3, 7])]
    assert [f.members[-1].record_id for f in told.firings] == ["0", "2", "1"]
    assert {f.timing for f in told.firings} == {Timing.LATE}


# -------------------------------------------------------------------------------- horizon and end


def test_without_a_horizon_the_clock_stops_at_the_last_record():
    spec = pipeline(emit={"every": "200ms"})
    assert job(spec, by_arrival(5)).watermarks == ()


def test_records_and_ticks_before_the_horizon_count_and_none_at_it():
    spec = pipeline(emit={"every": "200ms"})
    records = [*by_arrival(5), Record(200, 50, "2")]
    assert job(spec, records, horizon_ms=200).watermarks == ()
    assert watermarks(job(spec, records, horizon_ms=201)) == [(200, 4)]
    assert watermarks(job(spec, records, horizon_ms=401)) == [(200, 4), (400, 49)]
    assert job(spec, records, horizon_ms=200).outcomes == {"01": Outcome.ON_TIME}


def test_held_input_leaves_windows_open():
    told = job(pipeline(), by_arrival(5, 12))
    assert [(o.window, o.end_passed) for o in told.open_at_end] == [(TimeWindow(10, 20), False)]


def test_a_fired_window_stays_open_for_its_allowed_lateness():
    told = job(pipeline(lateness="5ms"), by_arrival(5, 12))
    assert [(o.window, o.end_passed) for o in told.open_at_end] == [
        (TimeWindow(0, 10), True),
        (TimeWindow(10, 20), False),
    ]


def test_the_end_of_the_input_fires_everything_just_before_the_horizon():
    told = job(
        pipeline(channels=["a", "b"]),
        by_arrival(5, channel="a"),
        horizon_ms=1_000,
        end_of_input=True,
    )
    assert fired(told) == [(0, [5])]
    assert told.firings[0].origin.at_ms == 999
    assert told.firings[0].origin.cause is Cause.END
    assert told.final_watermark_ms == MAX_WATERMARK
    assert told.open_at_end == ()


def test_a_job_without_records_tells_nothing():
    told = job(pipeline(channels="discovered"), [], end_of_input=True)
    assert told.firings == told.watermarks == told.late == told.open_at_end == ()


def test_the_final_content_of_a_window_is_its_last_firing():
    told = job(pipeline(lateness="5ms"), by_arrival(5, 12, 7))
    assert fired(told) == [(0, [5]), (0, [5, 7])]
    assert [[r.ts_ms for r in pane.members] for pane in told.final] == [[5, 7]]


def test_a_crossing_is_the_moment_that_first_reaches_a_threshold():
    told = job(pipeline(), by_arrival(5, 12, 30))
    assert told.crossing(11).at_ms == 2
    assert told.crossing(12).at_ms == 3
    assert told.crossing(30) is None
