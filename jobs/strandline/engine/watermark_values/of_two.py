"""The values of the combined watermark of two inputs.

`CrossingsOfTwo` has when it reaches thresholds.

At a position it is the minimum of both inputs, or the watermark that one input had while the other
was last idle, if that is larger: it never falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long, small_table
from strandline.engine.position.axis import AFTER_CHANNELS, SEQUENCE_SPAN, TICK_RANK
from strandline.engine.position.of_two import SIDE_SPAN
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark.of_two import InputCrossings
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import day_of

_AT, _AT_RANK = "_strandline_at", "_strandline_at_rank"
_LEFT, _RIGHT, _AT_CHANGE = (
    "_strandline_left_ms",
    "_strandline_right_ms",
    "_strandline_change_ms",
)
_FROM, _UNTIL, _IS_IDLE = "_strandline_idle_from", "_strandline_idle_until", "_strandline_is_idle"
_UNTIL_RANK = "_strandline_idle_until_rank"
_AFTER_ALL = 2**60
"""A rank after every position, even after the end of all instants."""


@dataclass(frozen=True)
class InputEmissions:
    """The emissions of one of two inputs.

    Attributes:
        place: its crossings, on the axis of both inputs.
        emitted: gives its emissions on some days, at positions of its own axis.
    """

    place: InputCrossings
    emitted: Callable[[Sequence[date]], Emissions]

    def at(self, probes: DataFrame, days: Sequence[date], name: str) -> DataFrame:
        """Probes at positions of both inputs, with the input's own watermark as a column."""
        own, both = self.place.axis.own, self.place.axis.both
        at: Column = F.col(c.SEEN_FROM)
        rank = F.when(F.col(c.RANK) >= AFTER_CHANNELS, AFTER_CHANNELS).otherwise(self._seen_rank())
        if both.sequenced and not own.sequenced:
            span = F.lit(Decimal(SEQUENCE_SPAN))
            behind = F.pmod(at, span)
            rank = F.when(behind > 0, AFTER_CHANNELS).otherwise(rank)
            ended = at >= F.lit(both.literal(both.end))
            at = F.when(ended, own.never).otherwise(((at - behind) / span).cast("bigint"))
        kept = probes.withColumns({_AT: F.col(c.SEEN_FROM), _AT_RANK: F.col(c.RANK)})
        asked = kept.withColumns({c.SEEN_FROM: at, c.RANK: rank.cast("bigint")})
        at_arrival = self.emitted(days).at(asked).withColumnRenamed(c.WATERMARK, name)
        return at_arrival.withColumns({c.SEEN_FROM: F.col(_AT), c.RANK: F.col(_AT_RANK)}).drop(
            _AT, _AT_RANK
        )

    def _seen_rank(self) -> Column:
        """The last rank of the input's own emissions that a position of both inputs sees."""
        rank, number = F.col(c.RANK), self.place.axis.number
        side = F.floor((rank % TICK_RANK) / SIDE_SPAN)
        channel = rank % SIDE_SPAN

        def seen(*, on_tick: bool, base: int, everything: int) -> Column:
            """The last rank of the input's ticks, or offers, that a position sees."""
            phase = F.when(rank >= TICK_RANK, 1).otherwise(0)
            earlier = (phase > int(on_tick)) | ((phase == int(on_tick)) & (side > number))
            same = (phase == int(on_tick)) & (side == number)
            return F.when(earlier, long(everything)).when(same, channel + base)

        crossings = self.place.crossings
        if isinstance(crossings, StepCrossings) and crossings.tick_rank:
            ticks = seen(on_tick=True, base=TICK_RANK, everything=AFTER_CHANNELS)
            at_once = seen(on_tick=False, base=0, everything=TICK_RANK - 1)
            return F.coalesce(ticks, at_once, F.lit(-1))
        on_tick = self.place.axis.own.interval_ms is not None
        return F.coalesce(seen(on_tick=on_tick, base=0, everything=AFTER_CHANNELS), F.lit(-1))


