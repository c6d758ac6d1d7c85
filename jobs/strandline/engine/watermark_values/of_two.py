"""The values of the combined watermark of two inputs; `CrossingsOfTwo` has its crossings.

At a position it is the minimum over both inputs, or, if that is larger, the last watermark of one
input while the other one was idle: a combined watermark never decreases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long, small_table
from strandline.engine.history.inputs import HistoryOfTwo
from strandline.engine.position.axis import AFTER_CHANNELS, SEQUENCE_SPAN, SIDE_SPAN, TICK_RANK
from strandline.engine.position.clock import Clock
from strandline.engine.watermark.of_two import InputCrossings
from strandline.engine.watermark_values.of_days import emissions
from strandline.model.intervals import day_of
from strandline.spec.join import SIDES

_AT, _AT_RANK = "_strandline_at", "_strandline_at_rank"
_OWN = {name: f"_strandline_{name}_ms" for name in SIDES}
"""The watermark of each input alone."""
_AT_CHANGE = "_strandline_change_ms"
_FROM, _UNTIL, _IS_IDLE = "_strandline_idle_from", "_strandline_idle_until", "_strandline_is_idle"
_UNTIL_RANK = "_strandline_idle_until_rank"
_AFTER_ALL = 2**60
"""A rank after every position, even after the end of all instants."""


@dataclass(frozen=True)
class EmissionsOfTwo:
    """The watermark of two inputs together.

    Attributes:
        history: the history of both inputs.
        clock: the horizon and the inputs that have ended.
        days: the days of the positions to look up.
    """

    history: HistoryOfTwo
    clock: Clock
    days: Sequence[date]

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the WATERMARK at their position: see `Emissions.at`."""
        at_arrival = probes
        for name, own in _OWN.items():
            at_arrival = self._of_input(name, at_arrival, self.days, own)
        at_arrival = at_arrival.withColumn(c.WATERMARK, F.least(*_OWN.values()))
        left, right = SIDES
        at_arrival = self._not_below(at_arrival, idle=left, other=right)
        at_arrival = self._not_below(at_arrival, idle=right, other=left)
        return at_arrival.drop(*_OWN.values(), c.RANK)

    def at_arrival(self, records: DataFrame) -> DataFrame:
        """Records with the WATERMARK at AT_ARRIVAL: their arrival on the axis of both inputs."""
        position = {c.SEEN_FROM: F.col(c.AT_ARRIVAL), c.RANK: F.lit(AFTER_CHANNELS)}
        return self.at(records.withColumns(position)).drop(c.SEEN_FROM)

    def _of_input(
        self, name: str, probes: DataFrame, days: Sequence[date], column: str
    ) -> DataFrame:
        """Probes at positions of both inputs, with an input's own watermark as a column."""
        given = self.history.inputs[name]
        kept = probes.withColumns({_AT: F.col(c.SEEN_FROM), _AT_RANK: F.col(c.RANK)})
        asked = kept.withColumns(_own_position(self.history.crossings.inputs[name]))
        emitted = emissions(given.records, given.history, self.clock, days)
        at_arrival = emitted.at(asked).withColumnRenamed(c.WATERMARK, column)
        return at_arrival.withColumns({c.SEEN_FROM: F.col(_AT), c.RANK: F.col(_AT_RANK)}).drop(
            _AT, _AT_RANK
        )

    def _not_below(self, at_arrival: DataFrame, *, idle: str, other: str) -> DataFrame:
        """Rows with the watermark raised to the watermark of one input while the other was idle."""
        place = self.history.crossings.inputs[idle]
        changes = _changes_up_to(place, self.days)
        if not changes:
            return at_arrival
        days = sorted({change.day for change in changes})
        stretches = _stretches(at_arrival.sparkSession, changes, place)
        stretches = self._of_input(other, stretches, days, _AT_CHANGE)
        stretches = stretches.select(_FROM, _UNTIL, _IS_IDLE, _AT_CHANGE)
        at = _place(c.SEEN_FROM, c.RANK)
        inside = (at >= F.col(_FROM)) & (at < F.col(_UNTIL))
        least = F.when(F.col(_IS_IDLE), F.col(_OWN[other])).otherwise(F.col(_AT_CHANGE))
        return (
            at_arrival.join(F.broadcast(stretches), inside, "left")
            .withColumn(c.WATERMARK, F.greatest(c.WATERMARK, least))
            .drop(_FROM, _UNTIL, _IS_IDLE, _AT_CHANGE)
        )


def _own_position(place: InputCrossings) -> dict[str, Column]:
    """SEEN_FROM and RANK on an input's own axis, for a position of both inputs."""
    own, both = place.axis.own, place.axis.both
    at: Column = F.col(c.SEEN_FROM)
    rank = F.when(F.col(c.RANK) >= AFTER_CHANNELS, AFTER_CHANNELS).otherwise(_seen_rank(place))
    if both.sequenced and not own.sequenced:
        span = F.lit(Decimal(SEQUENCE_SPAN))
        behind = F.pmod(at, span)
        rank = F.when(behind > 0, AFTER_CHANNELS).otherwise(rank)
        ended = at >= F.lit(both.literal(both.end))
        at = F.when(ended, own.never).otherwise(((at - behind) / span).cast("bigint"))
    return {c.SEEN_FROM: at, c.RANK: rank.cast("bigint")}


def _seen_rank(place: InputCrossings) -> Column:
    """The last rank of an input's own emissions that come before a position of both inputs."""
    rank, number = F.col(c.RANK), place.axis.number
    side = F.floor((rank % TICK_RANK) / SIDE_SPAN)
    channel = rank % SIDE_SPAN

    def seen(*, on_tick: bool, base: int, everything: int) -> Column:
        """The last rank of the input's ticks, or of its records' offers, before a position."""
        phase = F.when(rank >= TICK_RANK, 1).otherwise(0)
        earlier = (phase > int(on_tick)) | ((phase == int(on_tick)) & (side > number))
        same = (phase == int(on_tick)) & (side == number)
        return F.when(earlier, long(everything)).when(same, channel + base)

    if place.crossings.tick_rank:
        ticks = seen(on_tick=True, base=TICK_RANK, everything=AFTER_CHANNELS)
        at_once = seen(on_tick=False, base=0, everything=TICK_RANK - 1)
        return F.coalesce(ticks, at_once, F.lit(-1))
    on_tick = place.axis.own.interval_ms is not None
    return F.coalesce(seen(on_tick=on_tick, base=0, everything=AFTER_CHANNELS), F.lit(-1))


class _Change(NamedTuple):
    """A change of an input to idle or active, with its position on the axis of both inputs."""

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
