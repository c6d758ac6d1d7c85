"""Positions as plain numbers, so that "first", "late" and "fired" are comparisons of integers.

The *instant* of a record is its arrival and, where records are ordered inside a millisecond, its
`sequence`. A record *offers* a watermark to its channel: with per-record emission the channel emits
it at once, else on the next tick. Whether a record is late depends on the watermark just before its
instant. So every event of the watermark has a number `seen_from`: the first instant whose records
arrive after it. A tick at T has `seen_from` T; a watermark that a record emits itself has the next
instant. Thus `late <=> instant >= seen_from(close)`. Events with one `seen_from` are ordered by
their *rank*.

Two inputs have their positions on one axis: at one instant, offers of records come before ticks,
and each of them first for the left input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from strandline.engine.position.grid import WIDEST_MS
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, midnight_of
from strandline.model.watermarks import Ticks
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec

SEQUENCE_SPAN = 2**64
AFTER_CHANNELS = 2**31
"""The rank of a record at its instant: after the watermarks that all channels emit there."""
END_RANK = AFTER_CHANNELS + 1
"""The rank of the end of the input of a range of windows: its watermark is MAX_WATERMARK."""
TICK_RANK = 2**30
"""Where channels can go idle: the rank of the first channel's probe on a tick, after all offers of
records before the tick."""
ALL_SPLITS = TICK_RANK - 1
"""The rank of the splits of a source, whose watermarks at one instant are combined in one step."""
LEAST_SEQUENCE = -(2**63)
Instant = TypeVar("Instant", int, npt.NDArray[Any])
"""One instant, or an array of instants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The numbering of the instants of a pipeline, which depends on its spec alone.

    An instant is the arrival in ms; with a sequence, `arrival * 2**64 + (sequence + 2**63)`.

    Attributes:
        interval_ms: the interval of periodic emission; 0: nothing is emitted; None: each record
            emits at its own position.
        sequenced: whether an instant is (arrival, sequence) instead of the arrival alone. Ticks
            come between arrivals, so a sequence counts only where emission is per record.
    """

    interval_ms: int | None
    sequenced: bool

    @classmethod
    def of_spec(cls, spec: PipelineSpec) -> Numbering:
        """The numbering of a pipeline; of two sources together, a sequence counts if one has it."""
        if isinstance(spec, ResultsSpec):  # the watermark is the other pipeline's
            return cls.of_spec(spec.upstream)
        if isinstance(spec, TwoSourcesSpec):
            sides = (cls.of_spec(spec.left), cls.of_spec(spec.right))
            return Numbering(interval_ms=None, sequenced=any(side.sequenced for side in sides))
        interval = spec.watermark.emission_interval_ms
        return Numbering(
            interval_ms=None if interval is None else min(interval, WIDEST_MS),
            sequenced=interval is None and spec.source.sequence is not None,
        )

    @property
    def never(self) -> int:
        """The instant after all others: an event there never happens."""
        return 10**38 - 1 if self.sequenced else 2**63 - 1

    @property
    def end(self) -> int:
        """The instant at which the input ends: after every record, before `never`."""
        return self.never - 1

    @property
    def scale(self) -> int:
        """The number of instants in a millisecond."""
        return SEQUENCE_SPAN if self.sequenced else 1

    @property
    def kind(self) -> pa.DataType:
        """The type of a column of instants."""
        return pa.decimal128(38, 0) if self.sequenced else pa.int64()

    def column(self, instants: Iterable[Any]) -> pa.Array:
        """Instants as an Arrow column; a missing one is null."""
        return pa.array([None if pd.isna(at) else int(at) for at in instants], self.kind)

    def literal(self, instant: int) -> int | Decimal:
        """An instant as a Spark literal: long, or decimal where a sequence counts."""
        return Decimal(instant) if self.sequenced else instant

    def first_of(self, arrival_ms: int) -> int:
        """The first instant of an arrival millisecond."""
        return arrival_ms * self.scale

    def end_of(self, day: date) -> int:
        """The first instant after an arrival day."""
        return self.first_of(midnight_of(day) + DAY_MS)

    def instant(self, arrival_ms: int, sequence: int) -> int:
        """The instant of a record; for one without a sequence, pass `LEAST_SEQUENCE`."""
        return self.first_of(arrival_ms) + (sequence - LEAST_SEQUENCE if self.sequenced else 0)

    def arrival_of(self, instant: int) -> int:
        """The arrival millisecond of an instant."""
        return instant // self.scale

    def sequence_of(self, instant: int) -> int | None:
        """The sequence of an instant; None where it does not count."""
        return instant % SEQUENCE_SPAN + LEAST_SEQUENCE if self.sequenced else None

    def event_ms(self, seen_from: Instant, rank: Instant) -> Instant:
        """The millisecond of an event of the watermark, by its `seen_from` and its rank.

        For one event, or for arrays of events.
        """
        at_once = (rank < TICK_RANK) & (self.interval_ms is None)
        happened: Instant = (seen_from - at_once) // self.scale
        return happened

    def known_below(self, horizon_ms: int) -> int:
        """The exclusive upper bound of `seen_from` for events before a horizon."""
        return self.first_of(horizon_ms) + (1 if self.interval_ms is None else 0)

    def happened_before(
        self, instant_ms: int, seen_from: npt.NDArray[Any], ranks: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Whether advances of the watermark happen before a time in ms."""
        first = self.first_of(instant_ms)
        on_tick = (ranks >= TICK_RANK) | (self.interval_ms is not None)
        return np.where(on_tick, seen_from < first, seen_from <= first).astype(bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis(Numbering):
    """The axis of instants of one pipeline: their numbers, and the ticks between them.

    Attributes:
        start_ms: when the job's clock started.
        tick_ms: the interval of ticks that do not emit; None: ticks emit.
    """

    start_ms: int
    tick_ms: int | None = None

    @classmethod
    def of(cls, spec: PipelineSpec, start_ms: int) -> Axis:
        """The axis of a pipeline whose clock started at `start_ms`."""
        if isinstance(spec, ResultsSpec):  # the watermark is the other pipeline's
            return cls.of(spec.upstream, start_ms)
        if isinstance(spec, TwoSourcesSpec):
            return cls.of_both(cls.of(spec.left, start_ms), cls.of(spec.right, start_ms))
        numbering = Numbering.of_spec(spec)
        return cls(
            start_ms=start_ms,
            interval_ms=numbering.interval_ms,
            sequenced=numbering.sequenced,
            tick_ms=min(spec.watermark.interval_ms or 0, WIDEST_MS),
        )

    @classmethod
    def of_both(cls, left: Axis, right: Axis) -> Axis:
        """The axis of two inputs together; a sequence counts if it does for one of them."""
        return cls(
            start_ms=min(left.start_ms, right.start_ms),
            interval_ms=None,
            sequenced=left.sequenced or right.sequenced,
            tick_ms=0,
        )

    @property
    def ticks(self) -> Ticks | None:
        """The ticks of periodic emission; None: there are none."""
        interval_ms = self.interval_ms if self.tick_ms is None else self.tick_ms
        return Ticks(self.start_ms, interval_ms) if interval_ms else None

    def all_seen_from(self, instants: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The `seen_from` of the watermarks that records at some instants offer."""
        reached = instants < self.end
        seen = np.full_like(instants, self.never)
        if self.interval_ms is None:
            seen[reached] = instants[reached] + 1
        elif self.interval_ms:
            late = instants[reached]
            tick = late + self.interval_ms - (late - self.start_ms) % self.interval_ms
            seen[reached] = np.maximum(tick, self.start_ms + self.interval_ms)
        return seen

    def last_tick_before(self, instant_ms: int) -> int:
        """The last tick strictly before an instant; before every arrival if there is none yet."""
        ticks = self.ticks
        if ticks is None:
            return LEAST_INSTANT_MS - 1
        tick = instant_ms - 1 - (instant_ms - 1 - self.start_ms) % ticks.interval_ms
        return tick if tick > self.start_ms else LEAST_INSTANT_MS - 1

    def horizon_after(self, last_arrival_ms: int) -> int:
        """The horizon of a run by hand: just after the first tick that follows the last arrival."""
        ticks = self.ticks
        return (ticks.after(last_arrival_ms) if ticks else last_arrival_ms) + 1


SIDE_SPAN = 2**28
"""The distance of the right input's ranks from the left input's; no input has so many channels."""


@dataclass(frozen=True)
class InputAxis:
    """The axis of one of two inputs, and the axis of both.

    Attributes:
        own: the axis of the input alone.
        both: the axis of both inputs.
        number: 0: left; 1: right.
    """

    own: Axis
    both: Axis
    number: int

    @classmethod
    def of_two(cls, left: Axis, right: Axis) -> tuple[InputAxis, InputAxis]:
        """The axes of two inputs."""
        both = Axis.of_both(left, right)
        return cls(left, both, 0), cls(right, both, 1)

    def seen_from(self, instant: int) -> int:
        """An instant of the input's own axis, as an instant on the axis of both inputs."""
        if instant >= self.own.end:
            return self.both.never - (self.own.never - instant)
        if self.both.sequenced and not self.own.sequenced:
            return self.both.first_of(instant)
        return instant

    def rank_of(self, rank: int) -> int:
        """A rank of the input's own axis, as a rank among the events of both inputs.

        Order: offers of records of the left input, of the right one, then (from TICK_RANK on) ticks
        of the left input, of the right one. If the input emits on ticks only, all its ranks are of
        ticks.
        """
        on_tick = rank >= TICK_RANK or self.own.interval_ms is not None
        group = TICK_RANK if on_tick else 0
        in_group = max(rank, 0) % SIDE_SPAN  # TICK_RANK is a multiple of SIDE_SPAN
        return group + self.number * SIDE_SPAN + in_group
