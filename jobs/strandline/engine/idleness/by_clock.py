"""The steps of the combined watermark where ticks alone decide.

Every channel that is not idle offers the clock less the lag on each tick, so the combined watermark
advances on every tick on which one of them offers. Between two changes of who is idle, the ticks
are one row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from strandline.engine.idleness.received import Interval, Received
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import Channel, SourceState, StatusChange
from strandline.engine.idleness.steps import step_rows
from strandline.engine.position.axis import TICK_RANK
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Ticks


@dataclass(frozen=True)
class _TickRun:
    """Ticks one after the other on which the same channels offer.

    Attributes:
        first_ms: the first of them.
        last_ms: the last of them.
        offering: the numbers of the channels that offer.
        awaited: the channels that took part just before the first tick: a valve waits for them on
            that tick, and only on that one they may be others than those that offer.
    """

    first_ms: int
    last_ms: int
    offering: set[int]
    awaited: set[int]


@dataclass(frozen=True)
class _RisingTicks:
    """Ticks one after the other on each of which the watermark advances, at one rank."""

    first_ms: int
    last_ms: int
    rank: int


def steps_by_clock(rules: IdlenessRules, interval: Interval) -> tuple[pd.DataFrame, SourceState]:
    """The steps of an interval, and where the source stands after it."""
    offering = offering_before(rules, interval)
    rising: list[_RisingTicks] = []
    runs = list(_tick_runs(rules, interval))
    for run in runs:
        rising += (
            _advances_of_source(run, rules) if rules.splits else _advances_of_valve(run, rules)
        )
        offering = run.offering
    steps = _step_rows(rising, rules.ticks, rules.lag_ms or 0)
    before = interval.before
    return steps, replace(
        before,
        channels=channels_after_ticks(interval, offering),
        combined_ms=_last_value(steps, before.combined_ms),
        says_idle=_says_idle(rules, interval, offering),
        changes=tuple(_changes(runs, rules, interval)),
    )


def steps_without_idleness(
    joined: Sequence[int], ticks: Ticks, lag_ms: int, last_ms: int
) -> pd.DataFrame:
    """The steps of channels none of which goes idle: the last one to join decides on each tick.

    Args:
        joined: the instants at which they did, in order.
        ticks: on which all offer.
        lag_ms: how far the watermark is behind the clock.
        last_ms: the last tick of all.
    """
    firsts = [ticks.after(max(at, ticks.start_ms)) for at in joined]
    runs = pairwise([*firsts, last_ms + ticks.interval_ms])
    rising = (
        _RisingTicks(first_ms, next_ms - ticks.interval_ms, number)
        for number, (first_ms, next_ms) in enumerate(runs)
    )
    return _step_rows(rising, ticks, lag_ms)


# ------------------------------------------------------------------------------------ who offers


def offering_before(rules: IdlenessRules, interval: Interval) -> set[int]:
    """The channels that were not idle on the tick before the interval's first one."""
    tick_ms = interval.first_tick_ms - rules.ticks.interval_ms
    return {
        number
        for number, received in enumerate(interval.channels)
        if received.before.last_shown_ms is not None
        and tick_ms < received.before.last_shown_ms + rules.timeout_ms
    }


def active_spans(
    received: Received, rules: IdlenessRules, interval: Interval
) -> list[tuple[int, int]]:
    """The ticks on which a channel offers, as [first, end)."""
    silences, shown = received.silences(rules.timeout_ms), received.shown.ticks
    begins = interval.first_tick_ms
    if received.before.last_shown_ms is None:  # it offers from the tick that shows its first record
        if not len(shown):
            return []
        begins = int(shown[0])
    firsts = [begins, *silences.back_at.tolist()]
    spans = zip(firsts, silences.idle_from.tolist(), strict=True)
    return [(first, end) for first, end in spans if first < end]


@dataclass(frozen=True)
class _Changes:
    """By tick, the channels that begin to offer there, that end to, and that join."""

    begins: Mapping[int, set[int]]
    ends: Mapping[int, set[int]]
    joins: Mapping[int, set[int]]

    @classmethod
    def of(cls, rules: IdlenessRules, interval: Interval) -> _Changes:
        """The changes of an interval."""
        begins, ends, joins = (defaultdict[int, set[int]](set) for _ in range(3))
        for number, received in enumerate(interval.channels):
            spans = active_spans(received, rules, interval)
            for first, end in spans:
                begins[first].add(number)
                ends[end].add(number)
            if spans and received.before.last_shown_ms is None:
                joins[spans[0][0]].add(number)
        return cls(begins, ends, joins)


