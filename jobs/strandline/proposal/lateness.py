"""Guesses of bound, allowed lateness, `max_ahead` and window size, by a sample or the advisor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strandline.model.intervals import DAY_MS, HOUR_MS
from strandline.model.loss_curve import totals_on_offer
from strandline.proposal.guess import Certainty, Guess
from strandline.proposal.roles import Roles, distance_of_times
from strandline.proposal.times import MINUTE_MS, NONE_MS, Millis
from strandline.quality.figures import duration, percent
from strandline.spec.values import written
from strandline.visible import number_of

_SIZES_MS = (MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS)
_LEAST_ROWS = 20
"""The smallest average number of rows in a window of the proposed size, if a size reaches it."""
_DAYS_OF_A_MONTH = 28
"""A table whose days with rows are usually at least so many days apart is taken as monthly."""
_LEAST_DAYS = 3
"""The smallest number of days with arrivals whose pauses say when the next one is due."""
_LATER_DAYS = 2
"""The days by which rows may come later than usual: the default of 26 hours, in whole days."""
_AHEAD_MS = HOUR_MS
_MOST_CHOICES = 10
_BOUND_LOSES, _BOTH_LOSE = 0.01, 0.001
"""The largest lost share with the proposed bound alone, and with bound and allowed lateness."""


@dataclass(frozen=True)
class ProposedLateness:
    """The proposed bound and allowed lateness.

    Attributes:
        bound_ms: the bound of the watermark strategy.
        allowed_ms: the allowed lateness.
        late_share: the share of records that is late with them; None: not counted.
        max_ahead_ms: the proposed `max_ahead`; None: no limit.
        choices: the lost share by the sum of bound and allowed lateness.
        guesses: the guesses behind them.
    """

    bound_ms: int
    allowed_ms: int
    late_share: float | None
    max_ahead_ms: int | None
    choices: tuple[tuple[int, float], ...]
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class ProposedWindows:
    """The proposed windows.

    Attributes:
        size_ms: the size of the tumbling windows.
        gaps: the rule for slots without a record: `warn`, or `allow` if most days have none.
        guess: the guess of the size.
    """

    size_ms: int
    gaps: str
    guess: Guess


def window_size(event_ms: Millis, unit_ms: int, rows: int) -> ProposedWindows:
    """The size of tumbling windows, with enough rows in each, and longer than the times' unit."""
    known = event_ms[event_ms != NONE_MS]
    low, high = np.quantile(known, (0.005, 0.995)) if len(known) else (0.0, 0.0)
    span_ms = float(high - low)

    def in_each(size_ms: int) -> float:
        return rows * size_ms / max(span_ms, size_ms)

    least_ms = unit_ms * 4 if unit_ms >= HOUR_MS else unit_ms
    fitting = [ms for ms in _SIZES_MS if ms >= least_ms and in_each(ms) >= _LEAST_ROWS]
    size_ms = next(iter(fitting), DAY_MS)
    days_with_rows = np.unique(known[(known >= low) & (known <= high)] // DAY_MS)
    is_whole = len(event_ms) >= rows  # days without a row in a sample may have some in the table
    if is_whole and size_ms == DAY_MS and len(days_with_rows) < span_ms / DAY_MS / 2:
        why = f"rows on {len(days_with_rows):,} of {_in_days(span_ms)}, each in a window of its own"
        if np.median(np.diff(days_with_rows)) >= _DAYS_OF_A_MONTH:
            why += "; months differ in length, so no tumbling window is one"
        return _windows(size_ms, "allow", why)
    why = f"about {number_of(round(in_each(size_ms)), 'row')} in each, over {_in_days(span_ms)}"
    return _windows(size_ms, "warn", why)


def _in_days(span_ms: float) -> str:
    """A span of time in days; one of less than two days in its two largest units."""
    return number_of(round(span_ms / DAY_MS), "day") if span_ms >= 2 * DAY_MS else duration(span_ms)


def _windows(size_ms: int, gaps: str, why: str) -> ProposedWindows:
    guess = Guess("window", f"tumbling: {written(size_ms)}", Certainty.GUESS, why)
    return ProposedWindows(size_ms, gaps, guess)


def fresh_within(roles: Roles, rows: int) -> Guess | None:
    """The proposed `fresh_within`; None: the default, which suits arrivals on every day.

    It is longer than 95 % of the pauses between days with arrivals by more than the default of a
    daily schedule. Of a sample these pauses are not known.
    """
    arrived_ms = (roles.arrival or roles.event).known_ms
    days = np.unique(arrived_ms // DAY_MS)
    if len(roles.event.values_ms) < rows or len(days) < _LEAST_DAYS:
        return None
    usual = int(np.quantile(np.diff(days), 0.95, method="higher"))
    if usual <= 1:
        return None
    limit = written((usual + _LATER_DAYS) * DAY_MS)
    why = f"95 % of the pauses between days with arrivals are at most {number_of(usual, 'day')}"
    return Guess("quality.fresh_within", limit, Certainty.GUESS, why)


def by_sample(roles: Roles) -> ProposedLateness:
    """The proposal by the delays in the sample.

    A record is behind the watermark by at most the difference of its delay and the smallest delay.
    """
    if roles.arrival is None:
        why = "no lateness can be known without an arrival time"
        guess = Guess("watermark.bound", "0s", Certainty.TODO, why)
        return ProposedLateness(0, 0, None, None, (), (guess,))
    delays_ms = distance_of_times(roles.event, roles.arrival)
    behind_ms = delays_ms - delays_ms.min() if len(delays_ms) else delays_ms
    many = max(1, len(behind_ms))
    curve = [(ms, float((behind_ms > ms).sum() / many)) for ms in totals_on_offer(1_000, 0)]
    why = "at most, by the delays of the sample; advise counts all rows"
    return _chosen(curve, _ahead(roles), Certainty.GUESS, why)


def by_advice(roles: Roles, advice: Mapping[str, Any]) -> ProposedLateness:
    """The proposal by the advisor's lost share of all records for each total lateness."""
    curve = [(row["total_ms"], row["share_lost"]) for row in advice["settings"]]
    why = f"of all {number_of(advice['records'], 'record')}, by the advisor"
    return _chosen(curve, _ahead(roles), Certainty.LIKELY, why)


def _chosen(
    curve: Sequence[tuple[int, float]], ahead: tuple[int | None, Guess], sure: Certainty, why: str
) -> ProposedLateness:
    least_lost = curve[-1]
    bound_ms = next((ms for ms, lost in curve if lost <= _BOUND_LOSES), least_lost[0])
    total_ms, lost = next((one for one in curve if one[1] <= _BOTH_LOSE), least_lost)
    alone = next(share for ms, share in curve if ms == bound_ms)
    guesses = (
        Guess(
            "watermark.bound", written(bound_ms), sure, f"alone it would lose {_share(alone)} {why}"
        ),
        Guess(
            "allowed_lateness",
            written(total_ms - bound_ms),
            sure,
            f"both together lose {_share(lost)}",
        ),
        ahead[1],
    )
    nothing_ms = next((ms for ms, share in curve if not share), least_lost[0])
    choices = tuple(one for one in curve if one[0] <= nothing_ms)[-_MOST_CHOICES:]
    return ProposedLateness(bound_ms, total_ms - bound_ms, lost, ahead[0], choices, guesses)


def _ahead(roles: Roles) -> tuple[int | None, Guess]:
    """The proposed limit on event times after their arrival."""
    if roles.arrival is None:
        return None, Guess("source.max_ahead", "null", Certainty.TODO, "no arrival time")
    distance_ms = distance_of_times(roles.event, roles.arrival)
    share = float((distance_ms < -_AHEAD_MS).mean()) if len(distance_ms) else 0.0
    if share > _BOUND_LOSES:
        why = f"{_share(share)} are more than 1h ahead: too many for broken clocks; look at some"
        return None, Guess("source.max_ahead", "null", Certainty.TODO, why)
    why = (
        f"{_share(share)} of the sample are more than 1h ahead: one wrong clock would close windows"
    )
    return _AHEAD_MS, Guess("source.max_ahead", "1h", Certainty.LIKELY, why)


def _share(share: float) -> str:
    return percent(round(share * 10**6), 10**6)
