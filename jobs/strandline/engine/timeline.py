"""The timeline: the observations of arrival days, from which watermarks are computed.

Each row of it is a *cell*: counts, first position and least and largest times of the records of one
arrival day and channel that have the same windows and whose watermarks reach the same thresholds
(`watermark.cells.observe`). Cells are many: a run queries cells of some days, slots and thresholds,
never all. Facts of each (day, channel), (day, event date) and (day, reason) follow from the cells
and are few: they are read for all days.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from strandline.engine.position.axis import Axis
from strandline.engine.whole_numbers import any_bit
from strandline.model.intervals import EVERYTHING, TimeRange

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
    "last_arrival_ms",
    "arrival_hours",
)
CHANNEL_COLUMNS = (
    "arrival_date",
    "channel",
    "settled_ms",
    "pending_ms",
    "largest_ts_ms",
    "first_arrival_ms",
    "first_sequence",
    "last_arrival_ms",
    "arrival_hours",
)
DAY_COLUMNS = (
    "arrival_date",
    "event_date",
    "records",
    "least_ts_ms",
    "largest_ts_ms",
    "largest_end_ms",
)
MALFORMED_COLUMNS = ("arrival_date", "reason", "records", "last_arrival_ms")


@dataclass(frozen=True)
class CellQuery:
    """A query for cells of a timeline.

    Attributes:
        days: arrival days.
        slots: only cells whose newest window starts in this range.
        least_threshold_ms: only cells that reach this threshold; None: any.
        columns: some of `CELL_COLUMNS`.
    """

    days: Collection[date]
    slots: TimeRange = EVERYTHING
    least_threshold_ms: int | None = None
    columns: Sequence[str] = CELL_COLUMNS


class Timeline(Protocol):
    """The observations of the arrival days below a horizon."""

    @property
    def channel_days(self) -> pd.DataFrame:
        """Facts of each (arrival date, channel); columns `CHANNEL_COLUMNS`.

        `settled_ms`: the largest watermark that the day's records make the channel emit by the
        midnight that ends the day; `pending_ms`: the largest one that only the next tick emits;
        null: none. `first_*`: the first record.
        `last_arrival_ms`: the last arrival; `arrival_hours`: a bit for each hour of the day with an
        arrival; both are null in a timeline of an older version.
        """

    @property
    def day_map(self) -> pd.DataFrame:
        """Facts of the well-formed records of each (arrival date, event date).

        Columns `DAY_COLUMNS`.

        `largest_end_ms`: for sessions with a gap of each record, the latest end of a record's own
        session.
        """

    @property
    def malformed(self) -> pd.DataFrame:
        """The number of malformed rows of each (arrival date, reason).

        The date is null for rows without one. `last_arrival_ms`: the last arrival that lies in its
        day; null: none does.
        """

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """The cells of well-formed records that fulfil a query."""


@dataclass(frozen=True)
class Observed:
    """A timeline in memory: the cells of some days (`CELL_COLUMNS`), also of malformed rows."""

    every: pd.DataFrame

    @cached_property
    def well_formed(self) -> pd.DataFrame:
        """The cells of well-formed records."""
        return self.every[self.every["reason"].isna()]

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`."""
        return channel_days_of(self.well_formed)

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return day_map_of(self.well_formed)

    @cached_property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return malformed_of(self.every)

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        cells = self.well_formed
        chosen = cells["arrival_date"].isin(list(asked.days)).to_numpy(dtype=bool)
        if asked.slots != EVERYTHING:
            starts = cells["slot_ms"].to_numpy(dtype="int64")
            chosen &= (starts >= asked.slots.start_ms) & (starts < asked.slots.end_ms)
        if asked.least_threshold_ms is not None:
            reaches = cells["threshold_ms"] >= asked.least_threshold_ms
            chosen &= reaches.fillna(False).to_numpy(dtype=bool)
        return cells.loc[chosen, list(asked.columns)]

    def tables_of(self, days: Collection[date]) -> Iterable[pa.Table]:
        """See `Fresh`."""
        chosen = self.every[self.every["arrival_date"].isin(list(days))]
        order = ["arrival_date", "slot_ms", "threshold_ms"]
        in_order = chosen.sort_values(order, na_position="first")
        columns = [pa.array(in_order[name], from_pandas=True) for name in CELL_COLUMNS]
        return [pa.table(columns, names=[*CELL_COLUMNS])]


