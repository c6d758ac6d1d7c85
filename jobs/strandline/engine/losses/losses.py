"""The loss curve of all records, and of the channels, keys and days that lose most.

A curve has the number of lost records at each *total* (bound plus allowed lateness) *on offer*;
between two totals the number is not known. Most records are lost at none. Their numbers by day and
channel are already observed, and by key are a plain count; only the lost records are evaluated
total by total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected, computed, from_arrow, long, named, small_table
from strandline.engine.history.history import History
from strandline.engine.losses.reached import Offer, Reached
from strandline.engine.position.axis import Axis
from strandline.engine.records.arithmetic import date_of, is_window_late, lies_in, slot_of
from strandline.engine.timeline import CellQuery
from strandline.model.intervals import DAY_MS, EVERYTHING
from strandline.model.loss_curve import LossCurve, curve_of

DAY = "_strandline_day"
"""The date on which a record's newest window starts."""
LOST_BY = "_strandline_lost_by"
"""The number of totals on offer, from the smallest, at which a record is lost."""
_CLOSE = "_strandline_close_"
"""The prefix of the columns with the first instant whose records a slot loses, for each total."""
_EVERY, _LOST = "_strandline_every", "_strandline_lost_"


class LossesOf(NamedTuple):
    """The losses of a part of the records: of a channel, a key or a day."""

    name: tuple[str, ...]
    curve: LossCurve


class WorstParts(NamedTuple):
    """The parts of the records that lose most, and the number of all parts."""

    worst: Sequence[LossesOf] = ()
    of: int = 0


@dataclass(frozen=True)
class Losses:
    """The number of records of a range, and how many of them are lost at each total on offer.

    Attributes:
        totals_ms: on offer, ascending.
        records: RECORDS of each DAY and CHANNEL.
        of_keys: RECORDS of each key, by the engine's key columns.
        lost: RECORDS lost at any total, by DAY, CHANNEL, the key columns and LOST_BY.
    """

    totals_ms: tuple[int, ...]
    records: pd.DataFrame
    of_keys: DataFrame
    lost: DataFrame

    @property
    def computed(self) -> Losses:
        """These losses with their DataFrames computed, so that the landing is read once."""
        return replace(self, of_keys=computed(self.of_keys), lost=computed(self.lost))

    @property
    def curve(self) -> LossCurve:
        """The loss curve of all records."""
        sums = collected(self.lost.groupBy(LOST_BY).agg(F.sum(c.RECORDS).alias(c.RECORDS)))
        by_totals = dict(zip(sums[LOST_BY], sums[c.RECORDS], strict=True))
        lost = [int(by_totals.get(totals, 0)) for totals in range(1, len(self.totals_ms) + 1)]
        kept = int(self.records[c.RECORDS].sum()) - sum(lost)
        return curve_of(self.totals_ms, [kept, *lost])

    def worst(self, names: Sequence[str], *, at_ms: int, most: int) -> WorstParts:
        """The parts that lose most records.

        Args:
            names: the columns that name a part: DAY, CHANNEL or all key columns.
            at_ms: the total at which parts are compared: by the records that they lose.
            most: the largest number of parts to return.
        """
        place_of = self.totals_ms.index(at_ms)
        lost = F.col(c.RECORDS)
        sums = {
            f"{_LOST}{place}": F.sum(F.when(F.col(LOST_BY) > place, lost).otherwise(long(0)))
            for place in range(len(self.totals_ms))
        }
        parts = (
            self._counted_by(names).groupBy(*names).agg(F.sum(_EVERY).alias(_EVERY), *named(sums))
        )
        rows = collected(parts.orderBy(F.desc(f"{_LOST}{place_of}"), *names).limit(most))
        found = [
            LossesOf(
                tuple("" if row[name] is None else str(row[name]) for name in names),
                LossCurve(self.totals_ms, tuple(int(row[name]) for name in sums), int(row[_EVERY])),
            )
            for row in rows.to_dict("records")
        ]
        return WorstParts(found, self._many(names))

    def _counted_by(self, names: Sequence[str]) -> DataFrame:
        """The numbers of all records and of lost ones, by named columns (as texts) and LOST_BY."""
        records = F.col(c.RECORDS)
        counted = self._all_by(names).select(
            *names, records.alias(_EVERY), long(0).alias(c.RECORDS), F.lit(0).alias(LOST_BY)
        )
        lost = self.lost.select(*names, long(0).alias(_EVERY), records, LOST_BY)
        return counted.unionAll(lost).withColumns(
            {name: F.col(name).cast("string") for name in names}
        )

    def _many(self, names: Sequence[str]) -> int:
        """The number of parts."""
        if set(names) <= set(self.records.columns):
            return len(self.records[[*names]].drop_duplicates())
        return self.of_keys.count()

    def _all_by(self, names: Sequence[str]) -> DataFrame:
        """RECORDS by part; a part may have several rows."""
        if not set(names) <= set(self.records.columns):
            return self.of_keys
        sums = self.records.groupby([*names], as_index=False)[[c.RECORDS]].sum()
        return from_arrow(self.lost.sparkSession, pa.Table.from_pandas(sums, preserve_index=False))


