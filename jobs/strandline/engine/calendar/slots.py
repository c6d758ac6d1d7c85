"""The windows of some ranges, over all keys: their records, and when they fire and close."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.history.days_to_read import ranges_around
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid, Longs
from strandline.engine.timeline import CellQuery, concatenated
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    merged,
)

_COUNTED = ("arrival_date", "channel", "slot_ms", "least_ts_ms", "records")
"""The columns of a cell that determine its windows and count their records."""


@dataclass(frozen=True)
class Calendar:
    """The windows with records of some ranges, over all keys, up to a horizon.

    They are computed from the cells of the timeline, not from records. A record is counted in its
    newest window; a record between two windows in the window before.

    Attributes:
        history: everything observed below the horizon.
        clock: the horizon and the inputs that have ended.
        cells: all cells of the windows that will be queried, with their PANE and windows.
    """

    history: History
    clock: Clock
    cells: pd.DataFrame

    @classmethod
    def of(cls, history: History, clock: Clock, starts: Sequence[TimeRange]) -> Calendar:
        """The calendar of the windows that start in some ranges."""
        grid = history.grid
        disjoint = merged(starts, grid.reach_ms - 1)  # windows of two of them share no records
        parts = [history.cells_of(grid.events_of(within), _COUNTED) for within in disjoint]
        cells = (
            concatenated(*parts)
            if parts
            else history.timeline.cells(CellQuery((), columns=_COUNTED))
        )
        return cls(history, clock, with_windows(cells, history))

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Every window that has a record, or comes just before a record between two windows.

        Columns: `window_id`, `channels_heard` (the channels of its records), `records` (the number
        of records whose newest window it is).
        """
        cells = self.cells
        counted = cells.groupby("newest_window_id")["records"].sum()
        pairs = cells[["oldest_id", "newest_window_id", "channel"]].drop_duplicates()
        parts = [
            pairs[["newest_window_id", "channel"]].rename(columns={"newest_window_id": "window_id"})
        ]
        for channel, of_channel in pairs.groupby("channel"):
            oldest, newest = (
                of_channel[name].to_numpy("int64") for name in ("oldest_id", "newest_window_id")
            )
            ids = _ids_between(oldest, newest, self.history.grid.step_ms)
            parts.append(pd.DataFrame({"window_id": ids, "channel": channel}))
        every = pd.concat(parts).drop_duplicates().sort_values(["window_id", "channel"])
        windows = every.groupby("window_id")["channel"].agg(list).rename("channels_heard")
        table = windows.reset_index()
        table["records"] = table["window_id"].map(counted).fillna(0).astype("int64")
        return table

    def starting_in(self, within: TimeRange) -> pd.DataFrame:
        """The slots of the windows that start in a range, and when they fire and close.

        Columns: `window_id`, `channels_heard`, `records`, `slot_ms` (its start), and all of
        `slot_times`.
        """
        ids, windows = self.history.grid.ids_within(within), self.windows
        return self.slots((windows["window_id"] >= ids.start) & (windows["window_id"] < ids.stop))

    def slots(self, chosen: pd.Series[bool]) -> pd.DataFrame:
        """Some rows of `windows` in the form of `starting_in`."""
        slots = self.windows[chosen.astype(bool)].reset_index(drop=True)
        ids = slots["window_id"].astype("int64").to_numpy()
        slots["slot_ms"] = self.history.grid.starts_of(ids)
        return pd.concat([slots, slot_times(ids.tolist(), self.history, self.clock)], axis=1)

    def panes(self, slots: pd.DataFrame) -> pd.DataFrame:
        """The panes with a record whose newest window is one of some slots.

        Columns: `pane_ms`, `slot_ms`, `slot_end_ms`, `oldest_id`, `newest_window_id`; `missed` (how
        many windows it has; 0 between two windows); of the newest window: `close_from`,
        `ended_at_ms`.
        """
        panes = self.cells[["pane_ms", "oldest_id", "newest_window_id"]].drop_duplicates()
        newest = slots[["window_id", "slot_ms", "slot_end_ms", "close_from", "ended_at_ms"]]
        merged = panes.merge(newest, left_on="newest_window_id", right_on="window_id").drop(
            columns="window_id"
        )
        merged["missed"] = (
            merged["newest_window_id"] - merged["oldest_id"]
        ) // self.history.grid.step_ms + 1
        return merged

    def panes_within(self, within: TimeRange, slots: pd.DataFrame) -> pd.DataFrame:
        """The panes with a record of a window that starts in a range, and their windows in it.

        Columns: `pane_ms`, `oldest_id`, `newest_id` (inside the range), `newest_window_id` (inside
        or not); `sure_before`: the instant from which the oldest has fired; `newest_close_from`:
        the instant from which the newest window, inside or not, is closed.
        """
        ids = self.history.grid.ids_within(within)
        panes = self.cells[["pane_ms", "oldest_id", "newest_window_id"]].drop_duplicates()
        panes = panes[panes["oldest_id"] <= panes["newest_window_id"]]
        panes = panes[(panes["oldest_id"] < ids.stop) & (panes["newest_window_id"] >= ids.start)]
        newest = panes["newest_window_id"].unique()
        times = slot_times(newest.tolist(), self.history, self.clock)
        closes = times["close_from"].set_axis(newest)
        oldest = panes["oldest_id"].clip(lower=ids.start)
        return panes.assign(
            oldest_id=oldest,
            newest_id=panes["newest_window_id"].clip(upper=ids[-1] if len(ids) else ids.start),
            sure_before=slots.set_index("window_id")["fire_from"].reindex(oldest).to_numpy(),
            newest_close_from=closes.reindex(panes["newest_window_id"]).to_numpy(),
        )

    def late_days(self, slots: pd.DataFrame) -> list[date]:
        """The arrival days on which a record counted in these slots can be late.

        Such a day ends after the slot closes; a record between two windows can be late on any
        day.
        """
        closes = slots.set_index("window_id")["close_from"]
        cells = self.cells[self.cells["newest_window_id"].isin(closes.index)]
        first_after = {day: self.history.axis.end_of(day) for day in cells["arrival_date"].unique()}
        ends = cells["arrival_date"].map(first_after)
        late = ends.to_numpy() > closes.reindex(cells["newest_window_id"]).to_numpy()
        gap = (cells["oldest_id"] > cells["newest_window_id"]).to_numpy()
        return sorted(cells.loc[late | gap, "arrival_date"].unique())

    def least_delay(self, panes: pd.DataFrame) -> int | None:
        """The least delay, in ms from event time to arrival, of any late record of some `panes`.

        None: between two windows any record may be late.
        """
        if (panes["missed"] <= 0).any():
            return None
        axis, step_ms = self.history.axis, self.history.grid.step_ms
        ends = (panes["pane_ms"] + step_ms).tolist()
        closes = [axis.arrival_of(int(instant)) for instant in panes["close_from"]]
        # a window that never closes counts as closed after every arrival
        delays = (
            min(at, END_OF_INSTANTS_MS) - end + 1 for at, end in zip(closes, ends, strict=True)
        )
        return min(delays, default=END_OF_INSTANTS_MS)


