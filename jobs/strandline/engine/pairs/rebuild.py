"""The steps of a rebuild of pairs: place → split by lateness → join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.inputs import HistoryOfTwo
from strandline.engine.pairs.side import Side
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import WIDEST_MS
from strandline.engine.records.arithmetic import floor, lies_in
from strandline.engine.records.at_arrival import probe_at
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import content, identity
from strandline.engine.watermark_values.of_two import EmissionsOfTwo
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    last_day_before,
)
from strandline.spec.join import SIDES

PAIR_TS = "pair_ts"
"""The later event time of a pair."""
PAIR = "pair"
"""The number of a pair among pairs of equal records, from 1."""
_NTH = "_strandline_nth_of_equal"
_COPIES = "_strandline_copies"
_CONTENT = "_strandline_content"
_BUCKET_IN_SPANS = 2
"""The length of a bucket in spans: few left records are in two buckets, and few pairs are tried."""
_OWN = (c.TS, c.AT_ARRIVAL, c.ARRIVAL, c.ARRIVAL_DAY, c.SEQUENCE, c.AT_WATERMARK)
"""The engine's columns that a pair has for each of its records."""


@dataclass(frozen=True)
class PairRebuild:
    """The pairs whose later event time lies in a range, and the late records with such event times.

    Attributes:
        history: the history of both inputs.
        clock: the horizon and the inputs that have ended.
        within: the range.
    """

    history: HistoryOfTwo
    clock: Clock
    within: TimeRange

    def pairs(self) -> DataFrame:
        """Every pair: its key, the columns of both records prefixed by side, PAIR_TS and PAIR.

        The engine's columns of both records, and their RECORD_ID, are included under the same
        prefixes. PAIR numbers the pairs with the same ids.
        """
        lower_ms, upper_ms = self._bounds
        distance = F.col(of_side("right", c.TS)) - F.col(of_side("left", c.TS))
        pair_ts = F.greatest(*(of_side(name, c.TS) for name in SIDES))
        left, right = (self._named(name, self._in_buckets(name)) for name in SIDES)
        return (
            left.join(right, [*self._keys, c.BUCKET])
            .where(distance.between(lower_ms, upper_ms) & ~self._expired())
            .where(lies_in(pair_ts, self.within))
            .withColumn(PAIR_TS, F.timestamp_millis(pair_ts))
            .drop(c.BUCKET)
            .withColumn(PAIR, self._nth_of_equal())
        )

    def _in_buckets(self, name: str) -> DataFrame:
        """The accepted records of a side with their BUCKET.

        A left record is repeated for each bucket in which its partners may lie.
        """
        lower_ms, upper_ms = self._bounds
        length_ms = max(_BUCKET_IN_SPANS * (upper_ms - lower_ms), 1)
        given, ts = self.history.inputs[name], F.col(c.TS)
        identity_of = identity(given.history.spec, given.source_columns)
        records = self._sides[name].accepted.withColumn(c.RECORD_ID, identity_of)
        if name == "right":
            return records.withColumn(c.BUCKET, floor(ts, length_ms, 0))
        # exclusive bounds may leave no distance between them: then no pair is found
        furthest_ms = max(lower_ms, upper_ms)
        first, last = (floor(ts + bound, length_ms, 0) for bound in (lower_ms, furthest_ms))
        buckets = F.sequence(first, last, F.lit(length_ms))
        return records.withColumn(c.BUCKET, F.explode(buckets))

    def late(self, name: str) -> DataFrame:
        """The late records of a side, each with the WATERMARK at its arrival."""
        return self._sides[name].late().where(lies_in(F.col(c.TS), self.within))

    def late_since(self, name: str, arrived_since_ms: int, ts_before_ms: int) -> DataFrame:
        """See `Side.late_since`."""
        return self._sides[name].late_since(arrived_since_ms, ts_before_ms)

    def accepted(self, name: str) -> DataFrame:
        """The records of a side that are not late."""
        return self._sides[name].accepted.where(lies_in(F.col(c.TS), self.within))

    def in_state(self, name: str) -> DataFrame:
        """The records of a side that Flink's operator still keeps in state at the horizon."""
        watermark_ms = self.final_watermark
        expiry = F.col(c.TS) + self._retention_ms[name]
        came_last = F.col(c.AT_WATERMARK) & (F.col(c.TS) == F.lit(watermark_ms))
        return self.accepted(name).where((expiry > watermark_ms) | came_last)

    @cached_property
    def final_watermark(self) -> int:
        """The combined watermark of both inputs at the horizon; MIN_WATERMARK: none yet."""
        axis, day = self.history.axis, last_day_before(self.clock.horizon_ms)
        spark = self.history.inputs["left"].records.sparkSession
        now = probe_at(axis.never, day, axis, spark)
        return int(self.emitted([day]).at(now).collect()[0][c.WATERMARK])

    def emitted(self, days: Sequence[date]) -> EmissionsOfTwo:
        """The watermark's values on some days."""
        return EmissionsOfTwo(self.history, self.clock, days)

    @cached_property
    def _sides(self) -> dict[str, Side]:
        """Both sides, with the records that may have a partner in the range."""
        sides = {}
        for name in self.history.inputs:
            start_ms = max(self.within.start_ms - self._retention_ms[name], LEAST_INSTANT_MS)
            region = TimeRange(start_ms, min(self.within.end_ms, END_OF_INSTANTS_MS))
            sides[name] = Side(self.history, name, self.clock, region)
        return sides

    @property
    def _keys(self) -> list[str]:
        return c.keys_of(self.history.inputs["left"].history.spec)

    @property
    def _bounds(self) -> tuple[int, int]:
        """The bounds of `right.ts - left.ts` of a pair, clipped so that no sum overflows."""
        join = self.history.spec.join
        return max(join.lower_ms, -WIDEST_MS), min(join.upper_ms, WIDEST_MS)

    @property
    def _retention_ms(self) -> dict[str, int]:
        """How long after its event time Flink keeps a record of each side in state, in ms."""
        return {name: min(ms, WIDEST_MS) for name, ms in self.history.spec.kept_ms.items()}

    def _expired(self) -> Column:
        """Whether Flink had removed the earlier record of a pair before the later one arrived.

        A record is removed when the watermark reaches its event time plus its retention. A later
        partner that is not late has an event time of at least the watermark, and at most that sum.
        So it comes after the removal only if its event time, the watermark and the sum are equal;
        but not if the earlier record came at this watermark too: then its timer has not fired.
        """

        def is_removed(earlier: str, later: str) -> Column:
            ts, other_ts = F.col(of_side(later, c.TS)), F.col(of_side(earlier, c.TS))
            came_later = F.col(of_side(later, c.AT_ARRIVAL)) > F.col(of_side(earlier, c.AT_ARRIVAL))
            at_watermark = F.col(of_side(later, c.AT_WATERMARK))
            came_at_same_watermark = F.col(of_side(earlier, c.AT_WATERMARK)) & (ts == other_ts)
            expires_now = ts == other_ts + self._retention_ms[earlier]
            return came_later & at_watermark & expires_now & ~came_at_same_watermark

        return is_removed("left", "right") | is_removed("right", "left")

    def _named(self, name: str, records: DataFrame) -> DataFrame:
        """A side's records: the keys as they are, all other columns prefixed by side.

        Records that only their whole row identifies are numbered here, where the join needs the
        same exchange and order anyway, and not among the more numerous pairs.
        """
        given, keys = self.history.inputs[name], self._keys
        own = [*given.source_columns.names, *_OWN]
        if self._identified_by_id:
            own += [c.RECORD_ID, _CONTENT]
            records = records.withColumn(_CONTENT, content(given.source_columns))
        else:
            own += [c.RECORD_ID, _NTH, _COPIES]
            equal = Window.partitionBy(*keys, c.BUCKET, c.TS, c.RECORD_ID).orderBy(F.lit(0))
            whole = equal.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
            numbers = {
                _NTH: F.row_number().over(equal),
                _COPIES: F.count(F.lit(1)).over(whole),
            }
            records = records.repartition(*keys, c.BUCKET).withColumns(numbers)
        named = [quoted(column).alias(of_side(name, column)) for column in own]
        return records.select(*keys, c.BUCKET, *named)

    @property
    def _identified_by_id(self) -> bool:
        """Whether columns of a side identify its records; two with one id may differ otherwise."""
        inputs = self.history.inputs.values()
        return any(one.history.spec.source.id is not None for one in inputs)

    def _nth_of_equal(self) -> Column:
        """The number of a pair, from 1, among the pairs whose records have the same ids."""
        if not self._identified_by_id:
            nth = {name: F.col(of_side(name, _NTH)) for name in SIDES}
            copies = F.col(of_side("right", _COPIES))
            return ((nth["left"] - 1) * copies + nth["right"]).cast("bigint")
        ids = (of_side(name, c.RECORD_ID) for name in SIDES)
        order = (of_side(name, column) for column in (c.TS, _CONTENT) for name in SIDES)
        equal = Window.partitionBy(PAIR_TS, *self._keys, *ids).orderBy(*order)
        return F.row_number().over(equal).cast("bigint")


def of_side(name: str, column: str) -> str:
    """The name of a column of a side's record in a pair."""
    return f"{name}_{column}"
