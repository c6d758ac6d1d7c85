"""What has been observed: crossings, the day map and the records of every slot, on the driver.

Its size is that of the cells (arrival days x channels x the slots and thresholds they touch),
never that of the records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine import columns as c
from strandline.engine.idleness.steps import Steps
from strandline.engine.position.axis import ALL_SPLITS, Axis
from strandline.engine.position.grid import Grid, gap_of, ids_between
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    midnight_of,
)
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Session

CELL_COLUMNS = (
    "arrival_date",
    "reason",
    "channel",
    "event_date",
    "slot_ms",
    "threshold_ms",
    "pending",
    "records",
    "least_ts_ms",
    "largest_ts_ms",
    "largest_end_ms",
    "largest_candidate_ms",
    "first_arrival_ms",
    "first_sequence",
)


@dataclass(frozen=True)
class Closure:
    """The input of the windows that start in a range has ended at an instant: MAX_WATERMARK."""

    windows: TimeRange
    at_ms: int


@dataclass(frozen=True)
class Clock:
    """What a run knows: arrivals and ticks before the horizon, and which input has ended."""

    horizon_ms: int
    closures: tuple[Closure, ...] = ()

    @property
    def closes_now(self) -> bool:
        """Whether some input ends at the horizon itself."""
        return any(closure.at_ms == self.horizon_ms for closure in self.closures)


def cells_from(observed: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """The cells that `observe` counted, under the timeline's names."""
    first = observed[c.FIRST_INSTANT]
    known = [None if pd.isna(instant) else int(instant) for instant in first]
    return pd.DataFrame(
        {
            "arrival_date": observed[c.ARRIVAL_DAY],
            "reason": observed[c.REASON],
            "channel": observed[c.CHANNEL],
            "event_date": observed[c.EVENT_DATE],
            "slot_ms": observed[c.SLOT].astype("Int64"),
            "threshold_ms": observed[c.THRESHOLD].astype("Int64"),
            "pending": observed[c.PENDING].astype("boolean"),
            "records": observed[c.RECORDS].astype("int64"),
            "least_ts_ms": observed[c.LEAST_TS].astype("Int64"),
            "largest_ts_ms": observed[c.LARGEST_TS].astype("Int64"),
            "largest_end_ms": observed[c.LARGEST_END].astype("Int64"),
            "largest_candidate_ms": observed[c.LARGEST_CANDIDATE].astype("Int64"),
            "first_arrival_ms": pd.array(
                [None if i is None else axis.arrival_of(i) for i in known], dtype="Int64"
            ),
            "first_sequence": pd.array(
                [None if i is None else axis.sequence_of(i) for i in known], dtype="Int64"
            ),
        },
        columns=list(CELL_COLUMNS),
    )


