"""When thresholds were reached, if channels cannot go idle: by the records of each channel.

`T_c(b)` is the first instant at which the watermark of channel c is at least b: it follows from the
first record that offers b or more. This record arrived on the first day on which c offered b or
more, so only the cells of such days are read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.position.axis import ALL_SPLITS, Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import CellQuery, Timeline, instants_of
from strandline.engine.watermark.channels import ends_of
from strandline.engine.watermark.crossings import (
    ByChannels,
    Instants,
    Ranks,
    known_before,
    last_to_reach,
    never,
)
from strandline.model.intervals import DAY_MS, day_of, midnight_before, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_QUESTIONS_KEPT = 4
"""The number of recent queries whose cells are cached; the next query mostly needs part of them."""
_OFFERED = ("arrival_date", "channel", "threshold_ms", "first_arrival_ms", "first_sequence")
"""The columns of a cell that have when its channel offered its threshold."""


class _Highest(NamedTuple):
    """The largest thresholds, in ms, that a channel offered by each of its days.

    MIN_WATERMARK: none. `of_day_ms`: on the day itself; `reach_ms`: by the end of the day;
    `settled_ms`: by the end of the day, without watermarks that only a later tick emits.
    """

    midnights_ms: npt.NDArray[np.int64]
    of_day_ms: npt.NDArray[np.int64]
    reach_ms: npt.NDArray[np.int64]
    settled_ms: npt.NDArray[np.int64]

    def before(self, until_ms: int, offered: Literal["settled_ms", "reach_ms"]) -> int:
        """The largest threshold, in ms, of the days that begin before an instant."""
        days = int(np.searchsorted(self.midnights_ms, until_ms, side="left"))
        largest_ms = self.settled_ms if offered == "settled_ms" else self.reach_ms
        return int(largest_ms[days - 1]) if days else MIN_WATERMARK


_NOTHING_OFFERED = _Highest(*(np.empty(0, dtype=np.int64) for _ in range(4)))
_FirstReaching = tuple[npt.NDArray[np.int64], Instants]
"""Ascending thresholds, and the first instant at which each, or a higher one, was offered."""


@dataclass(frozen=True)
class RecordCrossings(ByChannels):
    """The crossings of a watermark that follows records, with channels that never go idle.

    Attributes:
        timeline: the observations below the horizon.
        spec: the pipeline.
        axis: the axis of instants.
    """

    from_cells = True
    timeline: Timeline
    spec: PipelineSpec
    axis: Axis
    _read: dict[date, tuple[int, pd.DataFrame]] = field(default_factory=dict, repr=False)
    _indexed: dict[tuple[frozenset[date], int], dict[str, _FirstReaching]] = field(
        default_factory=dict, repr=False
    )

    @property
    def merges_at_once(self) -> bool:
        """Whether channels are splits of one source, combined in one step at each position."""
        return self.spec.watermark.combine == "splits"

    def reached(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Instants, Ranks]:
        """See `Crossings.reached`."""
        beyond = never(len(thresholds), self.axis)
        if ended is not None:
            beyond[ended] = self.axis.end
        offers = self.seen_from(thresholds)
        if self.merges_at_once and not offers:
            # a source of splits ends by itself; a valve needs a channel that the end comes through
            return beyond, np.full(len(thresholds), ALL_SPLITS)
        latest, number = last_to_reach(offers, self.order.joined, beyond, horizon_ms, self.axis)
        if self.merges_at_once:
            number[:] = ALL_SPLITS
        return latest, number

    def seen_from(self, thresholds: Sequence[int]) -> list[Instants]:
        """`T_c(b)` for each channel c and threshold b: the first instant after it is reached."""
        wanted = np.asarray(thresholds, dtype=np.int64)
        if not len(wanted):
            return [never(0, self.axis) for _ in self.order.channels]
        first = self._first_reaching(self._days_reaching(wanted), int(wanted.min()))
        return [self._seen(first.get(channel), wanted) for channel in self.order.channels]

    def _seen(self, first: _FirstReaching | None, wanted: npt.NDArray[np.int64]) -> Instants:
        """The first instant at which a channel's watermark is at least each threshold."""
        instants = never(len(wanted), self.axis)
        if first is None:
            return instants
        thresholds, offered = first
        place = np.searchsorted(thresholds, wanted, side="left")
        reached = place < len(offered)
        instants[reached] = offered[place[reached]]
        return self.axis.all_seen_from(instants)

    def _first_reaching(self, days: set[date], least_ms: int) -> dict[str, _FirstReaching]:
        """When each channel first offered each threshold, by its cells of some days.

        A cached answer is used if it has these days, perhaps more, and no higher least threshold.
        """
        for (known_days, known_ms), found in list(self._indexed.items()):
            if days <= known_days and least_ms >= known_ms:
                return found
        cells = self._cells_reaching(days, least_ms).sort_values("threshold_ms")
        found = {
            str(channel): (
                of_channel["threshold_ms"].to_numpy(dtype="int64"),
                np.minimum.accumulate(instants_of(of_channel, self.axis)[::-1])[::-1],
            )
            for channel, of_channel in cells.groupby("channel")
        }
        self._indexed[frozenset(days), least_ms] = found
        self._forget()
        return found

    def _forget(self) -> None:
        """Drop all cached answers but the latest, so that a long range does not accumulate them."""
        for question in list(self._indexed)[:-_QUESTIONS_KEPT]:
            self._indexed.pop(question, None)
        kept = set().union(*(days for days, _ in list(self._indexed)))
        for day in set(self._read) - kept:
            self._read.pop(day, None)

    def _days_reaching(self, wanted: npt.NDArray[np.int64]) -> set[date]:
        """For each threshold and channel, the first day on which the channel offered it."""
        midnights: set[int] = set()
        for of_channel in self._highest.values():
            place = np.unique(np.searchsorted(of_channel.reach_ms, wanted, side="left"))
            offered = place[place < len(of_channel.midnights_ms)]
            midnights.update(of_channel.midnights_ms[offered].tolist())
        return {day_of(at) for at in midnights}

    def _offers(self) -> pd.DataFrame:
        """The largest threshold that each channel offered on each day, by day.

        `settled_ms`: without watermarks that only a later tick emits.
        """
        days, grid = self.timeline.channel_days, Grid.of(self.spec)
        midnights = {day: midnight_of(day) for day in days["arrival_date"].unique()}
        candidates = {
            "of_day_ms": days[["settled_ms", "pending_ms"]].max(axis=1),
            "settled_ms": days["settled_ms"],
        }
        offered = days[["channel"]].assign(
            midnight_ms=days["arrival_date"].map(midnights).astype("int64"),
            **{
                name: grid.largest_thresholds(of).fillna(MIN_WATERMARK).astype("int64")
                for name, of in candidates.items()
            },
        )
        return offered.sort_values("midnight_ms")

    @cached_property
    def _highest(self) -> dict[str, _Highest]:
        """For each channel, the largest thresholds that it has offered by the end of each day."""
        return {
            str(channel): _Highest(
                of_channel["midnight_ms"].to_numpy(),
                of_channel["of_day_ms"].to_numpy(),
                np.maximum.accumulate(of_channel["of_day_ms"].to_numpy()),
                np.maximum.accumulate(of_channel["settled_ms"].to_numpy()),
            )
            for channel, of_channel in self._offers().groupby("channel")
        }

    def _cells_reaching(self, days: Collection[date], least_ms: int) -> pd.DataFrame:
        """The cells of some days that reach a threshold; days in memory are not read again."""
        cached = {day: known for day in days if (known := self._read.get(day)) is not None}
        lacking = {day for day in days if day not in cached or cached[day][0] > least_ms}
        if lacking:
            read = self.timeline.cells(
                CellQuery(lacking, least_threshold_ms=least_ms, columns=_OFFERED)
            )
            of_day = dict(iter(read.groupby("arrival_date")))
            cached |= {day: (least_ms, of_day.get(day, read[:0])) for day in lacking}
            self._read.update(cached)
        found = [cells for _, cells in (cached[day] for day in sorted(days)) if len(cells)]
        if not found:
            return self.timeline.cells(CellQuery((), columns=_OFFERED))
        cells = pd.concat(found, ignore_index=True)
        return cells[cells["threshold_ms"] >= least_ms]

    def days_of_steps(self, horizon_ms: int) -> set[date]:
        """See `Crossings.days_of_steps`: the days on which channels are retired."""
        return {
            end.day for end in ends_of(self.spec, self.axis) if midnight_of(end.day) < horizon_ms
        }

    def watermark_reached(self, horizon_ms: int) -> int:
        """See `Crossings.watermark_reached`."""
        sure_ms, most_ms = self._bounds(horizon_ms)
        if sure_ms >= most_ms:
            return sure_ms
        # it advanced since the last midnight, or a tick at the horizon could still advance it
        beyond = (one.midnights_ms[one.of_day_ms > sure_ms] for one in self._highest.values())
        open_days = {day_of(at) for of_channel in beyond for at in of_channel.tolist()}
        cells = self._cells_reaching(open_days, sure_ms + 1)
        offered = np.unique(cells["threshold_ms"].to_numpy(dtype="int64"))
        asked = offered[offered <= most_ms]
        seen, _ = self.reached(asked.tolist(), horizon_ms)
        reached = asked[known_before(seen, horizon_ms, self.axis)]
        return int(reached[-1]) if len(reached) else sure_ms

    def _bounds(self, horizon_ms: int) -> tuple[int, int]:
        """A lower and an upper bound of the watermark at a horizon, from whole days alone.

        The watermark is the minimum over the channels that have joined. It is at least its value
        just before each later channel joined, since it never decreases.
        """
        order = self.order
        midnights = sorted({midnight_before(self.axis.arrival_of(at)) for at in order.joined[1:]})
        midnights = [] if self.spec.source.declared_channels is not None else midnights
        sure_ms = most_ms = MIN_WATERMARK
        for midnight_ms in [*(at for at in midnights if at < horizon_ms), None]:
            joined = order.channels
            if midnight_ms is not None:
                first_of = self.axis.first_of(midnight_ms)
                pairs = zip(order.channels, order.joined, strict=True)
                joined = tuple(name for name, at in pairs if at < first_of) or order.channels[:1]
            sure_until_ms = midnight_before(horizon_ms) if midnight_ms is None else midnight_ms
            most_until_ms = horizon_ms if midnight_ms is None else midnight_ms + DAY_MS
            sure_ms = max(sure_ms, self._least_of(joined, "settled_ms", sure_until_ms))
            most_ms = max(most_ms, self._least_of(joined, "reach_ms", most_until_ms))
        return sure_ms, most_ms

    def _least_of(
        self, channels: Sequence[str], offered: Literal["settled_ms", "reach_ms"], until_ms: int
    ) -> int:
        """The minimum of some channels' largest thresholds by a midnight; MIN_WATERMARK: none."""
        highest = (self._highest.get(channel, _NOTHING_OFFERED) for channel in channels)
        return min((one.before(until_ms, offered) for one in highest), default=MIN_WATERMARK)
