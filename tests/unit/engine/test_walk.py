"""What a walk over a window's records tells is what the reference does with them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from spec_strategies import cumulative_windows, sliding_windows, windows
from strategies import Stream, streams

from strandline.engine.windows.order import rules_of
from strandline.engine.windows.walk import STILL_HELD, Names, Records, Rules, walk, walk_over_groups
from strandline.reference.records import instants
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.trigger import Count, Delta, EventTime

if TYPE_CHECKING:
    from strandline.reference import Record, Replay

TRIGGERS = st.one_of(
    st.just(EventTime()),
    st.integers(1, 4).map(lambda n: Count(count=n)),
    st.integers(0, 6).map(lambda distance: Delta(delta=distance, of="value")),
)
EVICTORS = st.none() | st.one_of(
    st.integers(0, 3).map(lambda n: CountEvictor(count=n)),
    st.sampled_from([0, 2, 10]).map(lambda ms: TimeEvictor(time=f"{ms}ms")),
    st.integers(0, 6).map(lambda distance: DeltaEvictor(delta=distance, of="value")),
)
ON_A_GRID = windows() | sliding_windows() | cumulative_windows()


@st.composite
def ordered_streams(draw: st.DrawFn) -> Stream:
    """Streams whose windows go by the order of their records, with the values that they ask for."""
    stream = draw(streams(window=ON_A_GRID))
    trigger = draw(TRIGGERS).model_copy(update={"purging": draw(st.booleans())})
    evictor = draw(EVICTORS)
    if evictor is not None:
        evictor = evictor.model_copy(update={"after": draw(st.booleans())})
    spec = stream.spec.model_copy(update={"trigger": trigger, "evictor": evictor})
    values = [
        replace(
            r,
            trigger_value=(value := r.payload["value"]),
            evictor_value=draw(st.sampled_from([value, value, value, nan])),
        )
        for r in stream.records
    ]
    return replace(stream, spec=spec, records=tuple(values))


def accepted_by_window(stream: Stream, told: Replay) -> dict[Any, list[Record]]:
    """The records that each window of a key accepted, in order of arrival."""
    sequenced = stream.spec.source.sequence is not None
    panes = [*told.firings, *told.open_at_end, *told.unfired]
    held: dict[Any, set[str]] = defaultdict(set)
    for pane in panes:
        evicted = getattr(pane, "evicted", ())
        held[pane.key, pane.window] |= {r.record_id for r in (*pane.members, *evicted)}
    arrived = [r for one in instants(stream.records, sequenced=sequenced) for r in one]
    return {which: [r for r in arrived if r.record_id in ids] for which, ids in held.items()}


@given(ordered_streams())
def test_a_walk_over_the_records_of_a_window_tells_what_the_reference_does(stream):
    told = stream.replay()
    late = {(record.record_id, window) for record, window in told.accepted_late}
    for (key, window), records in accepted_by_window(stream, told).items():
        of_window = Records(
            late=[(record.record_id, window) in late for record in records],
            ts_ms=[record.ts_ms for record in records],
            trigger_values=[record.trigger_value for record in records],
            evictor_values=[record.evictor_value for record in records],
            fired=told.crossing(window.max_timestamp_ms) is not None,
        )
        walked = walk(of_window, rules_of(stream.spec))
        ids = [record.record_id for record in records]
        holds = [
            [
                r
                for r, first, until in zip(ids, walked.first, walked.until, strict=True)
                if first <= firing < until
            ]
            for firing in range(1, walked.firings + 1)
        ]
        fired = [f for f in told.firings if (f.key, f.window) == (key, window)]
        assert holds == [[r.record_id for r in firing.members] for firing in fired]
        assert sum(walked.fires) == walked.firings
        open_here = [p for p in told.open_at_end if (p.key, p.window) == (key, window)]
        if open_here:
            still = [r for r, until in zip(ids, walked.until, strict=True) if until == STILL_HELD]
            assert still == [record.record_id for record in open_here[0].members]


def test_a_group_is_walked_over_in_the_order_of_its_positions():
    names = Names(
        order=("at", "id"),
        late="late",
        ts_ms="ts",
        trigger_value="t",
        evictor_value="e",
        fired="fired",
        fires="fires",
        first="first",
        until="until",
        firings="firings",
    )
    group = pa.table(
        {
            "at": [2, 1, 1],
            "id": ["c", "b", "a"],
            "late": [False] * 3,
            "ts": [0] * 3,
            "t": [9.0, 1.0, 0.0],
            "e": [None] * 3,
            "fired": [False] * 3,
        }
    )
    walked = walk_over_groups(Rules(delta=5.0, purging=True), names)(group)
    assert walked["id"].to_pylist() == ["a", "b", "c"]
    assert walked["fires"].to_pylist() == [False, False, True]
    assert walked["first"].to_pylist() == [1, 1, 1]
    assert walked["until"].to_pylist() == [2, 2, 2]
    assert walked["firings"].to_pylist() == [1, 1, 1]