def losses_of(
    records: DataFrame, history: History, offer: Offer, closes: Reached, horizon_ms: int
) -> Losses:
    """The losses of records at each total on offer.

    Args:
        records: as `observe_without_bound` takes them.
        history: the history that it returns.
        offer: the totals and the windows.
        closes: when each total closes each window.
        horizon_ms: arrivals before it are known.
    """
    known = history.known(records, horizon_ms, history.days.of_events(offer.event_times))
    placed = known.withColumn(c.SLOT, slot_of(F.col(c.TS), offer.grid))
    counted = F.count(F.lit(1)).alias(c.RECORDS)
    keys = c.keys_of(offer.spec)
    of_keys = _within(placed, offer).groupBy(*keys).agg(counted)
    lost = _lost(placed, offer, closes, history.axis)
    by = (DAY, c.CHANNEL, *keys, LOST_BY)
    lost = lost.select(*by).groupBy(*by).agg(counted)
    return Losses(offer.totals_ms, _observed(history, offer), of_keys, lost)


def _within(placed: DataFrame, offer: Offer) -> DataFrame:
    """The records whose newest window starts in the range."""
    if offer.within == EVERYTHING:
        return placed
    return placed.where(lies_in(F.col(c.SLOT), offer.within))


def _lost(placed: DataFrame, offer: Offer, closes: Reached, axis: Axis) -> DataFrame:
    """The records of the range that are lost at any total, with DAY and LOST_BY.

    The smallest total is tested first; only the few records that it loses are joined with the
    others.
    """
    smallest, *others = range(len(offer.totals_ms))

    def closed_by(totals: Sequence[int]) -> DataFrame:
        columns: dict[str, Iterable[object]] = {c.SLOT: closes.slots_ms}
        for total in totals:
            columns[f"{_CLOSE}{total}"] = axis.column(closes.seen_from[:, total])
        return F.broadcast(small_table(placed.sparkSession, columns))

    lost = placed.join(closed_by([smallest]), c.SLOT).where(_loses(smallest))
    lost = lost.join(closed_by(others), c.SLOT)
    lost_by = reduce(Column.__add__, (_loses(total).cast("int") for total in others), F.lit(1))
    return lost.withColumns({DAY: date_of(F.col(c.SLOT)), LOST_BY: lost_by})


def _loses(total: int) -> Column:
    """Whether a record arrived after a total had closed its window; `total`: its number."""
    return is_window_late(f"{_CLOSE}{total}")


def _observed(history: History, offer: Offer) -> pd.DataFrame:
    """RECORDS of each DAY and CHANNEL of the range; a cell lies in one window."""
    days = history.days.of_events(offer.event_times)
    cells = history.timeline.cells(CellQuery(days, columns=("channel", "least_ts_ms", "records")))
    slots_ms = offer.grid.newest_starts(cells["least_ts_ms"].to_numpy(dtype="int64"))
    inside = (slots_ms >= offer.within.start_ms) & (slots_ms < offer.within.end_ms)
    midnights = (slots_ms // DAY_MS * DAY_MS).astype("datetime64[ms]")
    counted = pd.DataFrame(
        {
            DAY: np.asarray(midnights, dtype="datetime64[D]").astype(object),
            c.CHANNEL: cells["channel"],
            c.RECORDS: cells["records"],
        }
    )[inside]
    return counted.groupby([DAY, c.CHANNEL], as_index=False)[[c.RECORDS]].sum()
