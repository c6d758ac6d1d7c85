"""A channel that is retired holds nothing back from then on: the sets against the reference."""

from __future__ import annotations

import pytest
from cells import history_by_record, history_of, instant_of, slots_in
from hypothesis import given, settings
from lakes import a_spec
from spec_strategies import watermarks, windows
from strategies import BY_RECORDS, Stream, retired_streams, retiring

from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.calendar.slots import Calendar
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.watermark.channels import ends_of
from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.windows import TimeWindow
from strandline.reference.tables import SlotState, Tables

MANY = settings(max_examples=min(settings.default.max_examples, 40))
FEW = settings(max_examples=15)
COUNTED = [one for one in BY_RECORDS if one not in {"punctuated", "none"}]
"""The strategies that these cells can be counted of without Spark."""


def clock_of(stream: Stream) -> Clock:
    ended = (Closure(EVERYTHING, stream.horizon_ms),) if stream.end_of_input else ()
    return Clock(stream.horizon_ms, ended, by_channel=True)


def states(places) -> list[SlotState]:
    def whole(value) -> int | None:
        return None if value != value or value is None else int(value)

    rows = places.astype(object).where(places.notna(), None).itertuples()
    return [SlotState(row.state, whole(row.fire_at_ms), whole(row.close_at_ms)) for row in rows]


@MANY
@given(retired_streams(strategies=COUNTED, window=windows()))
def test_windows_fire_and_close_when_they_do_record_by_record(stream):
    tables = Tables(stream.spec, stream.replay())
    size_ms = stream.spec.window.tumbling
    newest = stream.spec.window.assigner.newest_start
    starts = [newest(r.ts_ms) for r in stream.records] or [newest(stream.start_ms)]
    around = list(range(min(starts) - size_ms, max(starts) + 2 * size_ms, size_ms))
    places = slot_times(around, history_by_record(stream), clock_of(stream))
    assert states(places) == [tables.slot(TimeWindow(s, s + size_ms)) for s in around]


@FEW
@given(retired_streams(strategies=COUNTED, window=windows()))
def test_a_records_fate_is_a_comparison_of_its_instant(stream):
    outcomes = stream.replay().outcomes
    slots = slots_in(history_by_record(stream), EVERYTHING, clock_of(stream)).set_index("slot_ms")
    for record in stream.records:
        if record.arrival_ms < stream.horizon_ms:
            slot = slots.loc[stream.spec.window.assigner.newest_start(record.ts_ms)]
            late = instant_of(stream, record) >= slot["close_from"]
            assert (outcomes[record.record_id].name == "LATE") == late


@FEW
@given(retired_streams(strategies=COUNTED, window=windows()))
def test_the_watermark_at_the_horizon_is_known_as_far_as_the_grid_can_tell(stream):
    history = history_by_record(stream)
    reached_ms = history.crossings.watermark_reached(stream.horizon_ms)
    final_ms = stream.replay(horizon_ms=stream.horizon_ms).final_watermark_ms
    assert reached_ms <= final_ms
    assert reached_ms == MIN_WATERMARK or (
        history.grid.first_not_final(reached_ms) == history.grid.first_not_final(final_ms)
    )


@FEW
@given(retired_streams(strategies=COUNTED, window=windows(), watermark=watermarks()))
def test_observed_cells_say_the_same_as_records_that_are_a_cell_each(stream):
    clock = clock_of(stream)
    one, other = (
        slots_in(history, EVERYTHING, clock)
        for history in (history_of(stream), history_by_record(stream))
    )
    names = ["slot_ms", "state", "fire_at_ms", "close_at_ms"]
    assert one[names].equals(other[names])


@FEW
@given(retired_streams(strategies=COUNTED, window=windows()))
def test_what_is_retired_after_the_horizon_changes_nothing_yet(stream):
    later = dict.fromkeys(stream.spec.source.retired, stream.horizon_ms + 1)
    told, plain = (retiring(stream, of).replay() for of in (later, {}))
    assert told.watermarks == plain.watermarks
    calendars = [
        Calendar.of(history_by_record(retiring(stream, of)), clock_of(stream), [EVERYTHING])
        for of in (later, {})
    ]
    one, other = (calendar.starting_in(EVERYTHING) for calendar in calendars)
    assert one.equals(other)


# ------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"source__retired": {"z": "2024-03-02"}},
            "source.retired.z: 'z' is not one",
        ),
        (
            {"source__channels": "discovered", "source__retired": {"a": "2024-03-02"}},
            "source.retired.a: 'a' is not one of the listed channels",
        ),
        (
            {"source__retired": {"a": "2024-03-02", "b": "2024-03-03"}},
            "source.retired: ['a', 'b'] is all of the channels; leave one that goes on",
        ),
        ({"source__retired": {"a": "soon"}}, "source.retired.a: 'soon' is not an instant"),
        (
            {"source__retired": {"a": "0001-01-01"}},
            "before every arrival; leave the channel out of source.channels",
        ),
        (
            {"source__retired": {"a": "2024-03-02"}, "watermark__idleness": "1h"},
            "of no use with watermark.idleness",
        ),
        (
            {
                "source__retired": {"a": "2024-03-02"},
                "watermark": {"strategy": "time_lag", "lag": "1h"},
            },
            "of no use where the watermark follows the clock",
        ),
    ],
)
def test_a_retirement_that_says_nothing_is_refused(given, told):
    with pytest.raises(InputError) as refused:
        a_spec(**given)
    assert told in str(refused.value)


def test_it_is_part_of_the_rules_and_none_is_as_before():
    retired = a_spec(source__retired={"b": "2024-03-02"})
    assert retired.timeline_fingerprint != a_spec().timeline_fingerprint
    assert a_spec(source__retired={}).spec_fingerprint == a_spec().spec_fingerprint


@pytest.mark.parametrize(
    ("axis", "seen_from"),
    [
        (Axis(start_ms=0, interval_ms=None, sequenced=False), 100),
        (Axis(start_ms=0, interval_ms=50, sequenced=False), 100),
        (Axis(start_ms=0, interval_ms=60, sequenced=False), 120),
        (
            Axis(start_ms=0, interval_ms=None, sequenced=True),
            Axis(start_ms=0, interval_ms=None, sequenced=True).first_of(100),
        ),
        (
            Axis(start_ms=0, interval_ms=0, sequenced=False),
            Axis(start_ms=0, interval_ms=0, sequenced=False).never,
        ),
    ],
    ids=["at once", "a tick", "the next tick", "sequenced", "never"],
)
def test_the_end_is_seen_from_its_instant_on_or_from_the_first_tick_that_is_not_before_it(
    axis, seen_from
):
    (end,) = ends_of(a_spec(source__retired={"b": "1970-01-01T00:00:00.100Z"}), axis)
    assert (end.channel, end.seen_from, axis.arrival_of(end.instant)) == ("b", seen_from, 99)
