"""Which channel holds the watermark back, and since when."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pandas as pd
import pytest
from cells import history_by_record
from dear import ASKED, DEAR
from hypothesis import given, settings
from hypothesis import strategies as st
from joined import COGROUP, JOIN
from meter import a_meter
from spec_strategies import generators_of, watermarks_of
from strategies import Stream, streams
from two_inputs import two_inputs

from strandline.engine.idleness.state import Channel, SourceState
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.pipeline.audit.channel_checks import (
    _offers_ahead,
    _waits_for_a_tick,
    _watermark_at,
)
from strandline.pipeline.views.channels import ChannelWatermarks
from strandline.pipeline.views.watermark import watermark_by
from strandline.quality.report.held_back_by import HeldBack, held_back_by, silent_channels
from strandline.spec import PipelineSpec, find_spec, parse_spec
from strandline.spec.joined import CogroupSpec, JoinedSpec
from strandline.spec.runnable import not_yet

HOUR_MS = 3_600_000
DAY = midnight_of(date(2013, 1, 5))


def spec(**source):
    three = {"channel": "source", "channels": ["a", "b", "c"]}
    return a_meter({"tumbling": "1h"}, **(three | source))


def days(*rows: tuple[str, int, int | None, int | None]) -> pd.DataFrame:
    told = [(name, date(2013, 1, day), settled, pending) for name, day, settled, pending in rows]
    names = ["channel", "arrival_date", "settled_ms", "pending_ms"]
    rows = pd.DataFrame(told, columns=names, dtype=object)
    return rows.astype({"settled_ms": "Int64", "pending_ms": "Int64"})


def test_the_channel_with_the_least_watermark_holds_since_the_day_that_last_raised_it():
    channels = days(
        ("a", 5, DAY, None),
        ("b", 3, DAY - 9 * HOUR_MS, DAY - 5 * HOUR_MS),
        ("b", 4, DAY - 6 * HOUR_MS, None),
        ("c", 5, DAY + HOUR_MS, None),
    )
    assert str(held_back_by(channels, spec())) == (
        "at 2013-01-04T19:00:00Z; held by channel b since 2013-01-03; the others are 5h ahead"
    )


def test_a_watermark_outside_the_years_is_told_in_milliseconds_to_the_last_digit():
    bound = 2**63 - 1
    rows = [(name, 5, DAY - bound, None) for name in "ab"] + [
        ("c", 5, DAY - bound - 1, DAY - bound)
    ]
    found = held_back_by(days(*rows), spec())
    assert found.watermark_ms == DAY - bound
    assert str(found) == f"at {DAY - bound} ms; held by channel a since 2013-01-05"


def test_a_declared_channel_that_has_never_spoken_holds_everything():
    found = held_back_by(days(("a", 5, DAY, None), ("b", 5, DAY, None)), spec())
    assert str(found) == "none; held by channel c, which has never offered one"
    assert held_back_by(days(("a", 5, DAY, None)), spec(channels="discovered")).held_by == "a"


def a_join(content=COGROUP, **sides):
    """Two sources by their channels: a tuple of them, or how they are told otherwise."""
    bounded = {"strategy": "bounded_out_of_orderness", "bound": "1h", "emit": "per_record"}
    sources = {
        name: content["sources"][name] | {"watermark": bounded} | changed
        for name, changed in sides.items()
    }
    return parse_spec(content | {"sources": sources}, origin="both.yaml")


def test_a_discovered_channel_that_joins_behind_holds_the_watermark_where_it_is():
    """It was said to hold it back below what it had already reached."""
    before = [("a", 3, DAY - 30 * HOUR_MS, None), ("a", 4, DAY - 6 * HOUR_MS, None)]
    joining = [("a", 5, DAY, None), ("b", 5, DAY - 11 * HOUR_MS, None)]
    found = held_back_by(days(*before, *joining), spec(channels="discovered"))
    assert str(found) == (
        "at least at 2013-01-04T18:00:00Z; held by channel b since 2013-01-05, which is 5h behind "
        "it; the others are 6h ahead of it"
    )
    for behind_ms, said in ((HOUR_MS, "at least at 2013-01-04T23"), (0, "at 2013-01-05T00")):
        later = days(*before, *joining, ("b", 6, DAY - behind_ms, None), ("a", 6, DAY + 1, None))
        found = held_back_by(later, spec(channels="discovered"))
        assert str(found).startswith(f"{said}:00:00Z; held by channel b since 2013-01-06; the")
    mute = days(*before, ("b", 5, None, None))
    assert str(held_back_by(mute, spec(channels="discovered"))).startswith(
        "at 2013-01-04T18:00:00Z; held by channel b, which has never offered one"
    )


def test_of_channels_discovered_on_one_day_the_first_may_have_advanced_the_watermark_alone():
    same_day = days(("a", 5, DAY, None), ("b", 5, DAY - 4 * HOUR_MS, None))
    found = str(held_back_by(same_day, spec(channels="discovered")))
    assert found.startswith("at least at 2013-01-04T20:00:00Z; held by channel b")
    mute = days(("a", 5, DAY, None), ("b", 5, None, None))
    found = str(held_back_by(mute, spec(channels="discovered")))
    assert found == "none for certain; held by channel b, which has never offered one"


def test_what_a_side_of_an_interval_join_had_reached_is_its_own():
    """It was once the least of both sides."""
    pairs = a_join(JOIN, left={"channels": "discovered"}, right={"channels": "discovered"})
    before = [("left/a", 4, DAY, None), ("right/c", 4, DAY + 2 * HOUR_MS, None)]
    joining = days(*before, ("left/b", 5, DAY - 3 * HOUR_MS, None))
    assert str(held_back_by(joining, pairs)) == (
        "at 2013-01-05T00:00:00Z; held by channel left/b since 2013-01-05, which is 3h behind it"
    )
    other = days(*before, ("right/d", 5, DAY - HOUR_MS, None))
    assert str(held_back_by(other, pairs)) == (
        "at 2013-01-05T00:00:00Z; held by channel left/a since 2013-01-04; the others are 2h ahead"
    )


BY_RECORDS_ALONE = watermarks_of(
    st.sampled_from(["ascending", "legacy_ascending", "punctuated"]).flatmap(generators_of),
    st.sampled_from(["per_record", "7ms", "50ms"]),
    st.none(),
    st.just("valve"),
)
MANY_RECORDS = st.sampled_from([6, 12, 24])


def over_days(stream: Stream, horizon_ms: int, days_apart: int) -> Stream:
    """The same; what arrives after so many ms arrives and happens days later, up to a midnight."""
    records = []
    for record in stream.records:
        later = {"arrival_ms": record.arrival_ms, "ts_ms": record.ts_ms}
        later["candidate_ms"] = record.candidate_ms
        by_ms = (record.arrival_ms - stream.start_ms) // 30 * days_apart * DAY_MS
        moved = {name: ms if ms is None else ms + by_ms for name, ms in later.items()}
        records.append(replace(record, **moved))
    return replace(stream, records=tuple(records), horizon_ms=horizon_ms, end_of_input=False)


def midnight_after(*streams: Stream) -> int:
    arrivals = [record.arrival_ms for stream in streams for record in stream.records]
    return max(arrivals, default=streams[0].start_ms) // DAY_MS * DAY_MS + DAY_MS


def is_as_said(pipeline: PipelineSpec, channels: pd.DataFrame, of: Stream, final_ms: int) -> bool:
    step = Entry("r", 1, "published", "advance", clock_start_ms=of.start_ms)
    last = replace(step, position=1, horizon_ms=of.horizon_ms, frontier_ms=of.horizon_ms)
    found = watermark_by(pipeline, ChannelWatermarks(channels, None), PipelineState.of([last]))
    said_ms = None if found is None else found.watermark_ms
    said_ms = MIN_WATERMARK if said_ms is None else said_ms
    return said_ms <= final_ms if found is not None and found.at_least else said_ms == final_ms


@DEAR
@given(
    streams(watermark=BY_RECORDS_ALONE, channels=st.just("discovered"), length=MANY_RECORDS),
    st.integers(1, 2),
)
def test_the_watermark_is_that_of_the_reference_or_at_most_that(stream, days_apart):
    moved = over_days(stream, 0, days_apart)
    moved = replace(moved, horizon_ms=midnight_after(moved))
    history, final_ms = history_by_record(moved), moved.replay().final_watermark_ms
    assert is_as_said(moved.spec, history.timeline.channel_days, moved, final_ms)
    offered_ms = _watermark_at(history, moved.horizon_ms)
    if offered_ms is not None:  # the audit's, with what waits for a tick
        (threshold_ms,) = history.grid.largest_thresholds(pd.Series([offered_ms]))
        waits = not pd.isna(threshold_ms) and final_ms < threshold_ms
        assert _waits_for_a_tick(history, offered_ms, moved.horizon_ms) == waits


@settings(max_examples=max(ASKED // 3, 5))
@given(two_inputs(watermark=BY_RECORDS_ALONE, length=MANY_RECORDS), st.integers(1, 2))
def test_so_is_that_of_two_sources(two, days_apart):
    sides = {name: over_days(getattr(two, name), 0, days_apart) for name in ("left", "right")}
    horizon_ms = midnight_after(*sides.values())
    sides = {name: replace(side, horizon_ms=horizon_ms) for name, side in sides.items()}
    moved = replace(two, **sides)
    rows = [
        known.assign(channel=f"{name}/" + known["channel"].astype(str))
        for name, side in sides.items()
        for known in [history_by_record(side).timeline.channel_days]
    ]
    channels = pd.concat([one for one in rows if len(one)] or rows[:1], ignore_index=True)
    alone = JoinedSpec.of(two.spec)
    assert is_as_said(alone, channels, moved.left, moved.replay().final_watermark_ms)
    together = CogroupSpec.of(moved.over_windows)
    if not not_yet(moved.over_windows):
        final_ms = moved.replay_windows().final_watermark_ms
        assert is_as_said(together, channels, moved.left, final_ms)


def test_of_two_sources_each_waits_for_its_own_channels():
    mixed = a_join(left={"channels": "discovered"}, right={})
    heard = days(("left/1", 5, DAY, None), ("right/a", 5, DAY, None))
    assert silent_channels(mixed, set(heard["channel"])) == ("right/b",)
    assert held_back_by(heard, mixed).held_by == "right/b"
    assert held_back_by(days(("left/1", 5, DAY, None)), mixed).watermark_ms is None


def test_a_source_that_discovers_its_channels_and_has_none_holds_an_interval_join_alone():
    discovered = {"left": {"channels": "discovered"}, "right": {"channels": "discovered"}}
    only_left = days(("left/1", 5, DAY, None))
    assert held_back_by(only_left, a_join(JOIN, **discovered)).held_by == "right"
    assert held_back_by(only_left, a_join(COGROUP, **discovered)).watermark_ms == DAY
    both = days(("left/1", 5, DAY, None), ("right/9", 5, DAY - HOUR_MS, None))
    assert held_back_by(both, a_join(JOIN, **discovered)).held_by == "right/9"


def test_a_side_without_channels_is_named_as_a_side():
    alone = a_join(left={"channel": None, "channels": None}, right={"channels": "discovered"})
    both = days(("left/", 5, DAY, None), ("right/9", 5, DAY + HOUR_MS, None))
    assert held_back_by(both, alone).held_by == "left"
    only_right = days(("right/9", 5, DAY, None))
    assert held_back_by(only_right, alone).held_by == "left"


def test_nobody_waits_for_a_source_that_goes_by_the_clock_or_falls_idle():
    clock = {"strategy": "time_lag", "lag": "1h", "emit": {"every": "1m"}}
    by_clock = a_join(left={}, right={"watermark": clock})
    assert silent_channels(by_clock, {"left/a"}) == ("left/b",)
    idle = COGROUP["sources"]["right"]["watermark"]
    assert "idleness" in idle
    assert silent_channels(a_join(left={}, right={"watermark": idle}), {"left/a", "left/b"}) == ()


@pytest.mark.parametrize("change", [{"channel": None, "channels": None}])
def test_without_channels_none_holds(change):
    assert held_back_by(days(), spec(**change)) is None


def test_an_idle_channel_holds_nothing_and_one_that_came_back_behind_neither():
    channels = (
        Channel("a", watermark_ms=DAY, raised_ms=DAY + 7),
        Channel("b", watermark_ms=DAY - HOUR_MS, active=False, been_idle=True),
        Channel("c", watermark_ms=DAY - HOUR_MS, been_idle=True),
    )
    found = held_back_by(days(), spec(), SourceState(DAY, channels, combined_ms=DAY))
    assert str(found) == (
        "at 2013-01-05T00:00:00Z; held by channel a since 2013-01-05T00:00:00.007Z; "
        "idle, and left out: b"
    )
    asleep = tuple(Channel(name, active=False, been_idle=True) for name in "ab")
    assert (
        str(held_back_by(days(), spec(), SourceState(DAY, asleep)))
        == "none; idle, and left out: a, b"
    )


def test_results_have_the_watermark_of_another_pipeline(tmp_path):
    """Status once said that there is none."""
    (tmp_path / "hours.yaml").write_text(HOURS)
    (tmp_path / "days.yaml").write_text(DAYS)
    assert held_back_by(days(("", 5, None, None)), find_spec(tmp_path, "days")) is None


HOURS = """
pipeline: hours
source: {table: landing, arrival_time: at, event_time: ts, key: [k]}
watermark: {strategy: ascending}
window: {tumbling: 1h}
aggregates: {n: count(*)}
firings: true
"""
DAYS = """
pipeline: days
source: {pipeline: hours, key: [k]}
window: {tumbling: 1d}
aggregates: {n: sum(n)}
"""


def shown(pipeline, known: ChannelWatermarks, *, processed_ms: int) -> HeldBack | None:
    """What status shows as of a midnight, of a clock that started at the first one."""
    step = Entry("r", 1, "published", "advance", clock_start_ms=DAY)
    last = replace(step, position=1, horizon_ms=processed_ms, frontier_ms=processed_ms)
    return watermark_by(pipeline, known, PipelineState.of([last]))


def test_a_channel_is_idle_by_ticks_of_days_on_which_nothing_arrives():
    """It once held the watermark back until the next record of any channel."""
    idle = {"strategy": "ascending", "emit": {"every": "1m"}, "idleness": "30m"}
    pipeline = a_meter({"tumbling": "1h"}, idle, channel="source", channels=["a", "b"])
    channels = (
        Channel("a", watermark_ms=DAY + 23 * HOUR_MS, last_shown_ms=DAY + DAY_MS - 2),
        Channel("b", watermark_ms=DAY + 20 * HOUR_MS, last_shown_ms=DAY + DAY_MS - HOUR_MS // 2),
    )
    at_midnight = SourceState(DAY + DAY_MS, channels, combined_ms=DAY + 20 * HOUR_MS)
    known = ChannelWatermarks(days(("a", 5, DAY, None)), at_midnight)
    found = shown(pipeline, known, processed_ms=DAY + 2 * DAY_MS)
    assert found.watermark_ms == DAY + 23 * HOUR_MS
    assert found.idle == ("a", "b")


@pytest.mark.parametrize(
    ("emit", "reached_ms"), [({"every": "1h"}, DAY + 21 * HOUR_MS), ("per_record", DAY + 5)]
)
def test_a_watermark_by_the_clock_is_that_of_the_last_tick_or_record(emit, reached_ms):
    """It was once the one of the last millisecond, whatever emits it."""
    lag = {"strategy": "time_lag", "lag": "2h", "emit": emit}
    rows = days(("", 5, DAY + 5, None))
    pipeline = a_meter({"tumbling": "1h"}, lag)
    known = ChannelWatermarks(rows, None)
    assert shown(pipeline, known, processed_ms=DAY + DAY_MS).watermark_ms == reached_ms


def test_a_watermark_by_the_clock_stands_while_all_channels_are_idle():
    lag = {"strategy": "time_lag", "lag": "2h", "emit": {"every": "1h"}, "idleness": "3h"}
    pipeline = a_meter({"tumbling": "1h"}, lag)
    alone = (Channel("", watermark_ms=DAY, active=False, been_idle=True, last_shown_ms=DAY),)
    known = ChannelWatermarks(days(), SourceState(DAY + DAY_MS, alone, combined_ms=DAY))
    assert shown(pipeline, known, processed_ms=DAY + 2 * DAY_MS) == HeldBack(DAY, None, None, None)


def test_no_watermark_by_whole_days_is_said_to_be_none_by_the_arrivals_before():
    """It was once none yet after a run by hand within a day, beside windows that had fired."""
    by_hand = Entry("r", 1, "published", "backfill", clock_start_ms=DAY, position=1)
    state = PipelineState.of([replace(by_hand, horizon_ms=DAY + 9, frontier_ms=DAY)])
    nothing = ChannelWatermarks(days(), None)
    found = watermark_by(spec(channels="discovered"), nothing, state)
    assert str(found) == "none; by arrivals before 2013-01-05T00:00:00Z"
    whole = PipelineState.of([replace(by_hand, horizon_ms=DAY, frontier_ms=DAY)])
    assert watermark_by(spec(channels="discovered"), nothing, whole) is None


@pytest.mark.parametrize(
    ("emit", "at"),
    [("per_record", DAY + 3 * DAY_MS), ({"every": "1h"}, DAY + 3 * DAY_MS + 1)],
)
def test_a_channel_that_retires_on_a_silent_day_holds_nothing_back_from_then_on(emit, at):
    """It once held the watermark of status back until the next record of any channel."""
    watermark = {"strategy": "ascending", "emit": emit}
    channels = {"channels": ["a", "b"], "retired": {"b": "2013-01-08"}}
    pipeline = a_meter({"tumbling": "1h"}, watermark, channel="source", **channels)
    known = ChannelWatermarks(days(("a", 5, DAY + 9, None), ("b", 5, DAY, None)), None)
    assert shown(pipeline, known, processed_ms=at - 1).held_by == "b"
    found = shown(pipeline, known, processed_ms=at)
    assert (found.held_by, found.watermark_ms) == ("a", DAY + 9)


def test_what_waits_for_a_tick_is_no_watermark_before_it():
    """A window that it reaches was once said to have been reached since the last run."""
    seldom = {"strategy": "ascending", "emit": {"every": "7h"}}
    known = ChannelWatermarks(days(("", 5, DAY, DAY + HOUR_MS)), None)
    pipeline = a_meter({"tumbling": "1h"}, seldom)
    assert shown(pipeline, known, processed_ms=DAY + DAY_MS).watermark_ms == DAY
    assert shown(pipeline, known, processed_ms=DAY + 2 * DAY_MS).watermark_ms == DAY + HOUR_MS


def test_what_waits_for_a_tick_waits_for_one_of_its_own_source():
    """Where the other source has none, it once waited for ever."""
    ticking = {"strategy": "ascending", "emit": {"every": "7h"}}
    pipeline = a_join(
        JOIN, left={"channels": "discovered"}, right={"channels": ["a"], "watermark": ticking}
    )
    rows = days(("left/a", 5, DAY + HOUR_MS, None), ("right/a", 5, None, DAY))
    known = ChannelWatermarks(rows, None)
    assert shown(pipeline, known, processed_ms=DAY + DAY_MS).watermark_ms is None
    assert shown(pipeline, known, processed_ms=DAY + 2 * DAY_MS).watermark_ms == DAY


def test_without_ticks_there_is_no_watermark_whatever_waits_for_one():
    never = {"strategy": "ascending", "emit": {"every": "0ms"}}
    rows, pipeline = days(("", 5, None, DAY)), a_meter({"tumbling": "1h"}, never)
    known = ChannelWatermarks(rows, None)
    assert shown(pipeline, known, processed_ms=DAY + DAY_MS).watermark_ms is None
    for spec, reached_ms in ((pipeline, None), (a_meter({"tumbling": "1h"}), DAY)):  # the audit's
        history = history_of_channels(spec, rows)
        assert _watermark_at(history, DAY - 1) == reached_ms
        ahead = _offers_ahead(history.timeline, spec, DAY - 1)
        assert [*ahead["offered"]] == [one for one in [reached_ms] if one is not None]


def history_of_channels(pipeline, rows: pd.DataFrame) -> SimpleNamespace:
    """All that the audit's watermark goes by."""
    axis, timeline = SimpleNamespace(start_ms=DAY), SimpleNamespace(channel_days=rows)
    return SimpleNamespace(spec=pipeline, axis=axis, timeline=timeline)