@dataclass(frozen=True)
class EmissionsOfTwo:
    """The watermark of two inputs together.

    Attributes:
        left: the left input.
        right: the right input.
        days: the days of the positions to look up.
    """

    left: InputEmissions
    right: InputEmissions
    days: Sequence[date]

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK at their position: see `Emissions.at`."""
        at_arrival = self.left.at(probes, self.days, _LEFT)
        at_arrival = self.right.at(at_arrival, self.days, _RIGHT)
        at_arrival = at_arrival.withColumn(c.WATERMARK, F.least(_LEFT, _RIGHT))
        at_arrival = self._not_below(at_arrival, self.left, self.right, _RIGHT)
        at_arrival = self._not_below(at_arrival, self.right, self.left, _LEFT)
        return at_arrival.drop(_LEFT, _RIGHT, c.RANK)

    def _not_below(
        self, at_arrival: DataFrame, idle: InputEmissions, other: InputEmissions, now: str
    ) -> DataFrame:
        """Rows with the watermark raised to the watermark of one input while the other was idle."""
        changes = _changes_up_to(idle.place, self.days)
        if not changes:
            return at_arrival
        days = sorted({change.day for change in changes})
        stretches = _stretches(at_arrival.sparkSession, changes, idle.place)
        stretches = other.at(stretches, days, _AT_CHANGE)
        stretches = stretches.select(_FROM, _UNTIL, _IS_IDLE, _AT_CHANGE)
        place = _place(c.SEEN_FROM, c.RANK)
        inside = (place >= F.col(_FROM)) & (place < F.col(_UNTIL))
        least = F.when(F.col(_IS_IDLE), F.col(now)).otherwise(F.col(_AT_CHANGE))
        return (
            at_arrival.join(F.broadcast(stretches), inside, "left")
            .withColumn(c.WATERMARK, F.greatest(c.WATERMARK, least))
            .drop(_FROM, _UNTIL, _IS_IDLE, _AT_CHANGE)
        )


class _Change(NamedTuple):
    """A status change of an input: its instant and rank among both inputs, and its day."""

    instant: int
    rank: int
    day: date
    idle: bool


def _changes_up_to(place: InputCrossings, days: Sequence[date]) -> list[_Change]:
    """The status changes on some days, and the last one before them."""
    changes = []
    for one in place.crossings.changes:
        at, rank = place.axis.seen_from(one.seen_from), place.axis.rank_of(one.rank)
        changes.append(_Change(at, rank, day_of(place.axis.both.event_ms(at, rank)), one.idle))
    first, last = (min(days), max(days)) if days else (date.max, date.min)
    earlier = [change for change in changes if change.day < first][-1:]
    return earlier + [change for change in changes if first <= change.day <= last]


def _stretches(spark: SparkSession, changes: Sequence[_Change], place: InputCrossings) -> DataFrame:
    """A row for each interval between two status changes, at the position of the first."""
    both = place.axis.both
    ends = [*((one.instant, one.rank) for one in changes[1:]), (both.never, _AFTER_ALL)]
    starts, ranks, days, idle = zip(*changes, strict=True)
    columns = {
        c.ARRIVAL_DAY: days,
        c.SEEN_FROM: both.column(starts),
        c.RANK: ranks,
        _UNTIL: both.column([end for end, _ in ends]),
        _UNTIL_RANK: [rank for _, rank in ends],
        _IS_IDLE: pa.array(idle, pa.bool_()),
    }
    rows = small_table(spark, columns)
    return rows.withColumns(
        {
            _FROM: _place(c.SEEN_FROM, c.RANK),
            _UNTIL: _place(_UNTIL, _UNTIL_RANK),
        }
    )


def _place(instant: str, rank: str) -> Column:
    """An instant and a rank as one sortable value."""
    at = F.col(instant).cast("decimal(38,0)").alias("at")
    return F.struct(at, F.col(rank).cast("bigint").alias("rank"))
