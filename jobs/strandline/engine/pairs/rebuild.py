"""The rebuild of an interval join: its late records, its pairs, and the counts of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.history.inputs import HistoryOfTwo
from strandline.engine.pairs.columns import PAIR, PAIR_TS, id_of, of_side, refuse_names_in_use
from strandline.engine.pairs.side import Side
from strandline.engine.position.grid import WIDEST_MS
from strandline.engine.records.arithmetic import floor, lies_in, probe_at, slot_of, slot_of_session
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import content, identity
from strandline.engine.records.quarantine import of_inputs, quarantine_late
from strandline.engine.scope import Rebuild
from strandline.engine.watermark_values.of_two import EmissionsOfTwo
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    last_day_before,
)
from strandline.spec.join import SIDES
from strandline.tables import INPUT

_NTH = "_strandline_nth_of_equal"
_COPIES = "_strandline_copies"
_CONTENT = "_strandline_content"
_BUCKET_IN_SPANS = 2
"""The length of a bucket of event times, in spans of a join's bounds.

So few left records lie in two buckets, and few pairs of records are compared in vain.
"""
_OWN = (c.TS, c.AT_ARRIVAL, c.ARRIVAL, c.ARRIVAL_DAY, c.SEQUENCE, c.AT_WATERMARK)
"""The engine's columns that a pair has for each of its records."""


class PairRebuild(Rebuild):
    """The pairs whose later event time lies in the range, and the late records of both sides.

    The late records are the late records of the range, and late arrivals for older slots.
    """

    history: HistoryOfTwo

    # ------------------------------------------------------------------------------- its tables

    def windows(self) -> DataFrame:
        """The pairs as rows of the table `pairs`.

        Raises:
            InputError: two of its columns would have one name.
        """
        spec = self.history.spec
        columns = {name: one.source_columns.names for name, one in self.history.inputs.items()}
        refuse_names_in_use(spec, columns)
        return self.joined().select(
            PAIR_TS,
            F.to_date(PAIR_TS).alias("pair_date"),
            *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
            *(quoted(of_side(name, column)) for name in SIDES for column in columns[name]),
            *(F.col(of_side(name, c.RECORD_ID)).alias(id_of(name)) for name in SIDES),
            PAIR,
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        )

    def late(self) -> DataFrame:
        """The late records of the range, and all late arrivals for older slots, with their INPUT.

        Raises:
            InputError: the columns of the two landing tables conflict.
        """
        return of_inputs({name: self._late_of(name) for name in SIDES}, self.history.spec)

    def _late_of(self, name: str) -> DataFrame:
        """The late records of a side as quarantine rows; their slots end after their event time."""
        since_ms, given = self.scope.older_since_ms, self.history.inputs[name]
        late = self._of_range(self._sides[name].late())
        if since_ms is not None:
            older = self._sides[name].late_since(since_ms, self.scope.older_end_ms)
            late = late.unionByName(older, allowMissingColumns=True)
        late = late.withColumn(c.END, F.col(c.TS) + 1)
        placed = late.withColumns(slot_of_session(self.history.grid, ()))
        rows = quarantine_late(placed, given.history.spec, given.source_columns)
        return rows.withColumn("missed_windows", long(None))

    def accepted_by_input(self) -> dict[str, Counter[int]]:
        """The number of records of each side that are not late, by the start of their slot."""
        counted: dict[str, Counter[int]] = {name: Counter() for name in SIDES}
        for name, slot, count in self._accepted.groupBy(INPUT, c.SLOT).count().collect():
            counted[name][int(slot)] = int(count)
        return counted

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: the records of both sides that are not late."""
        count = F.count(F.lit(1))
        by_slot = self._accepted.groupBy(c.SLOT)
        return by_slot.agg(count.alias("records"), count.alias("in_newest"))

    @property
    def _accepted(self) -> DataFrame:
        """The records of both sides that are not late, with their INPUT and SLOT."""
        slot = slot_of(F.col(c.TS), self.history.grid)
        return _of_both(self._accepted_of).withColumn(c.SLOT, slot)

    def in_state(self) -> DataFrame:
        """The records that still wait for partners, with their INPUT."""
        return _of_both(self.in_state_of)

    def in_state_of(self, name: str) -> DataFrame:
        """The records of a side that Flink's operator still keeps in state at the horizon."""
        watermark_ms = self.final_watermark()
        expiry = F.col(c.TS) + self._retention_ms[name]
        came_last = F.col(c.AT_WATERMARK) & (F.col(c.TS) == F.lit(watermark_ms))
        return self._accepted_of(name).where((expiry > watermark_ms) | came_last)

    def firings(self) -> DataFrame:
        """Raise an error: an interval join has no firings.

        Raises:
            TypeError: always.
        """
        msg = "pairs have no firings"
        raise TypeError(msg)

    def final_watermark(self) -> int:
        """See `Rebuild`: of both inputs together."""
        return self._final_watermark

    @cached_property
    def _final_watermark(self) -> int:
        return self._watermark_at(self.history.axis.never)

    def watermark_before_end(self) -> int:
        """See `Rebuild`: of both inputs together."""
        return self._watermark_at(self.history.axis.end - 1)

    def _watermark_at(self, instant: int) -> int:
        axis, day = self.history.axis, last_day_before(self.clock.horizon_ms)
        probe = probe_at(instant, day, axis, self.spark)
        emitted = EmissionsOfTwo(self.history, self.clock, [day])
        return int(emitted.at(probe).collect()[0][c.WATERMARK])

    # ------------------------------------------------------------------------------- its join

    def joined(self) -> DataFrame:
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
            .where(lies_in(pair_ts, self.scope.windows))
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

    def _accepted_of(self, name: str) -> DataFrame:
        """The records of a side that are not late."""
        return self._of_range(self._sides[name].accepted)

    def _of_range(self, records: DataFrame) -> DataFrame:
        return records.where(lies_in(F.col(c.TS), self.scope.windows))

    @cached_property
    def _sides(self) -> dict[str, Side]:
        """Both sides, with the records that may have a partner in the range."""
        sides, within = {}, self.scope.windows
        for name in self.history.inputs:
            start_ms = max(within.start_ms - self._retention_ms[name], LEAST_INSTANT_MS)
            region = TimeRange(start_ms, min(within.end_ms, END_OF_INSTANTS_MS))
            sides[name] = Side(self.history, name, self.clock, region)
        return sides

    @property
    def _keys(self) -> list[str]:
        return c.keys_of(self._spec)

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

        Flink removes a record when the watermark reaches its event time plus its retention. A later
        partner that is not late has an event time from the watermark to this sum. So it comes after
        the removal only if its event time, the watermark and the sum are equal. If the earlier
        record also arrived at this watermark, its timer has not fired, and it is still there.
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

        If only the whole row identifies a record, equal records are numbered here: the join needs
        the same exchange and order anyway, and pairs are more numerous.
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
        """Whether a side has id columns; records with one id may differ in all others."""
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


def _of_both(of_side: Callable[[str], DataFrame]) -> DataFrame:
    """Records of both sides, with their INPUT and TS alone."""
    sides = (of_side(name).select(F.lit(name).alias(INPUT), c.TS) for name in SIDES)
    return reduce(DataFrame.unionByName, sides)
