"""The cells of the past, asked as a run asks them, against the record-by-record reference."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
from cells import (
    a_cell,
    axis_of,
    counted,
    history_by_record,
    history_from,
    history_of,
    instant_of,
    late_days,
    older_slots,
    slots_in,
    window_of,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from meter import a_meter
from spec_strategies import any_windows, cumulative_windows, sliding_windows, windows
from strategies import BEFORE_MIDNIGHT_MS, CHANNELS, Stream, streams

from strandline.engine.calendar.gaps import Gaps
from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.calendar.slots import Calendar
from strandline.engine.history.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.position.grid import Grid
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    EVERYTHING,
    TimeRange,
    day_of,
    midnight_of,
)
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.windows import TimeWindow
from strandline.reference.answer import Cause, Outcome
from strandline.reference.tables import SlotState, Tables

# an example costs some 20 ms, nearly all of it pandas' own
MANY = settings(max_examples=min(settings.default.max_examples, 100))
FEW = settings(max_examples=15)
GRIDS = windows() | sliding_windows() | cumulative_windows()


def clock_of(stream: Stream) -> Clock:
    ended = (Closure(EVERYTHING, stream.horizon_ms),) if stream.end_of_input else ()
    return Clock(stream.horizon_ms, ended, by_channel=True)


def starts_around(stream: Stream) -> list[int]:
    """The window starts of all records, those between them, and one on either side."""
    size_ms = stream.spec.window.tumbling
    starts = [stream.spec.window.assigner.newest_start(r.ts_ms) for r in stream.records] or [0]
    return list(range(min(starts) - size_ms, max(starts) + 2 * size_ms, size_ms))


def slots_of(assigner, ts_ms: int) -> set[tuple[int, int]]:
    """Start and end of the windows of an event time; of one in a gap, those of the window before.

    Only sliding windows leave gaps.
    """
    if held := assigner.windows_of(ts_ms):
        return {(window.start_ms, window.end_ms) for window in held}
    start_ms = assigner.newest_start(ts_ms)
    return {(start_ms, start_ms + assigner.size_ms)}


def whole(value) -> int | None:
    return None if pd.isna(value) else int(value)


def states(places: pd.DataFrame) -> list[SlotState]:
    return [
        SlotState(row.state, whole(row.fire_at_ms), whole(row.close_at_ms))
        for row in places.itertuples()
    ]


@MANY
@given(streams())
def test_windows_fire_and_close_when_they_do_record_by_record(stream):
    tables = Tables(stream.spec, stream.replay())
    starts = starts_around(stream)
    places = slot_times(starts, history_of(stream), clock_of(stream))
    size_ms = stream.spec.window.tumbling
    assert states(places) == [tables.slot(TimeWindow(s, s + size_ms)) for s in starts]
    assert places["slot_end_ms"].tolist() == [start + size_ms for start in starts]


@FEW
@given(streams())
def test_the_slots_of_the_whole_history_are_those_of_the_calendar(stream):
    expected = Tables(stream.spec, stream.replay()).completeness()
    slots = slots_in(history_of(stream), EVERYTHING, clock_of(stream))
    assert [
        (row.slot_ms, row.slot_end_ms, row.records, tuple(row.channels_heard))
        for row in slots.itertuples()
    ] == [
        (
            row.window.start_ms,
            row.window.end_ms,
            row.on_time + row.late_accepted + row.late,
            row.channels_heard,
        )
        for row in expected
    ]
    assert states(slots) == [row.slot for row in expected]


@MANY
@given(streams())
def test_a_records_fate_is_a_comparison_of_its_instant(stream):
    outcomes = stream.replay().outcomes
    slots = slots_in(history_of(stream), EVERYTHING, clock_of(stream)).set_index("slot_ms")
    for record in stream.records:
        if record.arrival_ms >= stream.horizon_ms:
            continue
        slot = slots.loc[stream.spec.window.assigner.newest_start(record.ts_ms)]
        instant = instant_of(stream, record)
        late, again = instant >= slot["close_from"], instant >= slot["fire_from"]
        outcome = Outcome.LATE if late else Outcome.LATE_ACCEPTED if again else Outcome.ON_TIME
        assert outcomes[record.record_id] == outcome


@FEW
@given(streams(), st.integers(2, 4))
def test_what_is_observed_in_parts_is_what_is_observed_in_one_go(stream, parts):
    one, many = history_of(stream), history_of(stream, parts=parts)
    clock = clock_of(stream)
    assert slots_in(one, EVERYTHING, clock).equals(slots_in(many, EVERYTHING, clock))
    assert one.crossings.order.channels == many.crossings.order.channels
    assert one.timeline.day_map.equals(many.timeline.day_map)
    assert one.timeline.channel_days.equals(many.timeline.channel_days)


@FEW
@given(streams(), st.integers(0, 400))
def test_a_range_has_the_slots_that_start_in_it(stream, width_ms):
    history, clock = history_of(stream), clock_of(stream)
    every = slots_in(history, EVERYTHING, clock)
    start_ms = stream.start_ms + 11
    within = TimeRange(start_ms, start_ms + width_ms)
    chosen = every[every["slot_ms"].map(within.__contains__).astype(bool)].reset_index(drop=True)
    assert slots_in(history, within, clock).to_dict("list") == chosen.to_dict("list")


@MANY
@given(streams())
def test_the_watermark_at_the_horizon_is_known_as_far_as_the_grid_can_tell(stream):
    history = history_of(stream)
    reached_ms = history.crossings.watermark_reached(stream.horizon_ms)
    final_ms = stream.replay(horizon_ms=stream.horizon_ms).final_watermark_ms
    grid = history.grid
    assert reached_ms <= final_ms
    assert grid.first_not_final(reached_ms) == grid.first_not_final(final_ms) or (
        reached_ms == MIN_WATERMARK
    )
    starts = np.array(starts_around(stream), dtype=np.int64)
    closes = grid.close_thresholds(starts)
    closed = starts[(closes <= final_ms) & (closes < MAX_WATERMARK)].tolist()
    assert all(start < grid.first_not_final(reached_ms) for start in closed)


@MANY
@given(
    streams(
        base_ms=st.sampled_from(BEFORE_MIDNIGHT_MS),
        after_last_ms=st.sampled_from([1, DAY_MS, 2 * DAY_MS]),
        channels=st.sampled_from([None, ["a"], ["b", "a", "c"]]),
    )
)
def test_the_watermark_of_every_midnight_is_carried_by_the_channels(stream):
    history = history_of(stream)
    days = history.timeline.channel_days
    for midnight_ms in {midnight_of(day) + DAY_MS for day in days["arrival_date"]}:
        offered = dict.fromkeys(history.crossings.order.channels, MIN_WATERMARK)
        for row in days.itertuples():
            shown_ms = midnight_of(row.arrival_date) + DAY_MS
            offers = [row.settled_ms] if shown_ms <= midnight_ms else []
            if shown_ms < midnight_ms and stream.spec.watermark.interval_ms:
                offers.append(row.pending_ms)
            known = [int(offer) for offer in offers if not pd.isna(offer)]
            offered[row.channel] = max([offered[row.channel], *known])
        if midnight_ms <= stream.horizon_ms:
            replayed = stream.replay(horizon_ms=midnight_ms)
            assert min(offered.values()) == replayed.final_watermark_ms


@MANY
@given(streams(window=any_windows()), st.integers(-60, 60), st.integers(1, 200), st.integers(0, 3))
def test_gaps_are_the_empty_slots_behind_the_first_that_accepted_a_record(
    stream, ahead_ms, width_ms, days
):
    stream = replace(stream, horizon_ms=stream.horizon_ms + days * DAY_MS)
    first_ms = min((record.ts_ms for record in stream.records), default=stream.start_ms)
    within = TimeRange(first_ms + ahead_ms, first_ms + ahead_ms + width_ms)
    history, tables = history_by_record(stream), Tables(stream.spec, stream.replay())
    grid, told = history.grid, tables.gaps(within, stream.horizon_ms)
    gaps = Gaps(history, clock_of(stream), first_accepted(tables, grid))
    calendar, ids = Calendar.of(history, clock_of(stream), [within]), grid.ids_within(within)
    filled = {window for window in calendar.windows["window_id"].tolist() if window in ids}
    rows = [*gaps.around(ids, filled)]
    inside = [range(max(row.start, ids.start), min(row.stop, ids.stop), row.step) for row in rows]
    assert all(row.step == ids.step and (row.start - ids.start) % ids.step == 0 for row in rows)
    assert [window_of(grid, window) for row in inside for window in row] == told
    part = TimeRange(within.start_ms + width_ms // 4, within.end_ms)
    known = [w for w in told if part.start_ms <= w.start_ms and w.end_ms <= part.end_ms]
    assert gaps.counts(within, filled, [part]) == (len(told), len(known))
    assert {window for window in ids if gaps.has_record(window)} == filled


def first_accepted(tables: Tables, grid: Grid) -> int | None:
    """The id of the first window that accepted a record, as a replay tells it."""
    accepted = [row.window for row in tables.completeness() if row.on_time + row.late_accepted]
    first = min(accepted, default=None)
    return None if first is None else first.end_ms if grid.cumulative else first.start_ms


@MANY
@given(streams(window=any_windows()), st.integers(-60, 60), st.integers(1, 60), st.integers(1, 60))
def test_gaps_around_a_range_are_the_same_however_the_range_is_cut(stream, ahead_ms, one, two):
    """So it does not depend on runs what is listed, also where many in a row are one row."""
    first_ms = min((record.ts_ms for record in stream.records), default=stream.start_ms)
    start_ms = first_ms + ahead_ms
    history, tables = history_by_record(stream), Tables(stream.spec, stream.replay())
    gaps = Gaps(history, clock_of(stream), first_accepted(tables, history.grid))

    def around(within: TimeRange) -> list[range]:
        calendar = Calendar.of(history, clock_of(stream), [within])
        ids = history.grid.ids_within(within)
        return [*gaps.around(ids, set(calendar.windows["window_id"].tolist()) & {*ids})]

    parts = [
        *around(TimeRange(start_ms, start_ms + one)),
        *around(TimeRange(start_ms + one, start_ms + one + two)),
    ]
    assert {*parts} == {*around(TimeRange(start_ms, start_ms + one + two))}


@FEW
@given(streams(base_ms=st.sampled_from(BEFORE_MIDNIGHT_MS), lateness_ms=st.sampled_from([0, 5])))
def test_no_day_with_a_late_record_is_left_out(stream):
    replayed = stream.replay()
    history = history_of(stream)
    days = late_days(history, clock_of(stream))
    assert {day_of(late.record.arrival_ms) for late in replayed.late} <= set(days)
    assert days == sorted(days)


@FEW
@given(streams())
def test_the_day_map_counts_every_record_once(stream):
    known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    times_of_days: dict[tuple[date, date], list[int]] = {}
    for record in known:
        times_of_days.setdefault((day_of(record.arrival_ms), day_of(record.ts_ms)), []).append(
            record.ts_ms
        )
    map_of_days = history_of(stream).timeline.day_map.drop(columns="largest_end_ms")
    rows = map_of_days.itertuples(index=False)
    assert [tuple(row) for row in rows] == [
        (*days, len(times), min(times), max(times)) for days, times in sorted(times_of_days.items())
    ]


@MANY
@given(streams(window=GRIDS, base_ms=st.sampled_from(BEFORE_MIDNIGHT_MS)), st.integers(0, 60))
def test_older_slots_are_those_that_got_a_record_since_a_midnight(stream, ahead_ms):
    history, clock = history_by_record(stream), clock_of(stream)
    before_ms = stream.start_ms + ahead_ms
    for since_ms in {midnight_of(day_of(r.arrival_ms)) for r in stream.records}:
        assigner = stream.spec.window.assigner
        fresh = [r.ts_ms for r in stream.records if since_ms <= r.arrival_ms < stream.horizon_ms]
        homes = [assigner.newest_start(ts_ms) for ts_ms in fresh]
        slots = {slot for ts_ms in fresh for slot in slots_of(assigner, ts_ms)}
        fresh, older = older_slots(history, before_ms, since_ms, clock)
        assert [*zip(older["slot_ms"], older["slot_end_ms"], strict=True)] == sorted(
            slot for slot in slots if slot[0] < before_ms
        )
        assert fresh.records == sum(ms < before_ms for ms in homes)


# ------------------------------------------------------------------------------ an input that ended


@MANY
@given(streams(), st.integers(0, 60))
def test_after_an_end_of_input_windows_stay_as_the_end_left_them(stream, ahead_ms):
    at_ms = stream.start_ms + ahead_ms
    assume(any(record.arrival_ms < at_ms for record in stream.records))
    ended = replace(stream, horizon_ms=at_ms, end_of_input=True)
    tables = Tables(stream.spec, ended.replay())
    later = replace(stream, horizon_ms=at_ms + 500)
    starts = starts_around(stream)
    clock = Clock(later.horizon_ms, (Closure(EVERYTHING, at_ms),))
    places = slot_times(starts, history_of(later), clock)
    size_ms = stream.spec.window.tumbling
    assert states(places) == [tables.slot(TimeWindow(s, s + size_ms)) for s in starts]
    assert places["ended_at_ms"].tolist() == [at_ms] * len(starts)
    closing = replace(clock, horizon_ms=at_ms)
    earlier = history_of(replace(later, horizon_ms=at_ms))
    assert slot_times(starts, earlier, closing).equals(places)
    # whoever comes afterwards is late, also where nothing is ever cleaned
    assert (places["close_from"] <= axis_of(stream).first_of(at_ms)).all()


@FEW
@given(streams())
def test_an_end_of_input_elsewhere_is_none_here(stream):
    here = TimeRange(stream.start_ms, EVERYTHING.end_ms)
    elsewhere = Closure(TimeRange(EVERYTHING.start_ms, stream.start_ms), stream.horizon_ms)
    history = history_of(stream)
    held = slots_in(history, here, Clock(stream.horizon_ms))
    assert slots_in(history, here, Clock(stream.horizon_ms, (elsewhere,))).equals(held)
    before = Closure(elsewhere.windows, stream.horizon_ms - 1)
    assert slots_in(history, here, Clock(stream.horizon_ms, (before,))).equals(held)


@FEW
@given(streams())
def test_an_end_of_input_to_come_changes_nothing_yet(stream):
    history = history_of(stream)
    held = slots_in(history, EVERYTHING, Clock(stream.horizon_ms))
    to_come = Closure(EVERYTHING, stream.horizon_ms + 1)
    assert slots_in(history, EVERYTHING, Clock(stream.horizon_ms, (to_come,))).equals(held)


def test_only_an_end_of_input_at_the_horizon_itself_closes_now():
    assert Clock(7, (Closure(EVERYTHING, 7),)).closes_now
    assert not Clock(7, (Closure(EVERYTHING, 6),)).closes_now
    assert not Clock(7).closes_now
    assert not Clock(7, (Closure(EVERYTHING, 7),)).ends_by_channel
    assert Clock(7, (Closure(EVERYTHING, 7),), by_channel=True).ends_by_channel


# ---------------------------------------------------------------------------------------- channels


@FEW
@given(streams(channels=st.just("discovered")))
def test_discovered_channels_stand_in_the_order_of_their_first_instants(stream):
    history = history_of(stream)
    first: dict[str, int] = {}
    for record in stream.records:
        if record.arrival_ms < stream.horizon_ms:
            instant = instant_of(stream, record)
            first[record.channel] = min(instant, first.get(record.channel, instant))
    order = history.crossings.order
    assert order.channels == tuple(sorted(first, key=lambda channel: (first[channel], channel)))
    assert order.joined == [first[channel] for channel in order.channels]


@FEW
@given(streams(channels=st.just(list(CHANNELS))))
def test_declared_channels_stand_as_declared_and_are_there_from_the_start(stream):
    order = history_of(stream).crossings.order
    assert order.channels == CHANNELS
    assert all(joined < axis_of(stream).first_of(EVERYTHING.start_ms) for joined in order.joined)


@FEW
@given(streams(channels=st.just(["a", "b"]), end_of_input=st.just(False)))
def test_the_channel_that_fires_a_window_is_the_last_to_reach_its_end(stream):
    """At one instant channels are probed in order: the window fires as the last of them speaks."""
    history = history_of(stream)
    starts = starts_around(stream)
    places = slot_times(starts, history, clock_of(stream))
    seen = history.crossings.seen_from(history.grid.fire_thresholds(np.array(starts)).tolist())
    ended = stream.replay().watermarks[-1:]
    for at, (one, other) in enumerate(zip(*seen, strict=True)):
        if places["state"][at] == "open" or (ended and ended[0].origin.cause is Cause.END):
            continue
        assert places["fire_rank"][at] == (0 if one > other else 1)
        assert places["fire_from"][at] == max(one, other)


# ------------------------------------------------------------------------------------ how far back


def own_gaps(*cells: tuple[int, int, int | None]) -> History:
    """Sessions with gaps of their own: least and largest time and end of some event dates."""
    spec = a_meter({"session": "gap_ms"}, {"strategy": "ascending", "emit": "per_record"})
    rows = [
        a_cell(least, largest, end=end, event_day=day)
        for day, (least, largest, end) in enumerate(cells)
    ]
    return history_from(rows, spec, Axis.of(spec, 0))


def test_gaps_of_their_own_reach_as_far_as_the_day_map_tells():
    history = own_gaps((0, 9, 12), (10, 19, 500), (20, 29, 40))
    assert history.days.first_reaching(40) == 10
    assert history.days.first_reaching(41) == 10
    assert history.days.first_reaching(500) == 10
    assert history.days.first_reaching(501) == 501
    assert history.days.first_reaching(12) == 0
    assert history.days.last_end(10) == 12
    assert history.days.last_end(11) == 500
    assert history.days.last_end(0) == 0


def test_days_of_a_timeline_from_before_their_ends_were_told_may_reach_anywhere():
    history = own_gaps((0, 9, None), (10, 19, 25))
    assert history.days.first_reaching(10_000) == 0
    assert history.days.last_end(1) == END_OF_INSTANTS_MS


# --------------------------------------------------------------------------------------- the empty


@FEW
@given(streams())
def test_malformed_rows_are_cells_without_any_say(stream):
    known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    nothing = [None] * 5
    malformed = [
        (day_of(stream.start_ms), "null_event_time", *nothing, 3, *[None] * 8),
        (None, "null_arrival", *nothing, 1, *[None] * 8),
    ]
    rows = [*counted(stream, known), *malformed]
    history = history_from(rows, stream.spec, axis_of(stream))
    clock = clock_of(stream)
    assert slots_in(history, EVERYTHING, clock).equals(
        slots_in(history_of(stream), EVERYTHING, clock)
    )
    assert history.timeline.every["records"].sum() == len(known) + 4


@FEW
@given(streams())
def test_without_any_record_every_question_has_an_answer(stream):
    empty = replace(stream, records=())
    history, clock = history_of(empty), clock_of(empty)
    assert slots_in(history, EVERYTHING, clock).empty
    assert late_days(history, clock) == []
    assert history.days.of_windows(EVERYTHING) == []
    assert history.crossings.watermark_reached(stream.horizon_ms) == MIN_WATERMARK
    assert history.timeline.day_map.empty
    assert history.timeline.channel_days.empty
    assert history.crossings.order.channels == (stream.spec.source.declared_channels or ())
