"""A replay of the records of a group fires as the reference's window operator does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from lakes import a_spec
from operators import Group, events_of, operator_of

from strandline.engine.replay.dataframe import _longest_ms, rules_of
from strandline.engine.replay.in_workers import Names, replay_partition
from strandline.engine.replay.operator_io import NEVER, EndedRange, Firing, Records, Replayed, Rules
from strandline.engine.replay.window_operator import replay
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK, is_window_late
from strandline.model.windows import (
    GLOBAL_WINDOW,
    CumulativeWindows,
    SlidingWindows,
    TumblingWindows,
)
from strandline.reference.answer import Outcome
from strandline.reference.sessions import SessionOperator
from strandline.reference.windows import GlobalWindowOperator, GridWindowOperator
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.trigger import Continuous, Count, Delta, EndOfInput, EventTime, Never

if TYPE_CHECKING:
    from strandline.reference.answer import FiredPane
    from strandline.reference.records import Record

    pass

YES_OR_NO = st.booleans()
WITH_MERGE = st.one_of(
    st.builds(EventTime, purging=YES_OR_NO),
    st.builds(
        lambda ms, purging: Continuous(continuous=f"{ms}ms", purging=purging),
        st.integers(1, 7),
        YES_OR_NO,
    ),
    st.builds(lambda n, purging: Count(count=n, purging=purging), st.integers(1, 4), YES_OR_NO),
)
ANY_TRIGGER = WITH_MERGE | st.builds(
    lambda distance, purging: Delta(delta=distance, of="x", purging=purging),
    st.integers(0, 6),
    YES_OR_NO,
)
OF_GLOBAL_WINDOWS = ANY_TRIGGER | st.just(Never()) | st.builds(EndOfInput, purging=YES_OR_NO)
EVICTORS = st.none() | st.one_of(
    st.builds(lambda n, after: CountEvictor(count=n, after=after), st.integers(0, 3), YES_OR_NO),
    st.builds(
        lambda ms, after: TimeEvictor(time=f"{ms}ms", after=after),
        st.sampled_from([0, 3, 9]),
        YES_OR_NO,
    ),
    st.builds(
        lambda distance, after: DeltaEvictor(delta=distance, of="x", after=after),
        st.integers(0, 5),
        YES_OR_NO,
    ),
)
ON_A_GRID = st.one_of(
    st.builds(TumblingWindows, st.sampled_from([5, 12]), st.integers(0, 4)),
    st.builds(SlidingWindows, st.sampled_from([6, 10, 3]), st.sampled_from([4, 5]), st.just(1)),
    st.builds(CumulativeWindows, st.just(12), st.sampled_from([4, 6]), st.integers(0, 3)),
)
LATENESS = st.sampled_from([0, 4, 30])
WITHOUT_PURGING = st.one_of(
    st.just(EventTime()),
    st.builds(lambda ms: Continuous(continuous=f"{ms}ms"), st.integers(1, 7)),
    st.builds(lambda n: Count(count=n), st.integers(1, 4)),
)
IN_RANGE = st.integers(1, 30)
CLOSURES = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.builds(lambda at, length: range(at, at + length), st.integers(-40, 20), IN_RANGE),
    ),
    min_size=1,
    max_size=3,
).map(lambda found: sorted(found, key=lambda one: one[0]))
"""Ranges whose input ends before an event with a number, in the order of these numbers."""
RECORD = st.tuples(st.just("record"), st.integers(-25, 20), st.integers(1, 12))
ADVANCE = st.tuples(st.just("advance"), st.integers(1, 9), st.just(0))
EVENTS = st.lists(RECORD | RECORD | RECORD | ADVANCE, min_size=8, max_size=40)
"""Records by how far their time is from the watermark; both begin before 1970."""


def rules(trigger: Any, evictor: Any, *, merging: bool = False, lateness_ms: int = 0) -> Rules:
    spec: Any = SimpleNamespace(
        fires_by=trigger,
        evicts_by=evictor,
        window=SimpleNamespace(merging=merging),
        allowed_lateness=lateness_ms,
    )
    return rules_of(spec)


def emitted(firing: Firing, replayed: Replayed, records: list[Record]) -> Any:
    members = [
        record.record_id
        for place, record in enumerate(records)
        if firing.number in replayed.containing(place, record.ts_ms)
    ]
    return (firing.start_ms, firing.end_ms, firing.time_ms, firing.late, members)


def expected(pane: FiredPane) -> Any:
    return (
        *(pane.window.start_ms, pane.window.end_ms, pane.timer_ms, pane.timing == "LATE"),
        [record.record_id for record in pane.members],
    )


@DEAR
@given(ON_A_GRID, ANY_TRIGGER, EVICTORS, LATENESS, EVENTS)
def test_windows_on_a_grid_fire_as_those_of_the_reference(
    assigner, trigger, evictor, lateness_ms, events
):
    operator = operator_of(GridWindowOperator, trigger, evictor, lateness_ms, assigner=assigner)
    groups: dict[Any, Group] = defaultdict(Group)
    for number, record, watermark_ms in events_of(events):
        if record is None:
            fired = list(operator.advance(watermark_ms))
        else:
            at_arrival_ms = operator.watermark_ms
            for window in assigner.windows_of(record.ts_ms):
                if not is_window_late(
                    window.max_timestamp_ms,
                    allowed_lateness_ms=lateness_ms,
                    watermark_ms=at_arrival_ms,
                ):
                    groups[window].records.append((record, at_arrival_ms))
            fired = operator.process(record)[1]
        for pane in fired:
            groups[pane.window].firings.append((number, pane))
    held = {pane.window: pane for pane in operator.panes()}
    late = {(r.record_id, window) for r, window in operator.accepted_late}
    unfired = {pane.window: pane.members for pane in operator.unfired}
    for window, group in groups.items():
        records = [record for record, _ in group.records]
        done = replay(group.columns(window), rules(trigger, evictor), operator.watermark_ms)
        assert [emitted(f, done, records) for f in done.firings] == [
            expected(pane) for _, pane in group.firings
        ]
        assert {
            (r.record_id, window) for r, is_late in zip(records, done.late, strict=True) if is_late
        } == {pair for pair in late if pair[1] == window}
        if window in held:
            still = [r for r, by in zip(records, done.removed_by, strict=True) if by == NEVER]
            assert still == list(held[window].members)
        else:
            never_found = [
                r for r, first in zip(records, done.first, strict=True) if first > len(done.firings)
            ]
            assert never_found == list(unfired.get(window, ()))
        assert_supersedes_the_one_before(done, group)


def assert_supersedes_the_one_before(done: Replayed, group: Group) -> None:
    """Of windows that do not merge a replay says only whether the firing before is superseded."""
    before: FiredPane | None = None
    for firing, (_, pane) in zip(done.firings, group.firings, strict=True):
        is_superseded = before is not None and before.seq in pane.supersedes
        assert firing.supersedes == ((firing.number - 1,) if is_superseded else ())
        before = pane


@DEAR
@given(OF_GLOBAL_WINDOWS, EVICTORS, EVENTS, YES_OR_NO)
def test_global_windows_fire_as_those_of_the_reference(trigger, evictor, events, ends):
    operator = operator_of(GlobalWindowOperator, trigger, evictor, 0)
    group = Group()
    for number, record, watermark_ms in events_of(events):
        if record is None:
            fired = list(operator.advance(watermark_ms))
        else:
            group.records.append((record, operator.watermark_ms))
            fired = operator.process(record)[1]
        group.firings += [(number, pane) for pane in fired]
    if ends and not isinstance(trigger, Continuous):  # that one would fire up to the end of time
        group.firings += [(len(events), pane) for pane in operator.advance(MAX_WATERMARK)]
    records = [record for record, _ in group.records]
    done = replay(group.columns(GLOBAL_WINDOW), rules(trigger, evictor), operator.watermark_ms)
    assert [emitted(f, done, records) for f in done.firings] == [
        expected(pane) for _, pane in group.firings
    ]
    still = [r for r, by in zip(records, done.removed_by, strict=True) if by == NEVER]
    assert still == [record for pane in operator.panes() for record in pane.members]
    assert_supersedes_the_one_before(done, group)


@DEAR
@given(WITH_MERGE, EVICTORS, LATENESS, EVENTS)
def test_sessions_fire_as_those_of_the_reference(trigger, evictor, lateness_ms, events):
    operator = operator_of(SessionOperator, trigger, evictor, lateness_ms, gap_ms=None)
    advances: dict[int, int] = {}
    group, refused = Group(), []
    for number, record, watermark_ms in events_of(events):
        if record is None:
            fired = list(operator.advance(watermark_ms))
            advances[number] = watermark_ms
        else:
            group.records.append((record, operator.watermark_ms))
            outcome, fired = operator.process(record)
            refused.append(outcome is Outcome.LATE)
        group.firings += [(number, pane) for pane in fired]
    records = [record for record, _ in group.records]
    merging = rules(trigger, evictor, merging=True, lateness_ms=lateness_ms)
    done = replay(group.columns(), merging, operator.watermark_ms)
    assert done.refused == refused
    assert [emitted(f, done, records) for f in done.firings] == [
        expected(pane) for _, pane in group.firings
    ]
    assert [done.superseded_by(f) for f in done.firings] == [
        sorted(earlier + 1 for earlier in pane.supersedes) for _, pane in group.firings
    ]
    assert [event_of(f, records, advances) for f in done.firings] == [n for n, _ in group.firings]
    in_state = [one for one in done.sessions if one.is_in_state]
    assert [
        (
            *(one.start_ms, one.end_ms),
            [records[place] for place in one.taken if done.removed_by[place] == NEVER],
        )
        for one in in_state
    ] == [(pane.window.start_ms, pane.window.end_ms, [*pane.members]) for pane in operator.panes()]
    assert {
        (record.record_id, start_ms, end_ms)
        for record, start_ms, end_ms, is_late in zip(
            records, done.starts_ms, done.ends_ms, done.late, strict=True
        )
        if is_late
    } == {(r.record_id, window.start_ms, window.end_ms) for r, window in operator.accepted_late}
    never_found = {
        records[place].record_id
        for one in done.sessions
        for place in one.taken
        if done.is_unfired(
            [done.firings[number - 1] for number in one.fired], place, records[place].ts_ms
        )
    }
    assert never_found == {r.record_id for pane in operator.unfired for r in pane.members}
    # up to the end of time: those that the watermark has reached are the first of them
    to_the_end = replay(group.columns(), merging, None).firings
    assert to_the_end[: len(done.firings)] == done.firings
    assert not any(is_reached(f, operator.watermark_ms) for f in to_the_end[len(done.firings) :])


@DEAR
@given(WITHOUT_PURGING, LATENESS, EVENTS, CLOSURES)
def test_the_sessions_of_ranges_whose_input_has_ended_fire_and_accept_nothing_more(
    trigger, lateness_ms, events, closures
):
    def run(numbered: list[Any]) -> tuple[SessionOperator, list[FiredPane]]:
        operator = operator_of(SessionOperator, trigger, None, lateness_ms, gap_ms=None)
        fired: list[FiredPane] = []
        for _, record, watermark_ms in numbered:
            is_advance = record is None
            more = operator.advance(watermark_ms) if is_advance else operator.process(record)[1]
            fired += more
        return operator, fired

    def is_refused(number: int, record: Record) -> bool:
        return any(number >= after and record.ts_ms in within for after, within in closures)

    every = [one for one in events_of(events) if one[1] is None or not is_refused(*one[:2])]
    group, eras, watermark_ms = Group(), [], MIN_WATERMARK
    for number, record, to_ms in every:
        if record is None:
            watermark_ms = to_ms
        else:
            group.records.append((record, watermark_ms))
            eras.append(sum(number >= after for after, _ in closures))
    ranges = [
        EndedRange(within.start, within.stop, nth)
        for nth, (_, within) in enumerate(closures, start=1_000)
    ]
    merging = rules(trigger, None, merging=True, lateness_ms=lateness_ms)
    merging = replace(merging, closures=tuple(ranges))
    done = replay(replace(group.columns(), eras=eras), merging, watermark_ms)
    records = [record for record, _ in group.records]
    found = [(firing, emitted(firing, done, records)) for firing in done.firings]

    others, of_all = every, []
    for (after, within), ended_range in zip(closures, ranges, strict=True):
        before = [event for event in others if event[0] < after]
        at_closure, fired = run(before)
        ended = [pane for pane in at_closure.panes() if pane.window.start_ms in within]
        members = {record.record_id for pane in ended for record in pane.members}
        fired += at_closure.advance(MAX_WATERMARK)
        of_ended = [pane for pane in fired if {r.record_id for r in pane.members} <= members]
        of_all += of_ended
        others = [one for one in others if one[1] is None or one[1].record_id not in members]
        # a window that the watermark had dropped just before may count as one that has ended
        before_ms = max((ms for _, record, ms in before if record is None), default=MIN_WATERMARK)
        numbers = {
            n for one in done.sessions if one.ended_ms == ended_range.ended_ms for n in one.fired
        }
        assert {
            str(one)
            for firing, one in found
            if firing.number in numbers and firing.end_ms - 1 + lateness_ms > before_ms
        } == {
            str(expected(pane))
            for pane in of_ended
            if pane.window.end_ms - 1 + lateness_ms > before_ms
        }
    remaining, fired = run(others)
    assert sorted((str(one) for _, one in found)) == sorted(
        str(expected(pane)) for pane in [*of_all, *fired]
    )
    assert [one.start_ms for one in done.sessions if one.is_in_state] == [
        pane.window.start_ms for pane in remaining.panes()
    ]


def is_reached(firing: Firing, watermark_ms: int) -> bool:
    return firing.reaches_ms is None or firing.reaches_ms <= watermark_ms


def event_of(firing: Firing, records: list[Record], advances: dict[int, int]) -> int | None:
    """The number of the event that a firing comes with."""
    if firing.reaches_ms is None:
        return records[firing.after].sequence
    return min((n for n, ms in advances.items() if ms >= firing.reaches_ms), default=None)


def test_an_empty_window_passes_over_its_times_at_once():
    ten_years_ms = 10 * 365 * 86_400_000
    records = Records(
        starts_ms=[0, 0],
        ends_ms=[2 * ten_years_ms] * 2,
        ts_ms=[1, 2],
        watermarks_ms=[0, ten_years_ms + 500],
        trigger_values=[None, None],
        evictor_values=[None, None],
    )
    every_second = Rules(interval_ms=1_000, purging=True)
    first, second = replay(records, every_second, ten_years_ms + 1_000).firings
    assert (first.time_ms, second.time_ms) == (1_000, ten_years_ms + 1_000)
    assert (first.after, second.after) == (0, 1)
    # nor does it step through them to an end that may be far
    to_the_end = replay(records, every_second, None).firings
    assert [f.time_ms for f in to_the_end][:2] == [1_000, second.time_ms]


def test_a_window_whose_watermark_has_not_come_holds_all():
    records = Records([0] * 2, [10] * 2, [1, 2], [MIN_WATERMARK] * 2, [None] * 2, [None] * 2)
    done = replay(records, Rules(), MIN_WATERMARK)
    assert (done.firings, done.first, done.until) == ([], [1, 1], [NEVER, NEVER])


def test_a_record_whose_own_gap_would_make_it_fire_too_often_ends_the_run_by_name():
    spec = a_spec(
        window={"session": "gap_ms"}, trigger={"continuous": "1s"}, firings=True, quality=...
    )
    names = Names(
        group=("key",),
        order=("start",),
        records=("start", "end", "start", "watermark", None, None, None),
        until_ms="until",
        compared=(),
        longest_ms=_longest_ms(spec),
    )

    def rows(gap_ms: int) -> list[pa.RecordBatch]:
        row = {"key": "k", "start": 0, "end": gap_ms, "watermark": None, "until": 5_000}
        schema = pa.schema([(name, pa.string() if name == "key" else pa.int64()) for name in row])
        return pa.Table.from_pylist([row], schema=schema).to_batches()

    (replayed,) = replay_partition(rows(10_000_000), names, rules_of(spec))
    assert replayed.num_rows == 1
    with pytest.raises(ValueError, match=r"window.session: gap_ms gives .* more than 10,000"):
        [*replay_partition(rows(10_000_001), names, rules_of(spec))]