def _tick_runs(rules: IdlenessRules, interval: Interval) -> Iterator[_TickRun]:
    """The ticks of an interval, cut wherever a channel begins or ends to offer."""
    changes = _Changes.of(rules, interval)
    last_ms = rules.axis.last_tick_before(interval.until_ms)
    at = {interval.first_tick_ms, *changes.begins, *changes.ends}
    if rules.splits:
        at.add(rules.main_output_idle_from_ms)
    cuts = sorted(tick for tick in at if interval.first_tick_ms <= tick <= last_ms)
    interval_ms = rules.ticks.interval_ms
    offering = offering_before(rules, interval)
    for first, following in pairwise([*cuts, last_ms + interval_ms]):
        awaited = offering | changes.joins.get(first, set())
        offering = (offering - changes.ends.get(first, set())) | changes.begins.get(first, set())
        yield _TickRun(first, following - interval_ms, offering, awaited)


# ------------------------------------------------------------------------------ where that advances


def _advances_of_source(run: _TickRun, rules: IdlenessRules) -> Iterator[_RisingTicks]:
    """Splits are merged at once; the main output offers as well, until it is idle."""
    if run.offering or run.first_ms < rules.main_output_idle_from_ms:
        yield _RisingTicks(run.first_ms, run.last_ms, TICK_RANK)


def _advances_of_valve(run: _TickRun, rules: IdlenessRules) -> Iterator[_RisingTicks]:
    """The watermark advances with the last channel that a valve waits for, in probe order.

    On the first tick these are the channels that took part before it, whether they offer or go idle
    now. One that comes back is behind, and not waited for before it has offered; if none else
    offers, the first one to come back lets the watermark advance.
    """
    if not run.offering:
        return
    last_awaited = max(run.awaited, default=-1)
    decides_first = max(last_awaited, min(run.offering))
    yield _RisingTicks(run.first_ms, run.first_ms, TICK_RANK + decides_first)
    if run.last_ms > run.first_ms:
        second_ms = run.first_ms + rules.ticks.interval_ms
        yield _RisingTicks(second_ms, run.last_ms, TICK_RANK + max(run.offering))


def _step_rows(rising: Iterable[_RisingTicks], ticks: Ticks, lag_ms: int) -> pd.DataFrame:
    """Steps: one row for ticks one after the other; an offer of MIN_WATERMARK or below is none."""
    interval_ms, rows = ticks.interval_ms, []
    for run in rising:
        missing_ms = max(MIN_WATERMARK + lag_ms + 1 - run.first_ms, 0)
        first_ms = run.first_ms + -(-missing_ms // interval_ms) * interval_ms
        if first_ms <= run.last_ms:
            rows.append((first_ms, run.rank, first_ms - lag_ms, run.last_ms))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return step_rows(*columns)


# --------------------------------------------------------------------------- where it stands then


def channels_after_ticks(interval: Interval, offering: set[int]) -> tuple[Channel, ...]:
    """Who has joined after the last tick takes part, without an offer."""

    def after(number: int, channel: Channel) -> Channel:
        has_offered = channel.last_shown_ms is not None
        return replace(
            channel,
            active=number in offering or not has_offered,
            been_idle=number not in offering and has_offered,
        )

    return tuple(after(number, one.after) for number, one in enumerate(interval.channels))


def _last_value(steps: pd.DataFrame, before_ms: int) -> int:
    if not len(steps):
        return before_ms
    last = steps.iloc[-1]
    return int(last["watermark_ms"] + last["until"] - last["seen_from"])


def _changes(
    runs: Sequence[_TickRun], rules: IdlenessRules, interval: Interval
) -> Iterator[StatusChange]:
    """Where the source as a whole goes idle or comes back: with its ticks, or as a channel joins.

    A valve is idle as soon as its last channel is, a source of splits no earlier than its main
    output, and it comes back with a watermark alone.
    """
    before = interval.before
    idle = before.says_idle if rules.splits else _none_is_active(before.channels)
    moments: list[tuple[int, int, _TickRun | None]] = [
        (run.first_ms, TICK_RANK, run) for run in runs
    ]
    if not rules.splits:
        newcomers = [r for n, r in enumerate(interval.channels) if interval.is_new(n)]
        moments += [(one.before.joined_at + 1, -1, None) for one in newcomers]
    for seen_from, rank, run in sorted(moments, key=lambda moment: moment[:2]):
        now_idle = False
        if run is not None:
            may_be = run.first_ms >= rules.main_output_idle_from_ms if rules.splits else run.awaited
            now_idle = not run.offering and (idle or bool(may_be))
        if now_idle != idle:
            yield StatusChange(seen_from, rank, idle=now_idle)
        idle = now_idle


def _none_is_active(channels: Sequence[Channel]) -> bool:
    return bool(channels) and not any(channel.active for channel in channels)


def _says_idle(rules: IdlenessRules, interval: Interval, offering: set[int]) -> bool:
    """Whether the source has said that it is idle, by the last tick."""
    last_ms = rules.axis.last_tick_before(interval.until_ms)
    if last_ms < interval.first_tick_ms:
        return interval.before.says_idle
    return not offering and last_ms >= rules.main_output_idle_from_ms
