"""The steps of the combined watermark where it follows the records of the channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.idleness.events import IDLE, JOIN, OFFER, Events
from strandline.engine.idleness.received import Interval, Received, with_status
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import Channel, SourceState, StatusChange
from strandline.engine.idleness.steps import step_rows
from strandline.engine.idleness.valve import Advances, Channels, Splits, Valve
from strandline.engine.position.axis import TICK_RANK

BEFORE_ALL = -1
"""The rank of a joining channel: before all offers at the same position."""


def steps_by_records(rules: IdlenessRules, interval: Interval) -> tuple[pd.DataFrame, SourceState]:
    """The watermark's steps in an interval, and the state of the source after it."""
    channels, events = interval.combined_channels(), events_of(rules, interval)
    combiner = Splits(channels) if rules.splits else Valve(channels)
    advances = combiner.run(events) if len(events) else []
    steps = advances_as_rows(events, advances)
    state = replace(
        interval.before,
        channels=channels_after(rules, interval, events, channels),
        combined_ms=channels.combined_ms,
    )
    if isinstance(combiner, Splits):
        changes = tuple(_changes_of_splits(rules, interval, events, combiner, advances))
        state = replace(
            state,
            says_idle=changes[-1].idle if changes else state.says_idle,
            splits_idle=combiner.all_idle_since_advance or (state.splits_idle and not len(steps)),
        )
    else:
        changes = tuple(events.change(place, idle=idle) for place, idle in combiner.changes)
    return steps, replace(state, changes=changes)


def events_of(rules: IdlenessRules, interval: Interval) -> Events:
    """The events of all channels of a source in an interval."""
    parts = [
        part
        for number, received in enumerate(interval.channels)
        for part in _events_of_channel(rules, interval, number, received)
    ]
    events = Events.concatenated(parts)
    if rules.splits:
        return events
    return events.without_swallowed_offers([one.before.watermark_ms for one in interval.channels])


def _events_of_channel(
    rules: IdlenessRules, interval: Interval, number: int, received: Received
) -> Iterator[Events]:
    """The events of one channel: it joins, goes idle, offers watermarks at once or on ticks."""
    on_tick, at_once = TICK_RANK + number, number
    if rules.splits:  # the watermarks of all splits at one position are combined in one step
        on_tick, at_once = TICK_RANK, 0
    if interval.is_new(number):
        joins = np.array([received.before.joined_at + 1])
        yield Events.of(joins, BEFORE_ALL, number, JOIN)
    idle_from = received.silences(rules.timeout_ms).idle_from
    idle_at = idle_from[(idle_from >= interval.first_tick_ms) & (idle_from < interval.until_ms)]
    yield Events.of(_instants(idle_at, rules), on_tick, number, IDLE)
    seen_from, candidates = received.at_once
    yield Events.of(seen_from, at_once, number, OFFER, candidates)
    if rules.offers_on_ticks:
        ticks = _instants(received.shown.ticks, rules)
        yield Events.of(ticks, on_tick, number, OFFER, received.shown.candidates)


def _instants(ticks: npt.NDArray[Any], rules: IdlenessRules) -> npt.NDArray[Any]:
    """The first instant of each of some ticks."""
    return ticks.astype(object) * rules.axis.scale if rules.axis.sequenced else ticks


def advances_as_rows(events: Events, advances: Advances) -> pd.DataFrame:
    """The watermark advances that events have caused, as step rows."""
    none = np.zeros(0, dtype=np.int64)
    places = np.concatenate([none, *(place for place, _ in advances)])
    values = np.concatenate([none, *(value for _, value in advances)])
    return step_rows(events.seen_from[places], events.rank[places], values)


def channels_after(
    rules: IdlenessRules, interval: Interval, events: Events, combined: Channels
) -> tuple[Channel, ...]:
    """The state of each channel after some events, which have changed the `combined` channels."""
    return tuple(
        replace(
            with_status(received.after, combined, number),
            raised_ms=_last_raise_ms(rules, events, number, received.before.raised_ms),
        )
        for number, received in enumerate(interval.channels)
    )


def _last_raise_ms(
    rules: IdlenessRules, events: Events, channel: int, before_ms: int | None
) -> int | None:
    raises = events.offers_of(channel)
    if not len(raises):
        return before_ms
    last = raises[-1]
    return rules.axis.event_ms(int(events.seen_from[last]), int(events.rank[last]))


def _changes_of_splits(
    rules: IdlenessRules,
    interval: Interval,
    events: Events,
    splits: Splits,
    advances: Advances,
) -> Iterator[StatusChange]:
    """The events at which a source of splits emits idle, or active as its watermark advances.

    Flink: `ProgressiveTimestampsAndWatermarks`.
    """
    advanced = np.concatenate([np.zeros(0, dtype=np.int64), *(place for place, _ in advances)])
    goes_idle = _goes_idle(rules, interval, events, splits, advanced)
    idle_since: float | None = -1.0 if interval.before.says_idle else None
    for place, change in [*goes_idle, (float(len(events)), None)]:
        if idle_since is not None:
            back = _first_within(advanced, idle_since, place)
            if back is None:
                continue
            yield events.change(back, idle=False)
        if change is not None:
            yield change
        idle_since = place


def _goes_idle(
    rules: IdlenessRules,
    interval: Interval,
    events: Events,
    splits: Splits,
    advanced: npt.NDArray[np.int64],
) -> list[tuple[float, StatusChange]]:
    """The changes to idle of all splits and the main output, each with its place, in order.

    A place is the index of an event; n - 0.5 is between two events.

    The main output goes idle on one tick, after the splits of the tick. The source does not go idle
    before; it goes idle on that tick if all splits are idle by then. A source that has no split on
    its first tick goes idle on it, even if the main output is not idle.
    """
    main_ms = rules.main_output_idle_from_ms
    main = events.places_until(rules.axis.first_of(main_ms))
    found = [
        (float(place), events.change(place, idle=True))
        for place in splits.all_idle_at
        if place >= main
    ]
    if interval.first_tick_ms <= main_ms < interval.until_ms:
        last_advance = int(np.max(advanced[advanced < main], initial=-1))
        was_idle = any(last_advance <= place < main for place in splits.all_idle_at)
        if was_idle or (interval.before.splits_idle and last_advance < 0):
            with_main = StatusChange(rules.axis.first_of(main_ms), TICK_RANK, idle=True)
            found.insert(0, (main - 0.5, with_main))
    if _first_tick_saw_no_split(rules, interval):
        first_tick = rules.axis.first_of(rules.first_tick_ms)
        found.insert(0, (-0.5, StatusChange(first_tick, TICK_RANK, idle=True)))
    return found


def _first_within(places: npt.NDArray[np.int64], after: float, until: float) -> int | None:
    """The first of some ascending places in the interval (after, until]; None: there is none."""
    within = places[(places > after) & (places <= until)]
    return int(within[0]) if len(within) else None


def _first_tick_saw_no_split(rules: IdlenessRules, interval: Interval) -> bool:
    """Whether the first tick of all runs in an interval, before any split has joined."""
    first_tick_ms = rules.first_tick_ms
    return interval.first_tick_ms == first_tick_ms < interval.until_ms and not any(
        one.before.joined is None or rules.axis.arrival_of(one.before.joined) < first_tick_ms
        for one in interval.channels
    )
