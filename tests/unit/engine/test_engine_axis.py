"""Positions as numbers: order is kept, and what is seen from when is what ticks say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.engine.position.axis import Axis
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.model.lateness import MAX_WATERMARK
from strandline.model.watermarks import Ticks
from strandline.spec import parse_spec

ARRIVALS = st.integers(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1) | st.integers(-500, 500)
SEQUENCES = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
INTERVALS = st.integers(1, 50) | st.sampled_from([200, DAY_MS, 3 * DAY_MS])


def a_spec(**changed):
    source = {"table": "t", "arrival_time": "a", "event_time": "e", **changed.pop("source", {})}
    return parse_spec(
        {
            "pipeline": "p",
            "source": source,
            "watermark": {"strategy": "ascending", "emit": changed.pop("emit", "per_record")},
            "window": {"tumbling": "10ms"},
            **changed,
        },
        origin="p.yaml",
    )


def seen_from(axis, instant):
    array = np.array([instant], dtype=object if axis.sequenced else np.int64)
    return int(axis.all_seen_from(array)[0])


@given(st.tuples(ARRIVALS, SEQUENCES), st.tuples(ARRIVALS, SEQUENCES), st.booleans())
def test_instants_are_ordered_as_arrivals_and_then_as_sequences(one, other, sequenced):
    axis = Axis(start_ms=0, interval_ms=None, sequenced=sequenced)
    known = slice(None) if sequenced else slice(1)
    assert (axis.instant(*one) < axis.instant(*other)) == (one[known] < other[known])
    assert axis.arrival_of(axis.instant(*one)) == one[0]
    assert axis.sequence_of(axis.instant(*one)) == (one[1] if sequenced else None)
    assert axis.first_of(one[0]) <= axis.instant(*one) < axis.first_of(one[0] + 1)
    assert axis.instant(*one) < axis.end < axis.never


@given(ARRIVALS, ARRIVALS, INTERVALS)
def test_a_candidate_is_seen_from_its_tick_on(start_ms, arrival_ms, interval_ms):
    axis = Axis(start_ms=start_ms, interval_ms=interval_ms, sequenced=False)
    tick_ms = seen_from(axis, arrival_ms)
    assert tick_ms == Ticks(start_ms, interval_ms).after(arrival_ms)
    assert tick_ms > arrival_ms
    assert tick_ms >= start_ms + interval_ms
    assert axis.event_ms(tick_ms, 0) == tick_ms


@given(ARRIVALS, SEQUENCES, st.booleans())
def test_per_record_a_candidate_is_seen_after_its_own_instant(arrival_ms, sequence, sequenced):
    axis = Axis(start_ms=0, interval_ms=None, sequenced=sequenced)
    instant = axis.instant(arrival_ms, sequence)
    assert seen_from(axis, instant) == instant + 1
    assert axis.event_ms(instant + 1, 0) == arrival_ms


@pytest.mark.parametrize(
    "axis",
    [
        Axis(start_ms=0, interval_ms=None, sequenced=True),
        Axis(start_ms=0, interval_ms=None, sequenced=False),
        Axis(start_ms=0, interval_ms=0, sequenced=False),
    ],
)
def test_what_never_comes_and_the_end_are_not_seen_by_any_record(axis):
    for instant in (axis.end, axis.never):
        assert seen_from(axis, instant) == axis.never


def test_an_interval_of_zero_shows_nothing():
    assert seen_from(Axis(start_ms=0, interval_ms=0, sequenced=False), 17) == 2**63 - 1


@given(ARRIVALS, ARRIVALS, SEQUENCES, st.none() | INTERVALS, st.booleans())
def test_a_horizon_knows_what_happened_before_it(horizon_ms, arrival_ms, sequence, interval, seq):
    axis = Axis(start_ms=0, interval_ms=interval, sequenced=seq and interval is None)
    seen = seen_from(axis, axis.instant(arrival_ms, sequence))
    assert (seen < axis.known_below(horizon_ms)) == (axis.event_ms(seen, 0) < horizon_ms)


@given(ARRIVALS, INTERVALS, ARRIVALS)
def test_the_last_tick_before_an_instant_is_the_largest_one(start_ms, interval_ms, instant_ms):
    axis = Axis(start_ms=start_ms, interval_ms=interval_ms, sequenced=False)
    tick_ms = axis.last_tick_before(instant_ms)
    if instant_ms <= start_ms + interval_ms:
        assert tick_ms < LEAST_INSTANT_MS
    else:
        assert tick_ms < instant_ms <= tick_ms + interval_ms
        assert (tick_ms - start_ms) % interval_ms == 0


def test_without_ticks_there_is_no_last_one():
    for interval_ms in (None, 0):
        axis = Axis(start_ms=0, interval_ms=interval_ms, sequenced=False)
        assert axis.ticks is None
        assert axis.last_tick_before(END_OF_INSTANTS_MS) < LEAST_INSTANT_MS


@given(ARRIVALS, INTERVALS)
def test_a_horizon_by_hand_knows_the_last_arrival_and_the_tick_that_shows_it(arrival_ms, interval):
    ticking = Axis(start_ms=0, interval_ms=interval, sequenced=False)
    horizon_ms = ticking.horizon_after(arrival_ms)
    tick_ms = seen_from(ticking, arrival_ms)
    assert tick_ms < ticking.known_below(horizon_ms)
    assert tick_ms >= ticking.known_below(horizon_ms - 1)
    for silent in (
        Axis(start_ms=0, interval_ms=None, sequenced=False),
        Axis(start_ms=0, interval_ms=0, sequenced=False),
    ):
        assert silent.horizon_after(arrival_ms) == arrival_ms + 1


def test_a_sequence_counts_only_where_emission_is_per_record():
    source = {"sequence": "s"}
    assert Axis.of(a_spec(source=source), 0).sequenced
    assert not Axis.of(a_spec(source=source, emit={"every": "1ms"}), 0).sequenced
    assert not Axis.of(a_spec(), 0).sequenced


def test_an_interval_beyond_all_years_overflows_nothing():
    axis = Axis.of(a_spec(emit={"every": f"{MAX_WATERMARK}ms"}), LEAST_INSTANT_MS)
    tick_ms = seen_from(axis, END_OF_INSTANTS_MS - 1)
    assert END_OF_INSTANTS_MS < tick_ms < axis.end
