"""The watermark of a pipeline whose records are the results of another pipeline's windows.

As in one Flink job, the windows of the other pipeline forward their watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt

from strandline.engine import columns as c
from strandline.engine.frames import small_table
from strandline.engine.history.days_to_read import ranges_around
from strandline.engine.history.history import History, Upstream
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.timeline import Timeline
from strandline.engine.watermark.crossings import Crossings, Instants, Ranks
from strandline.engine.watermark_values.of_days import emissions
from strandline.model.intervals import EVERYTHING
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.chained import ResultsSpec


@dataclass(frozen=True)
class ForwardedCrossings(Crossings):
    """The crossings of the other pipeline, also for thresholds outside its grid: see `Crossings`.

    Attributes:
        upstream: the other pipeline.
    """

    upstream: Upstream
    _known: dict[tuple[int, bool], dict[int, tuple[int, int]]] = field(
        default_factory=dict, repr=False
    )

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`."""
        seen, number = self._own.reached(thresholds, horizon_ms, ended)
        ends = np.zeros(len(thresholds), dtype=bool) if ended is None else ended
        all_asked = np.asarray(thresholds, dtype=np.int64)
        unsure = self._unsure(all_asked, horizon_ms, ends)
        if unsure.any():
            asked = all_asked[unsure]
            found = self._looked_up(np.unique(asked), horizon_ms, closes=bool(ends.any()))
            never, end = self._axis.never, self._axis.end
            for place, threshold_ms in zip(np.flatnonzero(unsure), asked.tolist(), strict=True):
                at, rank = found[threshold_ms]
                seen[place] = end if at == never and ends[place] else at
                number[place] = rank
        return seen, number

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`: on the other pipeline's grid, so a lower bound."""
        return self._own.watermark_reached(horizon_ms)

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`."""
        return self._own.days_of_steps(horizon_ms)

    @property
    def drops_end(self) -> bool:
        """See `Crossings`."""
        return self._own.drops_end

    @property
    def _own(self) -> Crossings:
        return self.upstream.history.crossings

    @property
    def _axis(self) -> Axis:
        return self.upstream.history.axis

    def _unsure(
        self, thresholds: npt.NDArray[np.int64], horizon_ms: int, ends: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """The thresholds that have to be looked up among all values of the watermark, as a mask.

        They lie between two thresholds of the other pipeline's grid, which the watermark did not
        pass at once. Crossings that are made of steps answer for any threshold.
        """
        grid = self.upstream.history.grid
        if not self._own.from_cells:
            return np.zeros(len(thresholds), dtype=bool)
        step = grid.threshold_step_ms
        between = thresholds < MAX_WATERMARK - step
        for residue in grid.residues:
            between &= (thresholds - residue) % step != 0
        if not between.any():
            return between
        below = thresholds - (thresholds - grid.residues[0]) % step
        edges = np.where(between, below, 0), np.where(between, below + step, 0)
        (before, first), (after, last) = (
            self._own.reached(edge.tolist(), horizon_ms) for edge in edges
        )
        differs = (before != after) | (first != last) | ends
        return np.asarray(between & differs, dtype=bool)

    def _looked_up(
        self, thresholds: npt.NDArray[np.int64], horizon_ms: int, *, closes: bool
    ) -> dict[int, tuple[int, int]]:
        """When the watermark reaches some thresholds, from all its values around them.

        Answers are cached: there is a threshold for each timer of a slot of the range.
        """
        known = self._known.setdefault((horizon_ms, closes), {})
        asked = [one for one in thresholds.tolist() if one not in known]
        if asked:
            known |= self._looked_up_now(asked, horizon_ms, closes=closes)
        return known

    def _looked_up_now(
        self, thresholds: Sequence[int], horizon_ms: int, *, closes: bool
    ) -> dict[int, tuple[int, int]]:
        history = self.upstream.history
        ended = (Closure(EVERYTHING, horizon_ms),) if closes else ()
        clock = Clock(horizon_ms, ended, by_channel=True)
        days: set[date] = set()
        for within in ranges_around(thresholds):
            days.update(history.advance_days(within, clock))
        records = self.upstream.records
        emitted = emissions(records, history, clock, sorted(days))
        asked = small_table(records.sparkSession, {c.THRESHOLD: thresholds})
        rows = emitted.crossings(asked).select(c.THRESHOLD, c.SEEN_FROM, c.RANK)
        return {int(row[0]): (int(row[1]), int(row[2] or 0)) for row in rows.collect()}


def history_behind(spec: ResultsSpec, timeline: Timeline, upstream: Upstream) -> History:
    """The history of a pipeline whose records are the results of another pipeline.

    Args:
        spec: the pipeline.
        timeline: the observations of the results.
        upstream: the other pipeline.
    """
    crossings = ForwardedCrossings(upstream)
    return History(spec, upstream.history.axis, timeline, crossings, upstream)