def with_windows(cells: pd.DataFrame, history: History) -> pd.DataFrame:
    """Cells with their PANE and the ids of their oldest and their newest window."""
    grid = history.grid
    panes = grid.panes_of(cells["least_ts_ms"].to_numpy(dtype="int64"))
    oldest, newest = grid.windows_of_panes(panes)
    return cells.assign(pane_ms=panes, oldest_id=oldest, newest_window_id=newest)


@dataclass(frozen=True)
class OlderWindows:
    """The windows before a rebuilt range that have records which arrived since a midnight.

    Such a record may be late for them, also if its newest window starts in the range.

    Attributes:
        ids: the ids of the windows.
        records: the number of these records whose newest window starts before the range.
    """

    ids: frozenset[int] = frozenset()
    records: int = 0

    @classmethod
    def of(
        cls,
        history: History,
        before_ms: int,
        since_ms: int,
        too: Collection[int] = (),
        kept: Sequence[TimeRange] = (),
    ) -> OlderWindows:
        """The windows that start before an instant and have records that arrived since a midnight.

        Args:
            history: everything observed below the horizon.
            before_ms: the instant.
            since_ms: the midnight.
            too: the starts of further windows to include.
            kept: ranges of windows that stay as published: they are left out with their records.
        """

        def are_older(starts_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            return (starts_ms < before_ms) & ~starting_in(starts_ms, kept)

        grid = history.grid
        fresh = _cells_since(history, since_ms, before_ms)
        asked = (grid.ids_within(TimeRange(start, start + 1)) for start in too)
        every = _ids_of(fresh, grid).union(*asked)
        ids = np.array(sorted(every), dtype=np.int64)
        older = fresh[are_older(fresh["slot_ms"].to_numpy("int64"))]
        return cls(
            frozenset(ids[are_older(grid.starts_of(ids))].tolist()), int(older["records"].sum())
        )

    def starts(self, grid: Grid) -> list[TimeRange]:
        """Ranges that cover the starts of these windows; distant starts lie in separate ranges."""
        ids = np.array(sorted(self.ids), dtype=np.int64)
        return ranges_around(grid.starts_of(ids).tolist())


def _cells_since(history: History, since_ms: int, before_ms: int) -> pd.DataFrame:
    """The cells of records from a midnight on that may have missed a window before an instant."""
    end_ms = min(before_ms + history.grid.reach_ms, END_OF_INSTANTS_MS)
    near, days = TimeRange(LEAST_INSTANT_MS, end_ms), history.days.since(since_ms)
    return with_windows(
        history.timeline.cells(CellQuery(days, slots=near, columns=_COUNTED)), history
    )


def _ids_of(cells: pd.DataFrame, grid: Grid) -> set[int]:
    """The ids of all windows of the records of some cells, and of the windows that count them."""
    oldest, newest = (cells[name].to_numpy("int64") for name in ("oldest_id", "newest_window_id"))
    return {*newest.tolist(), *_ids_between(oldest, newest, grid.step_ms).tolist()}


def _ids_between(first: Longs, last: Longs, step: int) -> Longs:
    """The distinct numbers from each `first` to its `last` by a step; none where `last` is smaller.

    Needs memory for its input and result only, however much the ranges overlap.
    """
    present = first <= last
    order = np.argsort(first[present], kind="stable")
    firsts = first[present][order]
    lasts = np.maximum.accumulate(last[present][order])  # so that ranges that overlap end as one
    begins = np.append(True, firsts[1:] > lasts[:-1])[: len(firsts)]
    ends = np.append(begins[1:], True)[: len(firsts)]
    starts = firsts[begins]
    counts = (lasts[ends] - starts) // step + 1
    counts_before = np.cumsum(counts) - counts
    nth_in_range = np.arange(counts.sum()) - np.repeat(counts_before, counts)
    ids: Longs = np.repeat(starts, counts) + nth_in_range * step
    return ids


def starting_in(
    starts_ms: npt.NDArray[np.int64], ranges: Sequence[TimeRange]
) -> npt.NDArray[np.bool_]:
    """Whether each of some starts lies in one of some ranges."""
    inside = np.zeros(len(starts_ms), dtype=bool)
    for within in ranges:
        inside |= (starts_ms >= within.start_ms) & (starts_ms < within.end_ms)
    return inside
