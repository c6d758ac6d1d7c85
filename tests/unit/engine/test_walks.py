"""What a walk over the records of a session tells is what the reference does with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strandline.engine.walks.walk import Firing, Records, Rules, Walk
from strandline.engine.walks.walked import rules_of
from strandline.model.windows import GLOBAL_WINDOW
from strandline.reference.evictors import keep_by
from strandline.reference.panes import Fate, FiredPane
from strandline.reference.records import Record
from strandline.reference.sessions import SessionOperator
from strandline.reference.triggers import trigger_of
from strandline.reference.windows import GlobalWindowOperator
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.trigger import Continuous, Count, EventTime

YES_OR_NO = st.booleans()
CONTINUOUS = st.builds(
    lambda ms, purging: Continuous(continuous=f"{ms}ms", purging=purging),
    st.integers(1, 7),
    YES_OR_NO,
)
TRIGGERS = st.one_of(
    st.builds(EventTime, purging=YES_OR_NO),
    CONTINUOUS,
    st.builds(lambda n, purging: Count(count=n, purging=purging), st.integers(1, 3), YES_OR_NO),
)
EVICTORS = st.none() | st.builds(
    lambda ms, after: TimeEvictor(time=f"{ms}ms", after=after),
    st.sampled_from([0, 3, 9]),
    YES_OR_NO,
)
BY_ORDER = st.one_of(
    st.builds(lambda n, after: CountEvictor(count=n, after=after), st.integers(0, 3), YES_OR_NO),
    st.builds(
        lambda distance, after: DeltaEvictor(delta=distance, of="x", after=after),
        st.integers(0, 5),
        YES_OR_NO,
    ),
)
RECORD = st.tuples(st.just("record"), st.integers(-25, 20), st.integers(1, 12))
RISE = st.tuples(st.just("rise"), st.integers(1, 9), st.just(0))
EVENTS = st.lists(RECORD | RECORD | RECORD | RISE, min_size=12, max_size=40)
"""Records by where their time lies to the watermark; both begin before 1970."""


@dataclass
class Told:
    """A session: its records with the watermark that each met, and its firings."""

    records: list[tuple[Record, int]] = field(default_factory=list)
    firings: list[tuple[int, FiredPane]] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


@dataclass
class Driven:
    """The reference's operator, and which sessions became of its windows."""

    operator: SessionOperator
    sessions: list[Told] = field(default_factory=list)
    by_window: dict[Any, Told] = field(default_factory=dict)

    def take(self, number: int, record: Record) -> None:
        before = set(self.operator.panes_in_flight)
        watermark_ms = self.operator.watermark_ms
        fate, fired = self.operator.process(record)
        if fate is Fate.LATE:
            return
        after = set(self.operator.panes_in_flight)
        own = next(w for w in after if w.start_ms <= record.ts_ms < w.end_ms)
        told = Told()
        for window in (before - after) | ({own} & before):
            part = self.by_window.pop(window)
            self.sessions.remove(part)
            told.records += part.records
            told.firings += part.firings
        told.records = sorted([*told.records, (record, watermark_ms)], key=lambda r: r[0].sequence)
        self.sessions.append(told)
        self.by_window[own] = told
        told.firings += [(number, pane) for pane in fired]

    def rise(self, number: int, watermark_ms: int) -> None:
        for pane in self.operator.advance(watermark_ms):
            self.by_window[pane.window].firings.append((number, pane))
        there = set(self.operator.panes_in_flight)
        self.by_window = {w: told for w, told in self.by_window.items() if w in there}


class Operator(SessionOperator):
    """The reference's, with what is in flight."""

    @property
    def panes_in_flight(self) -> list[Any]:
        return [window for _, window in self._held]


@given(TRIGGERS, EVICTORS, st.sampled_from([0, 4, 30, 30]), EVENTS)
def test_a_walk_over_the_records_of_a_session_fires_as_the_reference_does(
    trigger, evictor, lateness_ms, events
):
    keep = None if evictor is None else keep_by(evictor)
    operator = Operator(
        None,
        allowed_lateness_ms=lateness_ms,
        trigger=trigger_of(trigger),
        evict_before=keep if evictor and not evictor.after else None,
        evict_after=keep if evictor and evictor.after else None,
    )
    driven, risen = Driven(operator), {}
    watermark_ms = -20
    for number, (kind, value, gap_ms) in enumerate(events):
        if kind == "rise":
            watermark_ms += value
            driven.rise(number, watermark_ms)
            risen[number] = watermark_ms
        else:
            driven.take(number, a_record(number, watermark_ms + value, gap_ms))
    spec: Any = SimpleNamespace(fires_by=trigger, evicts_by=evictor)
    still = {pane.window: pane for pane in operator.panes()}
    for told in driven.sessions:
        records = [record for record, _ in told.records]
        walk = Walk(columns_of(told.records), rules_of(spec))
        happened = [(f, n) for f in walk.firings if (n := event_of(f, records, risen)) is not None]
        assert [as_told(f, n, walk, records) for f, n in happened] == [
            expected(n, pane) for n, pane in in_order(told.firings)
        ]
        last = max((f.number for f, _ in happened), default=0)
        window = next((w for w, of in driven.by_window.items() if of is told), None)
        if window is not None:
            left = [
                record.record_id
                for record, fate in zip(records, walk.fates, strict=True)
                if fate.gone_by is None or fate.gone_by > last
            ]
            assert left == [record.record_id for record in still[window].members]
    late = {(r.record_id, window.start_ms, window.end_ms) for r, window in operator.accepted_late}
    assert late == {
        (record.record_id, fate.start_ms, fate.end_ms)
        for told in driven.sessions
        for (record, _), fate in zip(
            told.records, Walk(columns_of(told.records), rules_of(spec)).fates, strict=True
        )
        if fate.late
    }


