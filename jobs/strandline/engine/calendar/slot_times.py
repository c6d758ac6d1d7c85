"""The instants at which windows fire and close, as far as they are known at a horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.history.history import History
from strandline.engine.position.axis import END_RANK
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.crossings import Instants, Ranks
from strandline.model.lateness import MAX_WATERMARK

_NEVER_ENDED = np.iinfo(np.int64).max
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _EndOfInput:
    """The end of the input of some windows, by `--close`.

    Attributes:
        now: whether the input of a window ends at the horizon, channel by channel.
        at_ms: when the input as a whole ended, in ms; `_NEVER_ENDED`: it has not.
    """

    now: Mask
    at_ms: Longs

    @classmethod
    def of(cls, starts: Longs, clock: Clock) -> _EndOfInput:
        now = np.zeros(len(starts), dtype=bool)
        at_ms = np.full(len(starts), _NEVER_ENDED, dtype=np.int64)
        for closure in clock.closures:
            inside = (starts >= closure.windows.start_ms) & (starts < closure.windows.end_ms)
            if closure.at_ms == clock.horizon_ms and clock.by_channel:
                now |= inside
            elif closure.at_ms <= clock.horizon_ms:
                at_ms[inside] = closure.at_ms
        return cls(now, at_ms)

    @property
    def has_ended(self) -> Mask:
        return np.asarray(self.at_ms != _NEVER_ENDED)

    def known_ms(self, clock: Clock) -> pd.Series[Any]:
        """When the input of each window has ended, in ms; masked: it has not, up to the horizon."""
        at_ms = np.where(self.now & ~self.has_ended, clock.horizon_ms, self.at_ms)
        return pd.Series(at_ms, dtype="Int64").mask(at_ms == _NEVER_ENDED)


@dataclass(frozen=True)
class _Reached:
    """When the watermark reaches some thresholds, so that windows fire or close.

    Attributes:
        seen_from: the first instant whose records arrive after that.
        rank: the rank of the watermark advance at that instant; END_RANK: the input had ended.
        at_ms: the millisecond of the advance; masked: not before the horizon.
    """

    seen_from: Instants
    rank: Ranks
    at_ms: pd.Series[Any]


def slot_times(ids: Sequence[int], history: History, clock: Clock) -> pd.DataFrame:
    """When some windows fire and close, whether they have records or not.

    Returns:
        A row for each: `slot_end_ms`; `fire_from`, `close_from` (instants); `fire_rank` (the number
        of the channel that fires it, or END_RANK); `fire_at_ms`, `close_at_ms` (null: not yet);
        `ended_at_ms` (when the input ended; null: it has not); `state`.
    """
    windows, grid = np.asarray(ids, dtype=np.int64), history.grid
    ended = _EndOfInput.of(grid.starts_of(windows), clock)
    close_at = grid.close_thresholds(windows)
    never_cleaned = close_at == MAX_WATERMARK
    fires = _reached(grid.fire_thresholds(windows), ended, history, clock)
    closes = _reached(close_at, ended, history, clock, never=never_cleaned)
    # a window that is never cleaned up stays `fired`, but refuses records after its input has ended
    closed_at = closes.at_ms.mask(never_cleaned)
    state = np.where(closed_at.notna(), "closed", np.where(fires.at_ms.notna(), "fired", "open"))
    return pd.DataFrame(
        {
            "slot_end_ms": grid.ends_of(windows),
            "fire_from": fires.seen_from,
            "close_from": closes.seen_from,
            "fire_rank": fires.rank,
            "fire_at_ms": fires.at_ms,
            "close_at_ms": closed_at,
            "ended_at_ms": ended.known_ms(clock),
            "state": state.astype(object),
        }
    )


def _reached(
    thresholds: Longs,
    ended: _EndOfInput,
    history: History,
    clock: Clock,
    never: Mask | None = None,
) -> _Reached:
    """When the watermark reaches thresholds, or the input ends.

    `never`: whether each threshold cannot be reached at all, such as a cleanup time after all time.
    """
    axis = history.axis
    seen, rank = history.crossings.reached(thresholds.tolist(), clock.horizon_ms, ended.now)
    if never is not None:
        seen[never] = axis.never
    at = np.where(seen < axis.end, axis.event_ms(seen, rank), clock.horizon_ms - 1)
    at_ms = pd.Series(at.astype(np.int64), dtype="Int64").mask(seen == axis.never)
    for ended_ms in np.unique(ended.at_ms[ended.has_ended]).tolist():
        at_its_end = (ended.at_ms == ended_ms) & ~axis.happened_before(ended_ms, seen, rank)
        seen[at_its_end], rank[at_its_end] = axis.first_of(ended_ms), END_RANK
        at_ms[at_its_end] = ended_ms - 1
    return _Reached(seen, rank, at_ms)
