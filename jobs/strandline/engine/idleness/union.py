"""The combined watermark of two inputs behind one valve: over all channels of both.

Windows over two inputs are windows over a union, so a slow channel of either side holds back both.
Each side's channels have rules of their own; a source of splits is one channel of the valve.
Flink: `CoGroupedStreams`, `JoinedStreams`, `DataStream#union`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Self

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from strandline.engine.idleness.activity import SILENCE, Activity
from strandline.engine.idleness.by_clock import active_spans
from strandline.engine.idleness.by_records import (
    BEFORE_ALL,
    advances_as_rows,
    channels_after,
    events_of,
)
from strandline.engine.idleness.events import IDLE, JOIN, OFFER, Events
from strandline.engine.idleness.received import Interval, channels_of, with_status
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.source import Source, WatermarkSource
from strandline.engine.idleness.state import Channel, SourceState, UnionState
from strandline.engine.idleness.valve import Channels, Valve
from strandline.engine.position.axis import TICK_RANK, Axis, InputAxis
from strandline.model.intervals import DAY_MS, midnight_before, midnight_of
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec


class InputSource(Source):
    """The channels of one of two inputs: see `Source`.

    Attributes:
        of_two: its own axis, and the one of both inputs.
    """

    def __init__(self, spec: PipelineSpec, of_two: InputAxis) -> None:
        """Prepare for an input by its part of the pipeline file."""
        super().__init__(spec, of_two.own)
        self.of_two = of_two


@dataclass(frozen=True)
class InputEvents:
    """The events of one input's channels at the valve, caused by some activity.

    Attributes:
        events: the events, by position on the axis of both inputs.
        own: the events on the input's own axis.
        before: the channels before the events.
        joined: the number of the channels of `before` that had joined.
        interval: the records and offers of the source's channels.
        after: the state of a source of splits after the events; None: its channels are at the
            valve.
    """

    events: Events
    own: Events
    before: tuple[Channel, ...]
    joined: int
    interval: Interval
    after: SourceState | None = None


class Union(WatermarkSource):
    """The source of two inputs whose channels one valve combines."""

    silence = (SILENCE, SILENCE)

    def __init__(self, left: InputSource, right: InputSource) -> None:
        """Combine two inputs; the left one is probed first."""
        self.inputs, self.axis = (left, right), left.of_two.both

    @classmethod
    def of(cls, spec: TwoSourcesSpec, axes: tuple[Axis, Axis]) -> Self:
        """The channels of both inputs of a pipeline, each with its own axis."""
        left, right = InputAxis.of_two(*axes)
        return cls(InputSource(spec.left, left), InputSource(spec.right, right))

    def at_the_start(self) -> UnionState:
        """See `WatermarkSource`."""
        left, right = (
            Channel(name) if one.rules.splits else None
            for name, one in zip(("left", "right"), self.inputs, strict=True)
        )
        sources = (self.inputs[0].at_the_start(), self.inputs[1].at_the_start())
        return UnionState(sources=sources, splits=(left, right))

    def observe(
        self, records: Mapping[str, DataFrame], days: Collection[date], among: Iterable[date]
    ) -> tuple[Activity, ...]:
        """See `WatermarkSource`."""
        sides = zip(self.inputs, records.items(), strict=True)
        return tuple(
            activity
            for one, (name, rows) in sides
            for activity in one.observe({name: rows}, days, among)
        )

    def advance(
        self, carried: SourceState, activities: Sequence[Activity], until_ms: int
    ) -> tuple[pd.DataFrame, UnionState]:
        """See `WatermarkSource`; silent days come one by one: each may have many ticks."""
        parts = [part for one in activities for part in one.parts if len(part)]
        firsts = (midnight_of(part["arrival_date"].min()) + 1 for part in parts)
        since_ms, end_ms = carried.until_ms, min(firsts, default=until_ms)
        if since_ms is None:  # a landing without a row has no first day: its axis may start in 1970
            since_ms = self.axis.start_ms if parts else until_ms
        found = []
        for midnight_ms in range(midnight_before(since_ms) + DAY_MS, end_ms, DAY_MS):
            steps, carried = self._advance(carried, self.silence, midnight_ms)
            found.append(steps)
        steps, after = self._advance(carried, activities, until_ms)
        filled = [part for part in (*found, steps) if len(part)]
        return pd.concat(filled, ignore_index=True) if filled else steps, after

    def _advance(
        self, carried: SourceState, activities: Sequence[Activity], until_ms: int
    ) -> tuple[pd.DataFrame, UnionState]:
        carried = _of_both(carried)
        of_inputs = [
            _events_of_input(one, source, splits, activity, until_ms)
            for one, source, splits, activity in zip(
                self.inputs, carried.sources, carried.splits, activities, strict=True
            )
        ]
        sides = [(one.before, one.joined) for one in of_inputs]
        channels = channels_of(sides, carried.combined_ms)
        events = _events_of_both(of_inputs)
        events = events.without_swallowed_offers(channels.watermark_ms.tolist())
        advances = Valve(channels).run(events) if len(events) else []
        return advances_as_rows(events, advances), self._after(
            carried, of_inputs, channels, until_ms
        )

    def _after(
        self,
        carried: UnionState,
        of_inputs: Sequence[InputEvents],
        channels: Channels,
        until_ms: int,
    ) -> UnionState:
        """The state of both inputs after some events, which have changed the `channels` of both."""
        first = len(of_inputs[0].before)
        parts = (_part(channels, slice(0, first)), _part(channels, slice(first, None)))
        (left, left_splits), (right, right_splits) = (
            _input_after(one, of_input, splits, part, until_ms)
            for one, of_input, splits, part in zip(
                self.inputs, of_inputs, carried.splits, parts, strict=True
            )
        )
        return UnionState(
            until_ms,
            combined_ms=channels.combined_ms,
            sources=(left, right),
            splits=(left_splits, right_splits),
        )

    def at_end(self, carried: SourceState) -> tuple[tuple[int, int], ...]:
        """See `WatermarkSource`."""
        carried = _of_both(carried)
        before = [
            source.channels if splits is None else (splits,)
            for source, splits in zip(carried.sources, carried.splits, strict=True)
        ]
        channels = channels_of([(side, len(side)) for side in before], carried.combined_ms)
        firsts = (0, len(before[0]))
        dropped = [
            first
            for first, source, splits in zip(firsts, carried.sources, carried.splits, strict=True)
            if splits is not None and source.says_idle
        ]
        ends = Valve(channels).end(dropped)
        return tuple((TICK_RANK + number, value) for number, value in ends)


def _of_both(state: SourceState) -> UnionState:
    """A state, checked to be of two inputs.

    Raises:
        TypeError: it is the state of one source.
    """
    if not isinstance(state, UnionState):
        msg = "the state of one source, not of two"
        raise TypeError(msg)
    return state


def _events_of_input(
    one: InputSource, source: SourceState, splits: Channel | None, activity: Activity, until_ms: int
) -> InputEvents:
    interval = Interval.of(source, activity, until_ms, one.rules)
    if splits is not None:
        steps, after = one.advance(source, [activity], until_ms)
        own = _events_of_splits(one, steps, after)
        return InputEvents(_on_both(one.of_two, own, {}), own, (splits,), 1, interval, after)
    before = tuple(received.before for received in interval.channels)
    own = _own_events(one.rules, interval)
    events = _on_both(one.of_two, own, _joins(one.of_two, interval, activity))
    return InputEvents(events, own, before, len(source.channels), interval)


def _own_events(rules: IdlenessRules, interval: Interval) -> Events:
    """The events of channels, including offers of the clock minus a lag on every tick."""
    parts = [events_of(rules, interval)]
    if rules.lag_ms is not None:
        for number, received in enumerate(interval.channels):
            for first, end in active_spans(received, rules, interval):
                last = min(end, interval.until_ms)
                ticks = np.arange(first, last, rules.ticks.interval_ms, dtype=np.int64)
                offers = ticks - rules.lag_ms
                rank = TICK_RANK + number
                parts.append(Events.of(ticks, rank, number, OFFER, offers))
    return Events.concatenated(parts)


def _events_of_splits(one: InputSource, steps: pd.DataFrame, after: SourceState) -> Events:
    """The watermark advances and status changes of a source of splits, as of one channel."""
    interval_ms = one.axis.interval_ms or 1
    parts = []
    for first, until, rank, value in zip(
        *(steps[name].tolist() for name in ("seen_from", "until", "rank", "watermark_ms")),
        strict=True,
    ):
        instants = np.array(range(first, until + 1, interval_ms), dtype=object)
        values = np.array([value + at - first for at in instants], dtype=np.int64)
        parts.append(Events.of(instants, rank, 0, OFFER, values))
    idle = [change for change in after.changes if change.idle]
    parts += [Events.of(np.array([at.seen_from], dtype=object), at.rank, 0, IDLE) for at in idle]
    return Events.concatenated(parts)


def _joins(axis: InputAxis, interval: Interval, activity: Activity) -> dict[int, int]:
    """The instant, on the axis of both inputs, at which each new channel joins, by its number."""
    first = activity.first
    columns = (first[name].tolist() for name in ("channel", "instant", "sequence"))
    at = {
        name: axis.both.instant(axis.own.arrival_of(int(instant)), int(sequence))
        for name, instant, sequence in zip(*columns, strict=True)
    }
    names = [received.before.name for received in interval.channels]
    return {n: at[name] + 1 for n, name in enumerate(names) if interval.is_new(n)}


def _on_both(axis: InputAxis, own: Events, joins: Mapping[int, int]) -> Events:
    """Events of one input, on the axis of both; a channel joins before it offers."""
    seen = [
        joins[channel] if kind == JOIN else axis.seen_from(int(at))
        for channel, kind, at in zip(
            own.channel.tolist(), own.kind.tolist(), own.seen_from.tolist(), strict=True
        )
    ]
    ranks = [
        BEFORE_ALL if kind == JOIN else axis.rank_of(int(rank))
        for kind, rank in zip(own.kind.tolist(), own.rank.tolist(), strict=True)
    ]
    kind: Any = object if axis.both.sequenced else np.int64
    return replace(own, seen_from=np.array(seen, dtype=kind), rank=np.array(ranks, dtype=np.int64))


def _events_of_both(of_inputs: Sequence[InputEvents]) -> Events:
    """The events of both inputs' channels; the right input's are numbered after the left's."""
    left, right = (one.events for one in of_inputs)
    behind = replace(right, channel=right.channel + len(of_inputs[0].before))
    return Events.concatenated([left, behind])


def _part(channels: Channels, part: slice) -> Channels:
    return Channels(channels.watermark_ms[part], channels.active[part], channels.been_idle[part])


def _input_after(
    one: InputSource,
    events: InputEvents,
    splits: Channel | None,
    combined: Channels,
    until_ms: int,
) -> tuple[SourceState, Channel | None]:
    """The state of an input after its events, which have changed its `combined` channels."""
    if splits is not None and events.after is not None:
        return events.after, with_status(splits, combined, 0)
    channels = channels_after(one.rules, events.interval, events.own, combined)
    return replace(events.interval.before, channels=channels, until_ms=until_ms), None