@given(CONTINUOUS, EVICTORS | BY_ORDER, EVENTS)
def test_a_walk_over_a_window_that_never_ends_fires_as_far_as_the_watermark_comes(
    trigger, evictor, events
):
    keep = None if evictor is None else keep_by(evictor)
    operator = GlobalWindowOperator(
        allowed_lateness_ms=0,
        trigger=trigger_of(trigger),
        evict_before=keep if evictor and not evictor.after else None,
        evict_after=keep if evictor and evictor.after else None,
    )
    records, fired, risen = [], [], {}
    watermark_ms = -20
    for number, (kind, value, x) in enumerate(events):
        if kind == "rise":
            watermark_ms += value
            risen[number] = watermark_ms
            fired += [(number, pane) for pane in operator.advance(watermark_ms)]
        else:
            record = replace(a_record(number, watermark_ms + value, 1), evictor_value=x)
            records.append((record, operator.watermark_ms))
            fired += [(number, pane) for pane in operator.process(record)[1]]
    spec: Any = SimpleNamespace(fires_by=trigger, evicts_by=evictor)
    of_window = Records(
        starts_ms=[GLOBAL_WINDOW.start_ms] * len(records),
        ends_ms=[GLOBAL_WINDOW.end_ms] * len(records),
        ts_ms=[record.ts_ms for record, _ in records],
        watermarks_ms=[met_ms for _, met_ms in records],
        values=[record.evictor_value for record, _ in records],
    )
    walk = Walk(of_window, rules_of(spec, until_ms=operator.watermark_ms))
    taken = [record for record, _ in records]
    happened = [(f, event_of(f, taken, risen)) for f in walk.firings]
    assert [as_told(f, n, walk, taken) for f, n in happened] == [expected(n, p) for n, p in fired]
    left = [r.record_id for r, f in zip(taken, walk.fates, strict=True) if f.gone_by is None]
    assert left == [record.record_id for pane in operator.panes() for record in pane.members]


def a_record(number: int, ts_ms: int, gap_ms: int) -> Record:
    return Record(
        arrival_ms=number,
        ts_ms=ts_ms,
        record_id=f"{number:03}",
        channel="",
        key=("k",),
        sequence=number,
        gap_ms=gap_ms,
    )


def columns_of(told: list[tuple[Record, int]]) -> Records:
    return Records(
        starts_ms=[record.ts_ms for record, _ in told],
        ends_ms=[record.ts_ms + (record.gap_ms or 0) for record, _ in told],
        ts_ms=[record.ts_ms for record, _ in told],
        watermarks_ms=[watermark_ms for _, watermark_ms in told],
        values=[],
    )


def event_of(firing: Firing, records: list[Record], risen: dict[int, int]) -> int | None:
    """The number of the event that a firing comes with; None: it never does."""
    cause = records[firing.after]
    if firing.reaches_ms is None:
        return cause.sequence
    reached = [n for n, ms in risen.items() if ms >= firing.reaches_ms]
    return min(reached, default=None)


def in_order(firings: list[tuple[int, FiredPane]]) -> list[tuple[int, FiredPane]]:
    return sorted(firings, key=lambda pair: pair[1].seq)


def as_told(firing: Firing, number: int | None, walk: Walk, records: list[Record]) -> Any:
    fates = zip(records, walk.fates, strict=True)
    return (
        *(number, firing.start_ms, firing.end_ms, firing.time_ms, firing.late),
        [record.record_id for record, fate in fates if firing.number in fate.told_by],
        len(firing.supersedes),
    )


def expected(number: int, pane: FiredPane) -> Any:
    return (
        *(number, pane.window.start_ms, pane.window.end_ms, pane.timer_ms, pane.timing == "LATE"),
        [record.record_id for record in pane.members],
        len(pane.supersedes),
    )


def test_what_is_empty_passes_over_its_times_at_once():
    ten_years_ms = 10 * 365 * 86_400_000
    records = Records(
        starts_ms=[0, 0],
        ends_ms=[2 * ten_years_ms] * 2,
        ts_ms=[1, 2],
        watermarks_ms=[0, ten_years_ms + 500],
        values=[None, None],
    )
    rules = Rules(interval_ms=1_000, purging=True, until_ms=ten_years_ms + 1_000)
    first, second = Walk(records, rules).firings
    assert (first.time_ms, second.time_ms) == (1_000, ten_years_ms + 1_000)
    assert (first.after, second.after) == (0, 1)
    # nor does it step through them to an end that may be far
    to_the_end = replace(rules, until_ms=None)
    assert [f.time_ms for f in Walk(records, to_the_end).firings][:2] == [1_000, second.time_ms]
