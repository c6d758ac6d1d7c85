"""The days on which the watermark can reach a value of a range."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from strandline.engine.history.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK


def advance_days(history: History, within: TimeRange, clock: Clock) -> list[date]:
    """The days on which the watermark can reach a value of a range."""
    axis, grid, crossings = history.axis, history.grid, history.crossings
    first, last = axis.first_of(EVERYTHING.start_ms), axis.never
    if not grid.all_time:
        step_ms = grid.threshold_step_ms
        last_ms = min(within.end_ms + step_ms, MAX_WATERMARK - step_ms)  # the edge behind is a long
        edges = grid.edges_around(TimeRange(within.start_ms, last_ms))
        (first, last), _ = crossings.reached(edges, clock.horizon_ms)
    days = {*history.days.every, *crossings.days_of_steps(clock.horizon_ms)}
    days |= _days_of_next_ticks(axis, days, clock.horizon_ms)
    rising = {
        day
        for day in days
        if axis.first_of(midnight_of(day)) <= last
        and axis.first_of(midnight_of(day) + DAY_MS) >= first
    }
    if clock.closes_now:  # as the channels end one by one, it advances to what the others offer
        rising.add(day_of(clock.horizon_ms - 1))
    return sorted(rising)


def _days_of_next_ticks(axis: Axis, days: Collection[date], horizon_ms: int) -> set[date]:
    """The days of the first ticks after some days, before a horizon; none without ticks."""
    if axis.ticks is None:
        return set()
    ticks = (axis.ticks.after(midnight_of(day) + DAY_MS - 1) for day in days)
    return {day_of(tick) for tick in ticks if tick < horizon_ms}
