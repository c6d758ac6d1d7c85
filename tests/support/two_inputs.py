"""Hypothesis generators of two inputs that are joined within an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
from activity import activity_of
from cells import axis_of, history_by_record
from hypothesis import assume
from hypothesis import strategies as st
from spec_strategies import CHANNELS_GIVEN, any_watermarks, durations
from strategies import BASES_MS, Stream, streams

from strandline.engine.history.history import History
from strandline.engine.history.observed import ObservedDay, assemble_history
from strandline.engine.idleness.activity import SILENCE
from strandline.engine.idleness.source import Source
from strandline.engine.idleness.steps import Steps
from strandline.engine.idleness.union import InputSource, Union
from strandline.engine.position.axis import InputAxis
from strandline.engine.watermark.by_steps import KnownSteps
from strandline.engine.watermark.of_two import CrossingsOfTwo, InputCrossings
from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.reference.answer import Replay
from strandline.reference.joins import PairReplay, replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record
from strandline.spec.join import SIDES, IntervalJoinSpec, Side, Sources, WindowJoinSpec, side_of
from strandline.spec.runnable import not_yet

INTERVALS = st.tuples(st.integers(-20, 20), st.sampled_from([0, 0, 1, 5, 30])).map(
    lambda drawn: [f"{drawn[0]}ms", f"{sum(drawn)}ms"]
)


@dataclass(frozen=True)
class TwoInputs:
    """An interval join, the streams of its sides, and what a run knows of them."""

    spec: IntervalJoinSpec
    left: Stream
    right: Stream

    @property
    def horizon_ms(self) -> int:
        return self.left.horizon_ms

    @property
    def end_of_input(self) -> bool:
        return self.left.end_of_input

    @cached_property
    def records(self) -> list[Record]:
        """Those of both sides; an id tells the side."""
        return [
            replace(record, input=name, record_id=f"{name} {record.record_id}")
            for name in SIDES
            for record in getattr(self, name).records
        ]

    def replay(self) -> PairReplay:
        return replay_interval_join(
            self.spec,
            self.records,
            start_ms=self.left.start_ms,
            horizon_ms=self.horizon_ms,
            end_of_input=self.end_of_input,
        )

    def crossings(self) -> CrossingsOfTwo:
        """Of both inputs, each observed record by record."""
        left, right = (history_of_side(getattr(self, name)) for name in SIDES)
        axes = InputAxis.of_two(left.axis, right.axis)
        crossings = (left.crossings, right.crossings)
        return CrossingsOfTwo(dict(zip(SIDES, map(InputCrossings, crossings, axes), strict=True)))

    @property
    def over_windows(self) -> WindowJoinSpec:
        """Windows over the same inputs, in place of the interval."""
        return WindowJoinSpec(
            pipeline="stream",
            sources=self.spec.sources,
            join={"cogroup": {}},
            window={"tumbling": "7ms"},
        )

    def replay_windows(self) -> Replay:
        return replay_windows_of_two(
            self.over_windows,
            self.records,
            start_ms=self.left.start_ms,
            horizon_ms=self.horizon_ms,
            end_of_input=self.end_of_input,
        )

    def union_steps(self) -> Steps:
        """The rises of the watermark of both inputs behind one valve, day by day."""
        axes = InputAxis.of_two(axis_of(self.left), axis_of(self.right))
        given = list(zip((self.left, self.right), axes, strict=True))
        sources = [InputSource(stream.spec, axis) for stream, axis in given]
        known = [
            [r for r in stream.records if r.arrival_ms < self.horizon_ms] for stream, _ in given
        ]
        activities = [
            activity_of(stream, records, source.rules)
            for (stream, _), records, source in zip(given, known, sources, strict=True)
        ]
        union = Union(*sources)
        carried, parts = union.at_the_start(), []
        for day in sorted({day_of(record.arrival_ms) for records in known for record in records}):
            until_ms = min(midnight_of(day) + DAY_MS, self.horizon_ms)
            steps, carried = union.advance(carried, [one.of(day) for one in activities], until_ms)
            parts.append(steps)
        silent, carried = union.advance(carried, [SILENCE, SILENCE], self.horizon_ms)
        table = pd.concat([*parts, silent], ignore_index=True)
        return Steps(table, axes[0].both, self.horizon_ms, union.at_end(carried))


def history_of_side(stream: Stream) -> History:
    """What is known of one side; where channels can go idle, by what they did day by day."""
    by_record = history_by_record(stream)
    if not stream.spec.watermark.idleness_in_effect:
        return by_record
    spec, axis = stream.spec, axis_of(stream)
    known = [record for record in stream.records if record.arrival_ms < stream.horizon_ms]
    source = Source(spec, axis)
    start = KnownSteps.none(source)
    days = sorted({day_of(record.arrival_ms) for record in known})
    activity = activity_of(stream, known)
    found = source.advance_days(start.carried, [activity], days, stream.horizon_ms)
    observed = [ObservedDay(*one) for one in found]
    return assemble_history(
        by_record.timeline, spec, source, start, observed, horizon_ms=stream.horizon_ms
    )


@st.composite
def two_inputs(
    draw: st.DrawFn,
    *,
    watermark: st.SearchStrategy[dict[str, Any]] | None = None,
    slots_ms: Sequence[int] = (1, 8, 3_600_000),
    length: st.SearchStrategy[int] = st.sampled_from([0, 1, 2, 6, 12, 24]),
) -> TwoInputs:
    """Two inputs of any strategies, splits and idleness of their own."""
    base_ms, sequence = draw(st.sampled_from(BASES_MS)), draw(st.sampled_from([None, "seq"]))
    slot = draw(durations(st.sampled_from(slots_ms)))
    interval, inclusive = draw(INTERVALS), st.booleans()
    chosen = any_watermarks() if watermark is None else watermark
    inputs = {name: draw(_one(base_ms, sequence, chosen, length)) for name in SIDES}
    spec = IntervalJoinSpec(
        pipeline="stream",
        quality={"slot": slot},
        sources=Sources(**{name: _side(stream) for name, stream in inputs.items()}),
        join={
            "interval": interval,
            "lower_inclusive": interval[0] == interval[1] or draw(inclusive),
            "upper_inclusive": interval[0] == interval[1] or draw(inclusive),
        },
    )
    assume(not not_yet(spec))
    first = inputs["left"]
    streams_of_sides = {
        name: replace(
            stream,
            spec=side_of(spec, name),
            start_ms=first.start_ms,
            horizon_ms=max(one.horizon_ms for one in inputs.values()),
            end_of_input=first.end_of_input,
        )
        for name, stream in inputs.items()
    }
    return TwoInputs(spec, **streams_of_sides)


def _side(stream: Stream) -> Side:
    source = dict(stream.spec.source) | {"retired": {}}
    return Side.model_construct(**source, watermark=stream.spec.watermark)


@st.composite
def _one(
    draw: st.DrawFn,
    base_ms: int,
    sequence: str | None,
    watermark: st.SearchStrategy[dict[str, Any]],
    length: st.SearchStrategy[int],
) -> Stream:
    chosen = draw(watermark)
    # discovered splits are refused
    given = [one for one in CHANNELS_GIVEN if chosen["combine"] == "valve" or one != "discovered"]
    return draw(
        streams(
            length=length,
            base_ms=st.just(base_ms),
            sequence=st.just(sequence),
            watermark=st.just(chosen),
            channels=st.sampled_from(given),
        )
    )