class Fresh(Timeline, Protocol):
    """New observations, not yet written."""

    def tables_of(self, days: Collection[date]) -> Iterable[pa.Table]:
        """All cells of some days, also of malformed rows, ordered by day, slot and threshold."""


@dataclass(frozen=True)
class OverTimeline:
    """The base of a timeline that wraps another one and changes the answers of some queries."""

    timeline: Timeline

    @property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self.timeline.day_map

    @property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self.timeline.malformed


@dataclass(frozen=True)
class CombinedTimeline:
    """Two timelines of different days as one."""

    before: Timeline
    fresh: Timeline

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`."""
        return concatenated(self.before.channel_days, self.fresh.channel_days)

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return concatenated(self.before.day_map, self.fresh.day_map)

    @cached_property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return concatenated(self.before.malformed, self.fresh.malformed)

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        return concatenated(self.before.cells(asked), self.fresh.cells(asked))


def concatenated(*parts: pd.DataFrame) -> pd.DataFrame:
    """The concatenated rows of tables with the same columns."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def channel_days_of(well_formed: pd.DataFrame) -> pd.DataFrame:
    """The facts of each (arrival date, channel) in some well-formed cells."""
    # a first record that has no sequence of its own has none that counts
    in_order = well_formed.sort_values(["first_arrival_ms", "first_sequence"])
    pending = well_formed["pending"].fillna(False).astype(bool)
    candidates = well_formed["largest_candidate_ms"]
    offered = well_formed.assign(
        settled_ms=candidates.mask(pending), pending_ms=candidates.where(pending)
    )
    keys = ["arrival_date", "channel"]
    at_most = ["settled_ms", "pending_ms", "largest_ts_ms", "last_arrival_ms"]
    largest = offered.groupby(keys)[at_most].max()
    first = in_order.drop_duplicates(keys).set_index(keys)[["first_arrival_ms", "first_sequence"]]
    hours = any_bit(well_formed["arrival_hours"], well_formed.groupby(keys).ngroup())
    days = largest.join(first).reset_index().assign(arrival_hours=hours)
    return days.reindex(columns=[*CHANNEL_COLUMNS])


def day_map_of(well_formed: pd.DataFrame) -> pd.DataFrame:
    """The facts of each (arrival date, event date) in some well-formed cells."""
    by_dates = well_formed.groupby(["arrival_date", "event_date"])
    ends = by_dates["largest_end_ms"]
    facts = {
        "records": by_dates["records"].sum(),
        "least_ts_ms": by_dates["least_ts_ms"].min(),
        "largest_ts_ms": by_dates["largest_ts_ms"].max(),
        # null if it is null in any cell
        "largest_end_ms": ends.max().mask(ends.count() < by_dates.size()),
    }
    return pd.DataFrame(facts).reset_index()


def malformed_of(cells: pd.DataFrame) -> pd.DataFrame:
    """The number of malformed rows of each (arrival date, reason) in some cells."""
    bad = cells[cells["reason"].notna()]
    by_reason = bad.groupby(["arrival_date", "reason"], dropna=False)
    facts = {
        "records": by_reason["records"].sum(),
        "last_arrival_ms": by_reason["last_arrival_ms"].max(),
    }
    return pd.DataFrame(facts).reset_index()


def empty_cells() -> pd.DataFrame:
    """A table of cells without rows."""
    return pd.DataFrame(columns=[*CELL_COLUMNS])


def instants_of(rows: pd.DataFrame, axis: Axis) -> np.ndarray:
    """The first instants of rows with `first_arrival_ms` and `first_sequence`."""
    arrivals = rows["first_arrival_ms"].astype("int64").to_numpy()
    if not axis.sequenced:
        return arrivals
    sequences = rows["first_sequence"].fillna(0).astype("int64").tolist()
    pairs = zip(arrivals.tolist(), sequences, strict=True)
    instants = np.empty(len(rows), dtype=object)
    instants[:] = [axis.instant(arrival, sequence) for arrival, sequence in pairs]
    return instants