class History:
    """The cells of some arrival days, and the questions that a run asks of them."""

    def __init__(
        self,
        cells: pd.DataFrame,
        spec: PipelineSpec,
        axis: Axis,
        discovered: tuple[str, ...] | None = None,
        steps: Steps | None = None,
    ) -> None:
        """Keep the cells (columns: `CELL_COLUMNS`) of every arrival day that a run may read.

        `discovered`: the discovered channels in probe order, where that is already known.
        `steps`: of the combined watermark, where channels can go idle; else the cells tell it.
        """
        self.cells = cells
        self.spec = spec
        self.axis = axis
        self.grid = Grid.of(spec)
        self.steps = steps
        self._discovered = discovered

    @cached_property
    def well_formed(self) -> pd.DataFrame:
        """The cells of well-formed records, with their first instant and their windows."""
        cells = self.cells[self.cells["reason"].isna()].copy()
        arrivals = cells["first_arrival_ms"].astype("int64").to_numpy()
        if self.axis.sequenced:
            pairs = zip(arrivals.tolist(), cells["first_sequence"].tolist(), strict=True)
            cells["instant"] = pd.Series(
                [self.axis.instant(a, int(s)) for a, s in pairs], index=cells.index, dtype=object
            )
        else:
            cells["instant"] = arrivals
        cells["slot_ms"] = cells["slot_ms"].astype("int64")
        cells["pane_ms"] = self.grid.panes_of(cells["least_ts_ms"].astype("int64").to_numpy())
        cells["oldest_id"], cells["home_id"] = self.grid.windows_of_panes(
            cells["pane_ms"].to_numpy()
        )
        return cells

    @cached_property
    def malformed_days(self) -> set[date | None]:
        """The arrival days that hold a malformed row; None: such as have no arrival day."""
        days = self.cells.loc[self.cells["reason"].notna(), "arrival_date"]
        return {None if pd.isna(day) else day for day in days}

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """The channels in probe order: as declared, or by first instant and name."""
        given = self.spec.source.declared_channels or self._discovered
        if given is not None:
            return given
        first = self.well_formed.groupby("channel")["instant"].min()
        return tuple(sorted(first.index, key=lambda channel: (first[channel], channel)))

    @cached_property
    def joined(self) -> list[int]:
        """The instant from which each channel takes part: always, or its first record's."""
        if self.spec.source.declared_channels is not None:
            return [-self.axis.never] * len(self.channels)
        first = self.well_formed.groupby("channel")["instant"].min()
        return [int(first[channel]) for channel in self.channels]

    def seen_from(self, thresholds: Sequence[int]) -> list[npt.NDArray[Any]]:
        """`T_c(b)` of each channel at each threshold, as the first instant that sees it."""
        if self.spec.watermark.goes_by_the_clock:
            return self._seen_by_the_clock(thresholds)
        result = []
        wanted = np.asarray(thresholds, dtype=np.int64)
        reached = self.well_formed.dropna(subset=["threshold_ms"])
        groups = dict(iter(reached.groupby("channel")))
        for channel in self.channels:
            cells = groups.get(channel)
            if cells is None:
                result.append(self._filled(len(wanted)))
                continue
            cells = cells.sort_values("threshold_ms")
            steps = cells["threshold_ms"].astype("int64").to_numpy()
            first = np.minimum.accumulate(cells["instant"].to_numpy()[::-1])[::-1]
            place = np.searchsorted(steps, wanted, side="left")
            instants = self._filled(len(wanted))
            instants[place < len(first)] = first[place[place < len(first)]]
            result.append(self.axis.all_seen_from(instants))
        return result

    def _seen_by_the_clock(self, thresholds: Sequence[int]) -> list[npt.NDArray[Any]]:
        """The same where ticks alone decide: of a discovered channel, those after it has joined."""
        lag_ms = self.spec.watermark.lag_ms or 0
        splits = self.spec.watermark.combine == "splits"
        joined = [self.clock_starts_after] if splits else self.joined
        return [
            np.array(
                [self.axis.first_tick_reaching(b, lag_ms, after_ms=at) for b in thresholds],
                dtype=self._instants,
            )
            for at in joined
        ]

    def _filled(self, length: int) -> npt.NDArray[Any]:
        return np.full(length, self.axis.never, dtype=self._instants)

    @property
    def _instants(self) -> Any:
        return object if self.axis.sequenced else np.int64

    def crossings(
        self,
        thresholds: Sequence[int],
        horizon_ms: int,
        ended: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """`T(b)` at each threshold: the first instant that sees it, and the channel's number.

        Never, where the combined watermark does not reach the threshold before the horizon; the
        end, where it does not but the input has `ended`.
        """
        if self.steps is not None:
            return self.known_steps(horizon_ms).crossings(thresholds, ended)
        beyond = self._filled(len(thresholds))
        if ended is not None:
            beyond[ended] = self.axis.end
        latest, number = self._filled(len(thresholds)), np.zeros(len(thresholds), dtype=np.int64)
        if self.ends_without_channels:
            latest = beyond
        settled = np.zeros(len(thresholds), dtype=bool)
        running: npt.NDArray[Any] | None = None
        offers = self.seen_from(thresholds)
        joining = [*self.joined[1 : len(offers)], self.axis.never][: len(offers)]
        for channel, (seen, next_joined) in enumerate(zip(offers, joining, strict=True)):
            known = np.where(self._known(seen, horizon_ms), seen, beyond)
            moved = np.ones(len(known), dtype=bool) if running is None else known >= running
            running = known if running is None else np.maximum(running, known)
            number = np.where(~settled & moved, channel, number)
            # a channel that joins later cannot take back what the ones before it have passed
            newly = ~settled & (running <= next_joined)
            latest = np.where(newly, running, latest)
            settled |= newly
        if self.spec.watermark.combine == "splits":  # all splits of a moment are merged at once
            number[:] = ALL_SPLITS
        return latest, number

    def known_steps(self, horizon_ms: int) -> Steps:
        """The steps before a horizon, where channels can go idle.

        Raises:
            TypeError: they cannot: there are none.
        """
        if self.steps is None:
            msg = f"{self.spec.pipeline} has no steps"
            raise TypeError(msg)
        return self.steps if horizon_ms >= self.steps.horizon_ms else self.steps.before(horizon_ms)

    def heard_by(self, clock: Clock) -> Clock:
        """The clock without an end of the input at its horizon that an idle source swallows."""
        if self.steps is None or self.steps.at_end or not self.channels:
            return clock
        before = tuple(one for one in clock.closures if one.at_ms != clock.horizon_ms)
        return replace(clock, closures=before)

    def _known(self, seen: npt.NDArray[Any], horizon_ms: int) -> npt.NDArray[np.bool_]:
        limit = min(self.axis.known_below(horizon_ms), self.axis.end)
        return np.asarray(seen < limit, dtype=bool)

    def slots(self, within: TimeRange, clock: Clock) -> pd.DataFrame:
        """The windows of a range that have a record, over all keys, or that are a record's home.

        A record's home is its newest window; in a gap between windows it is the one before.
        Columns: `window_id`, `slot_ms` (its start), `records` (at home in it), `channels_heard`,
        and those of `placed`.
        """
        ids = self.grid.ids_within(within)
        windows = self._windows
        chosen = windows[(windows["window_id"] >= ids.start) & (windows["window_id"] < ids.stop)]
        return self._slots(chosen, clock)

    def older_slots(
        self,
        before_ms: int,
        since_ms: int | None,
        clock: Clock,
        *,
        too: Collection[int] = (),
    ) -> pd.DataFrame:
        """The windows before an instant of records that arrived on later days.

        A late record whose home is in a range may have missed windows that start before it.

        Args:
            before_ms: the instant.
            since_ms: the midnight of the first of these days; None: none of these windows.
            clock: what is known.
            too: starts of further windows before the instant that are asked for.
        """
        windows, cells = self._windows, self.well_formed
        if since_ms is None:
            return self._slots(windows[:0], clock)
        fresh = cells[cells["arrival_date"].map(midnight_of) >= since_ms]
        oldest, home = (fresh[name].to_numpy("int64") for name in ("oldest_id", "home_id"))
        of_records = {*home.tolist(), *ids_between(oldest, home, self.grid.step_ms).tolist()}
        starts = pd.Series(self.grid.starts_of(windows["window_id"].to_numpy()), windows.index)
        asked = windows["window_id"].isin(of_records) | starts.isin(list(too))
        return self._slots(windows[asked & (starts < before_ms)], clock)

    def older_records(self, before_ms: int, since_ms: int) -> int:
        """The records of windows before an instant that arrived on days from `since_ms` on."""
        starts, days = self.well_formed["slot_ms"], self.well_formed["arrival_date"]
        chosen = (starts < before_ms) & (days.map(midnight_of) >= since_ms)
        return int(self.well_formed.loc[chosen, "records"].sum())

    def oldest_slot_of_arrivals(self, since_ms: int | None, until_ms: int) -> int:
        """The start of the oldest window, or home, of what arrived on the days of a range.

        The end of all instants, if nothing did. `since_ms`: None: from the beginning.
        """
        cells = self.well_formed
        arrived = cells["arrival_date"].map(midnight_of)
        first_ms = LEAST_INSTANT_MS if since_ms is None else since_ms
        return self.oldest_slot_of(cells[(arrived >= first_ms) & (arrived < until_ms)])

    def oldest_slot_of(self, cells: pd.DataFrame) -> int:
        """The same of the records of some cells.

        Of a record in a gap between windows its home is older than any window.
        """
        if not len(cells):
            return END_OF_INSTANTS_MS
        oldest_ms = int(self.grid.starts_of(cells["oldest_id"].to_numpy()).min())
        return min(oldest_ms, int(cells["slot_ms"].min()))

    def events_of(self, within: TimeRange) -> TimeRange:
        """The event times of the records that windows which start in a range are made of."""
        if isinstance(self.spec.window, Session):
            return TimeRange(self.first_reaching(within.start_ms), self.last_end(within.end_ms))
        end_ms = min(within.end_ms + self.grid.size_ms, END_OF_INSTANTS_MS)
        return TimeRange(within.start_ms, end_ms)

    def first_start_after(self, ts_ms: int) -> int:
        """Where the windows begin that start behind every window of an event time.

        Of sessions the first slot behind any that a record of that time can be in by itself.
        """
        if isinstance(self.spec.window, Session):
            end_ms = self.last_end(ts_ms + 1)
            return end_ms + (self.grid.offset_ms - end_ms) % self.grid.step_ms
        return int(self.grid.newest_starts(np.array([ts_ms]))[0]) + self.grid.span_ms

    @property
    def windows_with_records(self) -> npt.NDArray[Any]:
        """The ids of all windows of the whole history that have a record."""
        windows = self._windows
        ids: npt.NDArray[Any] = windows.loc[windows["has_record"], "window_id"].to_numpy()
        return ids

    @cached_property
    def _windows(self) -> pd.DataFrame:
        """Every window that has a record or is one's home: `window_id`, `records`, `channels`."""
        cells = self.well_formed
        homes = cells.groupby("home_id")["records"].sum()
        pairs = cells[["oldest_id", "home_id", "channel"]].drop_duplicates()
        heard = [pairs[["home_id", "channel"]].rename(columns={"home_id": "window_id"})]
        for channel, of_channel in pairs.groupby("channel"):
            oldest, home = (of_channel[name].to_numpy("int64") for name in ("oldest_id", "home_id"))
            ids = ids_between(oldest, home, self.grid.step_ms)
            heard.append(pd.DataFrame({"window_id": ids, "channel": channel}))
        every = pd.concat(heard).drop_duplicates().sort_values(["window_id", "channel"])
        windows = every.groupby("window_id")["channel"].agg(list).rename("channels_heard")
        table = windows.reset_index()
        table["records"] = table["window_id"].map(homes).fillna(0).astype("int64")
        in_gaps = cells.loc[cells["oldest_id"] > cells["home_id"], "home_id"].unique()
        filled = pairs[pairs["oldest_id"] <= pairs["home_id"]]
        table["has_record"] = ~table["window_id"].isin(in_gaps) | table["window_id"].isin(
            filled["home_id"].unique()
        )
        return table

    def _slots(self, windows: pd.DataFrame, clock: Clock) -> pd.DataFrame:
        slots = windows.drop(columns="has_record").reset_index(drop=True)
        ids = slots["window_id"].astype("int64").to_numpy()
        slots["slot_ms"] = self.grid.starts_of(ids)
        return pd.concat([slots, self.placed(ids.tolist(), clock)], axis=1)

    def panes(self, slots: pd.DataFrame) -> pd.DataFrame:
        """The panes with a record whose home is one of some slots, as records are to meet them.

        Columns: `pane_ms`, `slot_ms`, `slot_end_ms`, `oldest_id`, `home_id`; `missed` (how many
        windows it has; 0 in a gap); of the home: `close_from`, `ended_at_ms`.
        """
        panes = self.well_formed[["pane_ms", "oldest_id", "home_id"]].drop_duplicates()
        homes = slots[["window_id", "slot_ms", "slot_end_ms", "close_from", "ended_at_ms"]]
        met = panes.merge(homes, left_on="home_id", right_on="window_id").drop(columns="window_id")
        met["missed"] = (met["home_id"] - met["oldest_id"]) // self.grid.step_ms + 1
        return met

    def panes_within(self, within: TimeRange, slots: pd.DataFrame, clock: Clock) -> pd.DataFrame:
        """The panes with a record of a window that starts in a range, and those of their windows.

        Columns: `pane_ms`, `oldest_id`, `newest_id` (inside the range), `home_id`; `sure_before`:
        where the oldest fires; `home_close_from`: where the home, inside or not, closes.
        """
        ids, cells = self.grid.ids_within(within), self.well_formed
        panes = cells[["pane_ms", "oldest_id", "home_id"]].drop_duplicates()
        panes = panes[panes["oldest_id"] <= panes["home_id"]]
        panes = panes[(panes["oldest_id"] < ids.stop) & (panes["home_id"] >= ids.start)]
        homes = panes["home_id"].unique()
        closes = self.placed(homes.tolist(), clock)["close_from"].set_axis(homes)
        oldest = panes["oldest_id"].clip(lower=ids.start)
        return panes.assign(
            oldest_id=oldest,
            newest_id=panes["home_id"].clip(upper=ids[-1] if len(ids) else ids.start),
            sure_before=slots.set_index("window_id")["fire_from"].reindex(oldest).to_numpy(),
            home_close_from=closes.reindex(panes["home_id"]).to_numpy(),
        )

    def ahead(self, clock: Clock) -> pd.DataFrame:
        """Before which instant a record has come before the watermark had reached its time.

        Columns: `part_ms` (the start of each part of a slot that has a record), `ahead_before`.
        """
        parts = np.unique(self._parts)
        seen, _ = self.crossings((parts - 1).tolist(), clock.horizon_ms)
        return pd.DataFrame({"part_ms": parts, "ahead_before": seen})

    def behind_days(self, clock: Clock) -> list[date]:
        """The arrival days on which a record may not be ahead of the watermark."""
        ahead = self.ahead(clock).set_index("part_ms")["ahead_before"]
        days = self.well_formed["arrival_date"]
        ends = days.map(lambda day: self.axis.first_of(midnight_of(day) + DAY_MS))
        return sorted(days[ends.to_numpy() > ahead.reindex(self._parts).to_numpy()].unique())

    @property
    def _parts(self) -> npt.NDArray[np.int64]:
        least, part_ms = self.well_formed["least_ts_ms"], self.grid.threshold_step_ms
        times = least.astype("int64").to_numpy()
        parts: npt.NDArray[np.int64] = times - (times - self.grid.offset_ms) % part_ms
        return parts

    def rise_days(self, within: TimeRange, clock: Clock) -> list[date]:
        """The days on which the watermark can reach a value of a range."""
        days = set(self.well_formed["arrival_date"])
        if self.steps is not None:
            known = self.known_steps(clock.horizon_ms).table["seen_from"].to_numpy()
            numbers = np.unique(known // (self.axis.scale * DAY_MS))
            days |= {day_of(int(number) * DAY_MS) for number in numbers}
        if self.axis.ticks is not None:
            ends = [midnight_of(day) + DAY_MS - 1 for day in days]
            ticks = [self.axis.ticks.after(end) for end in ends]
            days |= {day_of(tick) for tick in ticks if tick < clock.horizon_ms}
        last = within.end_ms + self.grid.threshold_step_ms
        edges = self.grid.edges_around(TimeRange(within.start_ms, last))
        (first, last), _ = self.crossings(edges, clock.horizon_ms)
        rising = {
            day
            for day in days
            if self.axis.first_of(midnight_of(day)) <= last
            and self.axis.first_of(midnight_of(day) + DAY_MS) >= first
        }
        if clock.closes_now:  # as the channels end one by one, it rises to what the others offer
            rising.add(day_of(clock.horizon_ms - 1))
        return sorted(rising)

    def days_of_events(self, within: TimeRange) -> list[date]:
        """The arrival days that hold records with an event time in a range."""
        cells = self.well_formed
        inside = (cells["largest_ts_ms"] >= within.start_ms) & (
            cells["least_ts_ms"] < within.end_ms
        )
        return sorted(cells.loc[inside.astype(bool), "arrival_date"].unique())

    def first_reaching(self, instant_ms: int) -> int:
        """The least event time of records whose session alone ends at or after an instant.

        As the cells tell it: not later than it is. The instant itself, if none ends there.
        """
        gap_ms = gap_of(self.spec)
        if gap_ms is not None:
            return max(instant_ms - gap_ms, LEAST_INSTANT_MS)
        cells = self.well_formed
        least = cells.loc[self._ends >= instant_ms, "least_ts_ms"].min()
        return instant_ms if pd.isna(least) else min(instant_ms, int(least))

    def last_end(self, before_ms: int) -> int:
        """No record of an event time before an instant has a session that alone ends later."""
        gap_ms = gap_of(self.spec)
        if gap_ms is not None:
            return min(before_ms + gap_ms, END_OF_INSTANTS_MS)
        begun = self.well_formed["least_ts_ms"].astype("int64") < before_ms
        return max([before_ms, *self._ends[begun].tolist()])

    @property
    def _ends(self) -> pd.Series[int]:
        """The largest end of each well-formed cell; what an older timeline does not tell: any."""
        return self.well_formed["largest_end_ms"].fillna(END_OF_INSTANTS_MS).astype("int64")

    def late_days(self, slots: pd.DataFrame) -> list[date]:
        """The arrival days on which a record at home in these slots can be refused.

        They end after the home's close; in a gap between windows every day counts.
        """
        closes = slots.set_index("window_id")["close_from"]
        cells = self.well_formed[self.well_formed["home_id"].isin(closes.index)]
        ends = cells["arrival_date"].map(lambda d: self.axis.first_of(midnight_of(d) + DAY_MS))
        late = ends.to_numpy() > closes.reindex(cells["home_id"]).to_numpy()
        gap = (cells["oldest_id"] > cells["home_id"]).to_numpy()
        return sorted(cells.loc[late | gap, "arrival_date"].unique())

    def least_delay(self, panes: pd.DataFrame) -> int | None:
        """How many ms after its event time every late record of some `panes` has come, at least.

        None: in a gap between windows any record may be late.
        """
        if (panes["missed"] <= 0).any():
            return None
        ends = (panes["pane_ms"] + self.grid.step_ms).tolist()
        closes = [self.axis.arrival_of(int(instant)) for instant in panes["close_from"]]
        # what never closes does so after every arrival
        delays = (
            min(at, END_OF_INSTANTS_MS) - end + 1 for at, end in zip(closes, ends, strict=True)
        )
        return min(delays, default=END_OF_INSTANTS_MS)

    def placed(self, ids: Sequence[int], clock: Clock) -> pd.DataFrame:
        """Where some windows fire and close, as of a clock.

        Columns: `slot_end_ms`; `fire_from`, `close_from` (instants); `fire_rank` (the number of the
        channel that fires it); `fire_at_ms`, `close_at_ms` (null: not yet); `ended_at_ms` (where
        the input had ended before the horizon); `state`.
        """
        grid, axis = self.grid, self.axis
        windows = np.asarray(ids, dtype=np.int64)
        starts = grid.starts_of(windows).tolist()
        ended = np.zeros(len(starts), dtype=bool)
        closed_before: list[int | None] = [None] * len(starts)
        for closure in clock.closures:
            for place, start in enumerate(starts):
                if start in closure.windows and closure.at_ms == clock.horizon_ms:
                    ended[place] = True
                elif start in closure.windows and closure.at_ms < clock.horizon_ms:
                    closed_before[place] = closure.at_ms
        close_thresholds = [grid.close_threshold(window) for window in ids]
        fire_thresholds = [grid.fire_threshold(window) for window in ids]
        fire, rank = self.crossings(fire_thresholds, clock.horizon_ms, ended)
        close, close_rank = self.crossings(close_thresholds, clock.horizon_ms, ended)
        never_cleaned = [threshold == MAX_WATERMARK for threshold in close_thresholds]
        close[np.array(never_cleaned, dtype=bool)] = axis.never
        fired, closed = (
            [self._bounded(p, int(r), at, clock) for p, r, at in zip(*found, strict=True)]
            for found in ((fire, rank, closed_before), (close, close_rank, closed_before))
        )
        # what is never cleaned is late after an end of input all the same, but stays fired
        close_at = [
            None if kept else at for (_, at), kept in zip(closed, never_cleaned, strict=True)
        ]
        return pd.DataFrame(
            {
                "slot_end_ms": grid.ends_of(windows),
                "fire_from": pd.array([seen for seen, _ in fired], dtype=self._instants),
                "close_from": pd.array([seen for seen, _ in closed], dtype=self._instants),
                "fire_rank": rank,
                "fire_at_ms": pd.array([at for _, at in fired], dtype="Int64"),
                "close_at_ms": pd.array(close_at, dtype="Int64"),
                "ended_at_ms": pd.array(closed_before, dtype="Int64"),
                "state": [
                    "closed" if at is not None else "fired" if fire_at is not None else "open"
                    for (_, fire_at), at in zip(fired, close_at, strict=True)
                ],
            }
        )

    def _bounded(
        self, seen: int, rank: int, ended_ms: int | None, clock: Clock
    ) -> tuple[int, int | None]:
        """A crossing and its millisecond; at the latest where the input had ended before now."""
        seen = int(seen)
        if ended_ms is not None and seen >= self.axis.known_below(ended_ms):
            return self.axis.first_of(ended_ms), ended_ms - 1
        if seen == self.axis.never:
            return seen, None
        if seen == self.axis.end:
            return seen, clock.horizon_ms - 1
        return seen, self.axis.event_ms(seen, rank)

    def watermark_reached(self, horizon_ms: int) -> int:
        """The largest threshold of the grid that the watermark has reached at a horizon.

        As good as the watermark itself where it is compared with thresholds; MIN: none.
        """
        if self.steps is not None:
            return self.known_steps(horizon_ms).watermark_ms
        if self.spec.watermark.goes_by_the_clock:
            return self.clock_watermark(horizon_ms)
        thresholds = np.unique(self.well_formed["threshold_ms"].dropna().astype("int64").to_numpy())
        if not len(thresholds):
            return MIN_WATERMARK
        seen, _ = self.crossings(thresholds.tolist(), horizon_ms)
        reached = thresholds[self._known(seen, horizon_ms)]
        return int(reached.max()) if len(reached) else MIN_WATERMARK

    @property
    def ends_without_channels(self) -> bool:
        """Whether no channel has been heard of, and an end of input counts all the same.

        A source of splits emits it by itself; a valve needs a channel that it comes through.
        """
        return self.spec.watermark.combine == "splits" and not self.channels

    @property
    def clock_starts_after(self) -> int:
        """Ticks after this one give a watermark where they alone decide: there is a channel.

        A source of splits has a main output that offers, too, and that needs no split.
        """
        if self.spec.watermark.combine == "splits":
            return self.axis.start_ms
        return max(self.axis.start_ms, self.joined[0]) if self.joined else self.axis.never

    def clock_watermark(self, instant_ms: int) -> int:
        """The watermark before an instant where ticks alone decide; MIN_WATERMARK: none yet."""
        tick = self.axis.last_tick_before(instant_ms)
        if tick <= self.clock_starts_after:
            return MIN_WATERMARK
        return max(tick - (self.spec.watermark.lag_ms or 0), MIN_WATERMARK)

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """For each (arrival date, event date): records, least and largest event time."""
        return (
            self.well_formed.groupby(["arrival_date", "event_date"])
            .agg(
                records=("records", "sum"),
                least_ts_ms=("least_ts_ms", "min"),
                largest_ts_ms=("largest_ts_ms", "max"),
            )
            .reset_index()
        )

    def arrival_days(self, within: TimeRange) -> list[date]:
        """The arrival days that hold records of windows that start in a range."""
        ids, cells = self.grid.ids_within(within), self.well_formed
        has_one = (cells["oldest_id"] < ids.stop) & (cells["home_id"] >= ids.start)
        windowed = cells["oldest_id"] <= cells["home_id"]
        return sorted(cells.loc[has_one & windowed, "arrival_date"].unique())

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """Per arrival day and channel: the largest candidate settled by midnight, and pending."""
        cells = self.well_formed
        largest = cells.assign(
            candidate=cells["largest_candidate_ms"], pending=cells["pending"].astype(bool)
        ).dropna(subset=["candidate"])
        table = largest.pivot_table(
            index=["arrival_date", "channel"], columns="pending", values="candidate", aggfunc="max"
        )
        return (
            table.reindex(columns=[False, True])
            .rename(columns={False: "settled_ms", True: "pending_ms"})
            .astype("Int64")
            .reset_index()
        )
