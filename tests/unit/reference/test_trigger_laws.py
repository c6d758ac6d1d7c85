"""What triggers and evictors make of a stream, held against the same stream without them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from spec_strategies import any_windows
from strategies import Stream, streams

from strandline.errors import InputError
from strandline.model.windows import GLOBAL_WINDOW
from strandline.reference.answer import Cause, Firing, Outcome, Replay, Timing
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.reference.tables import Tables
from strandline.spec import parse_any
from strandline.spec.evictor import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from strandline.spec.trigger import Continuous, Count, Delta, EventTime, Trigger
from strandline.spec.window import Session

TRIGGERS = st.one_of(
    st.just(EventTime()),
    st.sampled_from([1, 3, 7, 30]).map(lambda ms: Continuous(continuous=f"{ms}ms")),
    st.integers(1, 4).map(lambda n: Count(count=n)),
    st.integers(0, 6).map(lambda distance: Delta(delta=distance, of="value")),
)
EVICTORS = st.one_of(
    st.integers(0, 3).map(lambda n: CountEvictor(count=n)),
    st.sampled_from([0, 2, 10]).map(lambda ms: TimeEvictor(time=f"{ms}ms")),
    st.integers(0, 6).map(lambda distance: DeltaEvictor(delta=distance, of="value")),
)
STREAMS = streams(window=any_windows())


def told(stream: Stream, trigger: Trigger, evictor: Evictor | None = None) -> Replay:
    """The stream replayed with a trigger, and an evictor."""
    spec = stream.spec.model_copy(update={"trigger": trigger, "evictor": evictor})
    values = [
        replace(r, trigger_value=r.payload["value"], evictor_value=r.payload["value"])
        for r in stream.records
    ]
    return replace(stream, spec=spec, records=tuple(values)).replay()


def suits(stream: Stream, trigger: Trigger) -> bool:
    return not (isinstance(trigger, Delta) and isinstance(stream.spec.window, Session))


def ids(records: tuple[Record, ...]) -> set[str]:
    return {record.record_id for record in records}


def which(firing: Firing) -> tuple[Any, ...]:
    """What tells a firing from every other one."""
    return firing.key, firing.window, firing.origin, firing.timer_ms, firing.watermark_ms


def side_by_side(plain: Replay, other: Replay) -> Iterator[tuple[Firing, Firing | None]]:
    """All firings, each with the same one of another replay; None: its window was empty there."""
    rest = list(reversed(other.firings))
    for firing in plain.firings:
        same = rest and which(rest[-1]) == which(firing)
        yield firing, rest.pop() if same else None
    assert rest == []


class Gathered:
    """What the windows of each key have told so far, those of merged sessions put together."""

    def __init__(self, stream: Stream) -> None:
        self.sessions = isinstance(stream.spec.window, Session)
        self.seen: dict[Any, list[tuple[Any, set[str]]]] = defaultdict(list)

    def add(self, firing: Firing, records: tuple[Record, ...]) -> None:
        self.seen[firing.key].append((firing.window, ids(records)))

    def within(self, firing: Firing) -> list[set[str]]:
        def inside(window: Any, told: set[str]) -> bool:
            whole = firing.window
            merged = whole.start_ms <= window.start_ms and window.end_ms <= whole.end_ms
            # a session may enclose one that was dropped before it began: that one has not merged
            merged &= not told.isdisjoint(ids(firing.members))
            return merged if self.sessions else window == whole

        return [told for window, told in self.seen[firing.key] if inside(window, told)]


@DEAR
@given(STREAMS, TRIGGERS)
def test_purging_firings_add_up_to_the_accumulating_ones(stream, trigger):
    if not suits(stream, trigger):
        return
    purging = trigger.model_copy(update={"purging": True})
    gathered = Gathered(stream)
    for firing, purged in side_by_side(told(stream, trigger), told(stream, purging)):
        if purged is not None:
            gathered.add(firing, purged.members)
        parts = gathered.within(firing)
        assert set().union(*parts) == ids(firing.members)
        assert sum(map(len, parts)) == len(firing.members)


@DEAR
@given(STREAMS, st.sampled_from([1, 3, 7, 30]))
def test_continuous_firings_grow_and_hold_all_that_the_default_trigger_fires(stream, interval_ms):
    continuous = told(stream, Continuous(continuous=f"{interval_ms}ms"))
    seen: dict[Any, set[str]] = defaultdict(set)
    for firing in continuous.firings:
        subject = firing.key, firing.window
        assert seen[subject] <= ids(firing.members)
        seen[subject] = ids(firing.members)
    due = {None, *(f.window.max_timestamp_ms for f in continuous.firings)}
    at_the_end = [
        (which(f), f.timing, f.members)
        for f in continuous.firings
        if f.timer_ms in due and f.timer_ms in {None, f.window.max_timestamp_ms}
    ]
    plain = [(which(f), f.timing, f.members) for f in told(stream, EventTime()).firings]
    if isinstance(stream.spec.window, Session):
        # a merge keeps the next time of an old session, be it a last millisecond that has passed:
        # that fires once more, at the next watermark
        assert all(firing in at_the_end for firing in plain)
        return
    assert at_the_end == plain


@DEAR
@given(STREAMS, TRIGGERS, EVICTORS)
def test_what_is_evicted_and_what_is_kept_are_the_whole_window(stream, trigger, evictor):
    if not suits(stream, trigger):
        return
    gathered = Gathered(stream)
    for firing, evicting in side_by_side(told(stream, trigger), told(stream, trigger, evictor)):
        if evicting is None:
            continue  # emptied before, and nothing has come since
        gathered.add(firing, evicting.evicted)
        gone = gathered.within(firing)
        assert set().union(*gone) | ids(evicting.members) == ids(firing.members)
        assert sum(map(len, gone)) + len(evicting.members) == len(firing.members)


@DEAR
@given(STREAMS, TRIGGERS, EVICTORS)
def test_what_is_evicted_afterwards_has_been_told(stream, trigger, evictor):
    if not suits(stream, trigger):
        return
    after = evictor.model_copy(update={"after": True})
    gathered = Gathered(stream)
    for firing, evicting in side_by_side(told(stream, trigger), told(stream, trigger, after)):
        if evicting is not None:
            gathered.add(firing, evicting.members)
            assert set().union(*gathered.within(firing)) == ids(firing.members)


@DEAR
@given(STREAMS, TRIGGERS, st.booleans(), st.none() | EVICTORS)
def test_neither_fates_nor_watermarks_depend_on_a_trigger_and_no_record_is_lost_unseen(
    stream, trigger, purging, evictor
):
    if not suits(stream, trigger):
        return
    plain = told(stream, EventTime())
    other = told(stream, trigger.model_copy(update={"purging": purging}), evictor)
    assert other.outcomes == plain.outcomes
    assert other.watermarks == plain.watermarks
    assert other.late == plain.late
    panes = [*other.firings, *other.open_at_end, *other.unfired]
    held = {r for pane in panes for r in ids(pane.members)}
    held |= {r for firing in other.firings for r in ids(firing.evicted)}
    taken = {Outcome.ON_TIME, Outcome.LATE_ACCEPTED}
    assert held == {r for r, outcome in other.outcomes.items() if outcome in taken}


@DEAR
@given(streams(window=any_windows()), st.integers(1, 4))
def test_a_purging_count_tells_so_many_at_a_time_and_loses_the_rest(stream, number):
    if isinstance(stream.spec.window, Session):
        return  # the counts of merged sessions add up, and may be beyond it
    counted = told(stream, Count(count=number, purging=True))
    assert {len(firing.members) for firing in counted.firings} <= {number}
    assert all(len(pane.members) < number for pane in (*counted.unfired, *counted.open_at_end))


# ------------------------------------------------------------------------------------- by hand


def replayed(*records: Record, watermark: str = "punctuated", end: bool = False, **fields: Any):
    content = {
        "pipeline": "p",
        "source": {"table": "t", "arrival_time": "a", "event_time": "t", "sequence": "a"},
        "watermark": {"strategy": watermark, "emit": "per_record"},
        "window": {"tumbling": "10ms"},
        "firings": True,
        **fields,
    }
    if watermark == "punctuated":
        content["watermark"]["marker"] = "marker"
    spec = parse_any(content, origin="p.yaml")
    return spec, replay(spec, records, start_ms=0, end_of_input=end)


def record(number: int, ts_ms: int, *, marker: bool = False, **values: float) -> Record:
    return Record(number, ts_ms, str(number), sequence=number, marker=marker, **values)


def test_a_firing_before_the_end_is_early_and_what_comes_after_it_is_late():
    early, at_the_end, late = replayed(
        record(0, 1),
        record(1, 3, marker=True),
        record(2, 9, marker=True),
        record(3, 5),
        trigger={"continuous": "3ms"},
        allowed_lateness="5ms",
    )[1].firings[-3:]
    assert [early.timing, at_the_end.timing, late.timing] == [
        Timing.EARLY,
        Timing.ON_TIME,
        Timing.LATE,
    ]
    assert [early.timer_ms, at_the_end.timer_ms, late.timer_ms] == [6, 9, None]
    assert late.origin.cause is Cause.RECORD


def test_what_no_firing_told_when_its_window_goes_is_counted_as_unfired():
    spec, answer = replayed(
        *(record(number, number) for number in range(4)),
        record(4, 30, marker=True),
        trigger={"count": 3},
    )
    (lost,) = answer.unfired
    assert ids(lost.members) == {"3"}
    first, _ = Tables(spec, answer).completeness()
    assert (first.on_time, first.unfired) == (4, 1)


def test_a_global_window_that_fires_continuously_cannot_end():
    fields = {"window": {"global": {}}, "trigger": {"continuous": "3ms"}}
    assert replayed(record(0, 1), **fields)[1].open_at_end[0].window == GLOBAL_WINDOW
    with pytest.raises(InputError, match=r"p: trigger\.continuous: .* would fire without end"):
        replayed(record(0, 1), end=True, **fields)


@pytest.mark.parametrize(
    ("fields", "lacks"),
    [
        ({"trigger": {"delta": 1, "of": "x"}}, "no value for the trigger"),
        ({"evictor": {"delta": 1, "of": "x"}}, "no value for the evictor"),
    ],
)
def test_a_record_without_the_value_that_is_asked_for_is_an_error(fields, lacks):
    with pytest.raises(TypeError, match=lacks):
        replayed(record(0, 1), end=True, **fields)


def test_a_trigger_that_cannot_merge_says_so():
    content = {
        "pipeline": "p",
        "source": {"table": "t", "arrival_time": "a", "event_time": "t"},
        "watermark": {"strategy": "ascending"},
        "window": {"session": "5ms"},
    }
    spec = parse_any(content, origin="p.yaml")
    spec = spec.model_copy(update={"trigger": Delta(delta=1, of="x")})
    with pytest.raises(TypeError, match="DeltaTrigger cannot merge"):
        replay(spec, [record(0, 1, trigger_value=1), record(1, 2, trigger_value=1)], start_ms=0)