def test_the_audit_too_counts_what_was_reached_before_a_channel_joined_behind():
    """It called the watermark not ahead of the cut-off where status showed that it was."""
    pipeline = spec(channels="discovered")
    rows = days(("a", 4, DAY + HOUR_MS, None), ("b", 5, DAY - 11 * HOUR_MS, None))
    assert _watermark_at(history_of_channels(pipeline, rows), DAY) == DAY + HOUR_MS


def test_a_tick_at_midnight_comes_before_the_channels_that_join_on_the_day():
    """With a tick a day there was said to be no watermark once another channel had joined."""
    daily = {"strategy": "ascending", "emit": {"every": "24h"}}
    pipeline = a_meter({"tumbling": "1h"}, daily, channel="source", channels="discovered")
    rows = days(("a", 5, None, DAY), ("a", 6, None, DAY + DAY_MS), ("b", 6, None, DAY - HOUR_MS))
    alone, both = ChannelWatermarks(rows[:1], None), ChannelWatermarks(rows, None)
    assert shown(pipeline, alone, processed_ms=DAY + DAY_MS).watermark_ms is None
    joined = shown(pipeline, both, processed_ms=DAY + 2 * DAY_MS)
    assert (joined.watermark_ms, joined.at_least) == (DAY, False)


@pytest.mark.parametrize("idleness", [None, "3h"])
def test_a_watermark_by_the_clock_waits_for_a_first_channel_unless_splits_do_not(idleness):
    """It was said to follow the clock where only malformed rows had landed."""
    lag = {"strategy": "time_lag", "lag": "2h", "emit": {"every": "1h"}, "idleness": idleness}
    nobody = ChannelWatermarks(days(), None)

    def reached_ms(combine, **source):
        pipeline = a_meter({"tumbling": "1h"}, lag | {"combine": combine}, **source)
        return shown(pipeline, nobody, processed_ms=DAY + DAY_MS).watermark_ms

    of_clock = DAY + 21 * HOUR_MS
    discovered = {"channel": "source", "channels": "discovered"}
    assert reached_ms("valve", **discovered) is None
    # one that is declared, or has no name, takes part from the beginning, until it is idle
    declared = of_clock if idleness is None else DAY + 2 * HOUR_MS
    assert reached_ms("valve", channel="source", channels=["a"]) == declared
    assert reached_ms("valve") == declared
    assert reached_ms("splits", **discovered) == (of_clock if idleness is None else declared)


def test_before_any_channel_has_joined_on_an_earlier_day_a_watermark_by_the_clock_is_uncertain():
    """It was said to follow the clock from the first tick of the day on."""
    lag = {"strategy": "time_lag", "lag": "2h", "emit": {"every": "1h"}}
    pipeline = a_meter({"tumbling": "1h"}, lag, channel="source", channels="discovered")
    nobody, one = (ChannelWatermarks(days(*rows), None) for rows in ((), (("a", 5, None, None),)))
    at_noon = DAY + DAY_MS + DAY_MS // 2
    found = shown(pipeline, nobody, processed_ms=at_noon)
    assert (found.watermark_ms, str(found)) == (None, "none for certain")
    assert shown(pipeline, one, processed_ms=at_noon).watermark_ms == at_noon - 3 * HOUR_MS
