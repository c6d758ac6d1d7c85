"""One side of an interval join: its late records, and the records that can form pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.conditions import any_of
from strandline.engine import columns as c
from strandline.engine.calendar.ahead import Parts
from strandline.engine.frames import computed
from strandline.engine.history.inputs import HistoryOfTwo
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import instant_of, lies_in
from strandline.engine.watermark_values.of_two import EmissionsOfTwo
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.model.lateness import MAX_WATERMARK


@dataclass(frozen=True)
class Side:
    """The records of one input in a range of event times, split by the watermark at arrival.

    A record is late if its event time is below the combined watermark of both inputs. Most records
    arrive ahead of the watermark, which is known for whole parts of slots (`Parts`); the watermark
    itself is looked up only for the other records.

    Attributes:
        history: the history of both inputs.
        name: the name of the input.
        clock: the horizon and the inputs that have ended.
        within: the range of event times.
    """

    history: HistoryOfTwo
    name: str
    clock: Clock
    within: TimeRange

    @cached_property
    def accepted(self) -> DataFrame:
        """The records that are not late, with AT_ARRIVAL and AT_WATERMARK."""
        ahead = self._in_time(self._known(self._days)).where(
            F.col(c.AT_ARRIVAL) < F.col(c.AHEAD_BEFORE)
        )
        ahead = ahead.withColumn(c.AT_WATERMARK, F.lit(False)).drop(
            c.PART, c.AHEAD_BEFORE, c.CHANNEL, c.CANDIDATE
        )
        if not self._behind_days:
            return ahead
        at_watermark = F.col(c.TS) == F.col(c.WATERMARK)
        behind = self._in_time(self._behind).where(~is_late())
        behind = behind.withColumn(c.AT_WATERMARK, at_watermark).drop(c.WATERMARK)
        return ahead.unionByName(behind.select(*ahead.columns))

    def late(self) -> DataFrame:
        """The late records, each with the WATERMARK at its arrival."""
        late = self._in_time(self._behind).where(is_late())
        if self._ended is None:
            return late
        came_later = self._known(self._days).where(self._ended)
        came_later = came_later.withColumn(c.WATERMARK, F.lit(MAX_WATERMARK))
        return late.unionByName(came_later.select(*late.columns))

    def late_since(self, arrived_since_ms: int, ts_before_ms: int) -> DataFrame:
        """The late records of later arrival days, each with the WATERMARK at its arrival.

        Args:
            arrived_since_ms: a midnight; only arrival days from it on.
            ts_before_ms: only event times before it, whatever `within` is.
        """
        given = self.history.inputs[self.name]
        days = given.history.days.since(arrived_since_ms)
        known = given.history.known(given.records, self.clock.horizon_ms, days)
        records = self._placed(known.where(F.col(c.TS) < ts_before_ms))
        at_arrival = EmissionsOfTwo(self.history, self.clock, days).at_arrival(records)
        if self._ended is not None:
            watermark = F.when(self._ended, F.lit(MAX_WATERMARK)).otherwise(F.col(c.WATERMARK))
            at_arrival = at_arrival.withColumn(c.WATERMARK, watermark)
        return at_arrival.where(is_late())

    def _in_time(self, records: DataFrame) -> DataFrame:
        return records if self._ended is None else records.where(~self._ended)

    @property
    def _ended(self) -> Column | None:
        """Whether a record came after the input had ended for its event time; None: no end."""
        before = (one for one in self.clock.closures if one.at_ms < self.clock.horizon_ms)
        ended = [
            lies_in(F.col(c.TS), one.windows) & (F.col(c.ARRIVAL) >= one.at_ms) for one in before
        ]
        return any_of(ended, F.lit(False)) if ended else None

    @cached_property
    def _behind(self) -> DataFrame:
        """The records that the watermark may have passed, with the WATERMARK at their arrival."""
        behind = self._known(self._behind_days).where(F.col(c.AT_ARRIVAL) >= F.col(c.AHEAD_BEFORE))
        emitted = EmissionsOfTwo(self.history, self.clock, self._behind_days)
        return computed(emitted.at_arrival(behind).drop(c.PART, c.AHEAD_BEFORE))

    def _known(self, days: Sequence[date]) -> DataFrame:
        given = self.history.inputs[self.name]
        known = given.history.known(given.records, self.clock.horizon_ms, days)
        if self.within != EVERYTHING:
            known = known.where(lies_in(F.col(c.TS), self.within))
        return self._placed(self._parts.of_records(known))

    def _placed(self, records: DataFrame) -> DataFrame:
        """Records with AT_ARRIVAL: their arrival on the axis of both inputs."""
        at_arrival = instant_of(self.history.axis, F.col(c.ARRIVAL), F.col(c.SEQUENCE))
        return records.withColumn(c.AT_ARRIVAL, at_arrival)

    @cached_property
    def _days(self) -> list[date]:
        return self.history.inputs[self.name].history.days.of_events(self.within)

    @cached_property
    def _parts(self) -> Parts:
        """The parts of the input's slots, by the watermark of both inputs."""
        own, both = self.history.inputs[self.name].history, self.history
        by_both = replace(own, crossings=both.crossings, axis=both.axis)
        return Parts.of(by_both, self.within, self.clock)

    @cached_property
    def _behind_days(self) -> list[date]:
        return sorted(self._parts.behind_days & {*self._days})


def is_late() -> Column:
    """Whether a record is late: the WATERMARK at its arrival has passed its event time.

    Flink: `IntervalJoinOperator#isLate`. Equality is not late.
    """
    return F.col(c.TS) < F.col(c.WATERMARK)
