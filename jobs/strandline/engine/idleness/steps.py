"""The steps of the combined watermark: the position and the value of each of its advances.

They are stored where channels can go idle. Then it is not enough to know when each channel reached
each threshold: whether a channel counts depends on its watermark relative to the combined one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.position.axis import Axis
from strandline.model.lateness import MIN_WATERMARK

STEP_COLUMNS = ("arrival_date", "seen_from", "until", "rank", "watermark_ms")


@dataclass(frozen=True)
class Steps:
    """The advances of the combined watermark before a horizon.

    Attributes:
        table: a row for each advance, in order; columns `STEP_COLUMNS`. A row whose `until` is a
            later tick stands for a run of ticks, on each of which the watermark advances with the
            clock.
        axis: the axis of instants.
        horizon_ms: the horizon.
        at_end: (rank, watermark) of the advances that the end of the input would cause.
    """

    table: pd.DataFrame
    axis: Axis
    horizon_ms: int
    at_end: tuple[tuple[int, int], ...] = ()

    def before(self, horizon_ms: int) -> Steps:
        """The steps that happened before a horizon, none of them by the end of the input there."""
        first, table = self.axis.first_of(horizon_ms), self.table
        seen, ranks = table["seen_from"].to_numpy(), table["rank"].to_numpy(dtype=np.int64)
        known = table[self.axis.happened_before(horizon_ms, seen, ranks)]
        runs_on = (known["until"] > known["seen_from"]) & (known["until"] >= first)
        if runs_on.any():
            last = self.axis.last_tick_before(horizon_ms)
            known = known.assign(until=known["until"].where(~runs_on, last))
        return replace(self, table=known, horizon_ms=horizon_ms, at_end=())

    def crossings(
        self, thresholds: Sequence[int], ended: npt.NDArray[np.bool_] | None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The `seen_from` and the rank of the step that reaches each threshold.

        `axis.never` where no step reaches it; `axis.end` where the input has `ended` first.
        """
        kind: Any = object if self.axis.sequenced else np.int64
        seen = np.full(len(thresholds), self.axis.never, dtype=kind)
        ranks = np.zeros(len(thresholds), dtype=np.int64)
        wanted = np.asarray(thresholds, dtype=np.int64)
        steps = np.searchsorted(highest_of(self.table), wanted, side="left")
        is_reached = steps < len(self.table)
        reaching = self.table.iloc[steps[is_reached]]
        seen[is_reached] = self._seen_from(reaching, wanted[is_reached])
        ranks[is_reached] = reaching["rank"].to_numpy()
        if ended is not None:
            for place in np.flatnonzero(~is_reached & ended):
                if (at_end := self._rank_at_end(wanted[place])) is not None:
                    seen[place], ranks[place] = self.axis.end, at_end
        return seen, ranks

    def _seen_from(self, reaching: pd.DataFrame, wanted: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The `seen_from` of each threshold, within a run of ticks the tick that reaches it."""
        first, value = reaching["seen_from"].to_numpy(), reaching["watermark_ms"].to_numpy()
        missing_ms = np.maximum(wanted, value) - value
        interval_ms = self.axis.interval_ms or 1
        ticks = -(-missing_ms // interval_ms)
        return np.asarray(first + ticks * interval_ms)

    def _rank_at_end(self, threshold_ms: int) -> int | None:
        """The rank of the step by which the input's end reaches a threshold; None: it does not."""
        return next((rank for rank, reached in self.at_end if reached >= threshold_ms), None)

    @property
    def watermark_ms(self) -> int:
        """The combined watermark after the last step; MIN_WATERMARK: none yet."""
        return int(highest_of(self.table[-1:]).max(initial=MIN_WATERMARK))


def highest_of(steps: pd.DataFrame) -> npt.NDArray[np.int64]:
    """The watermark at the end of each step: within a run of ticks it advances with the clock."""
    run_on = steps["until"].to_numpy() - steps["seen_from"].to_numpy()
    return np.asarray(steps["watermark_ms"].to_numpy() + run_on, dtype=np.int64)


def steps_to(steps: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Steps with the timeline's column names; instants as an arrival and a sequence."""
    first, until = steps["seen_from"].tolist(), steps["until"].tolist()
    return pd.DataFrame(
        {
            "arrival_date": steps["arrival_date"],
            "first_arrival_ms": [axis.arrival_of(instant) for instant in first],
            "first_sequence": pd.array([axis.sequence_of(i) for i in first], dtype="Int64"),
            "until_arrival_ms": [axis.arrival_of(instant) for instant in until],
            "rank": steps["rank"],
            "watermark_ms": steps["watermark_ms"],
        }
    )


def steps_from(rows: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """The timeline's rows as steps, in order; only tick runs have an `until`, and no sequence."""
    arrivals = rows["first_arrival_ms"].astype("int64")
    first = until = arrivals
    if axis.sequenced:
        pairs = zip(arrivals.tolist(), rows["first_sequence"].tolist(), strict=True)
        first = pd.Series([axis.instant(a, int(s)) for a, s in pairs], dtype=object)
        until = first
    else:
        until = rows["until_arrival_ms"].astype("int64")
    steps = rows.assign(seen_from=first, until=until, rank=rows["rank"].astype("int64"))
    steps["watermark_ms"] = steps["watermark_ms"].astype("int64")
    return steps[list(STEP_COLUMNS)].sort_values(["seen_from", "rank"], ignore_index=True)


def step_rows(
    seen_from: npt.NDArray[Any],
    rank: npt.NDArray[Any],
    watermark_ms: npt.NDArray[Any],
    until: npt.NDArray[Any] | None = None,
) -> pd.DataFrame:
    """Steps as rows; the arrival day is filled in later.

    Args:
        seen_from: the first instant after each step.
        rank: the order at one instant.
        watermark_ms: the value to which the combined watermark advances.
        until: the last tick of a run of ticks; None: each step is one advance.
    """
    columns = (None, seen_from, seen_from if until is None else until, rank, watermark_ms)
    return pd.DataFrame(dict(zip(STEP_COLUMNS, columns, strict=True)))
