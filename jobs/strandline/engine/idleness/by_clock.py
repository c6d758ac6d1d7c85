"""The steps of the combined watermark where it follows the clock.

On each tick every channel that is not idle offers the clock minus a lag, so the combined watermark
advances on every tick on which a channel offers. Between two changes of status, all ticks are one
row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from strandline.engine.idleness.received import Interval, Received
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.state import Channel, SourceState, StatusChange
from strandline.engine.idleness.steps import highest_of, step_rows
from strandline.engine.position.axis import TICK_RANK
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Ticks


@dataclass(frozen=True)
class _TickRun:
    """Consecutive ticks on which the same channels offer.

    Attributes:
        first_ms: the first tick.
        last_ms: the last tick.
        offering: the numbers of the channels that offer.
        awaited: the numbers of the channels that were active just before the first tick. A valve
            waits for them on the first tick; on the other ticks for `offering`.
    """

    first_ms: int
    last_ms: int
    offering: set[int]
    awaited: set[int]


@dataclass(frozen=True)
class _RisingTicks:
    """Consecutive ticks on each of which the watermark advances, each time at the same rank."""

    first_ms: int
    last_ms: int
    rank: int


def steps_by_clock(rules: IdlenessRules, interval: Interval) -> tuple[pd.DataFrame, SourceState]:
    """The watermark's steps in an interval, and the state of the source after it."""
    before, runs = interval.before, list(_tick_runs(rules, interval))
    offering, says_idle = offering_before(rules, interval), before.says_idle
    if runs:
        offering, last_ms = runs[-1].offering, runs[-1].last_ms
        says_idle = not offering and last_ms >= rules.main_output_idle_from_ms
    advances_of = _advances_of_source if rules.splits else _advances_of_valve
    rising = (advance for run in runs for advance in advances_of(run, rules))
    steps = _step_rows(rising, rules.ticks, rules.lag_ms or 0)
    return steps, replace(
        before,
        channels=channels_after_ticks(interval, offering),
        combined_ms=int(highest_of(steps[-1:]).max(initial=before.combined_ms)),
        says_idle=says_idle,
        changes=tuple(_changes(runs, rules, interval)),
    )


def steps_without_idleness(
    joined: Sequence[int], ticks: Ticks, lag_ms: int, last_ms: int
) -> pd.DataFrame:
    """The steps of channels that never go idle: on each tick the last channel that joined decides.

    Args:
        joined: the instants at which the channels joined, ascending.
        ticks: the ticks on which all channels offer.
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
    """The tick ranges on which a channel offers, as half-open [first, end) in ms."""
    silences, shown = received.silences(rules.timeout_ms), received.shown.ticks
    begins = interval.first_tick_ms
    if received.before.last_shown_ms is None:  # it offers from the tick that shows its first record
        if not len(shown):
            return []
        begins = int(shown[0])
    firsts = [begins, *silences.back_at.tolist()]
    spans = zip(firsts, silences.idle_from.tolist(), strict=True)
    return [(first, end) for first, end in spans if first < end]


def _begins_and_ends(
    rules: IdlenessRules, interval: Interval
) -> tuple[defaultdict[int, set[int]], defaultdict[int, set[int]]]:
    """The channels that begin to offer, and that stop offering, by tick."""
    begins, ends = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for number, received in enumerate(interval.channels):
        for first, end in active_spans(received, rules, interval):
            begins[first].add(number)
            ends[end].add(number)
    return begins, ends


def _tick_runs(rules: IdlenessRules, interval: Interval) -> Iterator[_TickRun]:
    """The ticks of an interval, divided wherever a channel begins or stops offering."""
    begins, ends = _begins_and_ends(rules, interval)
    last_ms = rules.axis.last_tick_before(interval.until_ms)
    at = {interval.first_tick_ms, *begins, *ends}
    if rules.splits:
        at.add(rules.main_output_idle_from_ms)
    cuts = sorted(tick for tick in at if interval.first_tick_ms <= tick <= last_ms)
    offering = offering_before(rules, interval)
    unshown = {n for n, one in enumerate(interval.channels) if one.before.last_shown_ms is None}
    for first, following in pairwise([*cuts, last_ms + rules.ticks.interval_ms]):
        awaited = offering | (begins[first] & unshown)
        offering, unshown = (offering - ends[first]) | begins[first], unshown - begins[first]
        yield _TickRun(first, following - rules.ticks.interval_ms, offering, awaited)


# ------------------------------------------------------------------------------ where that advances


def _advances_of_source(run: _TickRun, rules: IdlenessRules) -> Iterator[_RisingTicks]:
    """The advances of a source of splits, and of its main output until that is idle."""
    if run.offering or run.first_ms < rules.main_output_idle_from_ms:
        yield _RisingTicks(run.first_ms, run.last_ms, TICK_RANK)


def _advances_of_valve(run: _TickRun, rules: IdlenessRules) -> Iterator[_RisingTicks]:
    """The advances of a valve: the last channel that it waits for decides, in probe order.

    On the first tick it waits for the channels that took part before it, whether they offer or go
    idle now. A channel that becomes active again is behind and not waited for until it has offered;
    if no other channel offers, the first one to become active lets the watermark advance.
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
    """Runs of ticks as step rows, one row for each; ticks that offer MIN_WATERMARK are left out."""
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
    """The channels after the ticks of an interval.

    A channel that joined after the last tick is active, without a watermark.
    """

    def after(number: int, channel: Channel) -> Channel:
        has_offered = channel.last_shown_ms is not None
        return replace(
            channel,
            active=number in offering or not has_offered,
            been_idle=number not in offering and has_offered,
        )

    return tuple(after(number, one.after) for number, one in enumerate(interval.channels))


def _changes(
    runs: Sequence[_TickRun], rules: IdlenessRules, interval: Interval
) -> Iterator[StatusChange]:
    """When the source as a whole goes idle or active: with its ticks, or as a channel joins.

    A valve is idle as soon as its last channel is. A source of splits is idle no earlier than its
    main output, and becomes active only with a watermark.
    """
    before = interval.before
    idle = before.says_idle
    if not rules.splits:
        idle = bool(before.channels) and not any(one.active for one in before.channels)
    events: list[tuple[int, int, _TickRun | None]] = [
        (run.first_ms, TICK_RANK, run) for run in runs
    ]
    if not rules.splits:
        newcomers = [r for n, r in enumerate(interval.channels) if interval.is_new(n)]
        events += [(one.before.joined_at + 1, -1, None) for one in newcomers]
    for seen_from, rank, run in sorted(events, key=lambda event: event[:2]):
        now_idle = False
        if run is not None:
            may_be = run.first_ms >= rules.main_output_idle_from_ms if rules.splits else run.awaited
            now_idle = not run.offering and (idle or bool(may_be))
        if now_idle != idle:
            yield StatusChange(seen_from, rank, idle=now_idle)
        idle = now_idle
