"""Jobs of two inputs: windows over both, and pairs within an interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from strandline.model.windows import TimeWindow
from strandline.reference.answer import Emission, LateRecord, Origin, Replay, StatusChange
from strandline.reference.job import Input, Job
from strandline.reference.records import Record
from strandline.reference.replay import WindowJob, input_of, refuse_endless_firing
from strandline.reference.timers import EventTimeTimers, Timer
from strandline.reference.valve import CombinedWatermark, PartialWatermark, StatusWatermarkValve
from strandline.spec.join import (
    SIDES,
    Interval,
    IntervalJoinSpec,
    Side,
    Sources,
    WindowJoinSpec,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A left and a right record that were joined, the watermark then, and the origin."""

    left: Record
    right: Record
    watermark_ms: int
    origin: Origin

    @property
    def ts_ms(self) -> int:
        """The later event time of both."""
        return max(self.left.ts_ms, self.right.ts_ms)


@dataclass(frozen=True, slots=True)
class PairReplay:
    """Everything that a Flink job of an interval join has emitted, in order, and its last state.

    Attributes:
        watermarks: every advance of the combined watermark of both inputs.
        input_watermarks: every advance of an input's own watermark, by the name of the input.
        input_status: every change of an input between idle and active, by its name.
        pairs: every pair.
        late: the records whose event time was below the watermark: neither joined nor kept.
        kept: the records still in state, by input.
        final_watermark_ms: the watermark at the end; MIN_WATERMARK: none yet.
    """

    watermarks: tuple[Emission, ...]
    input_watermarks: tuple[tuple[str, Emission], ...]
    input_status: tuple[tuple[str, StatusChange], ...]
    pairs: tuple[Pair, ...]
    late: tuple[LateRecord, ...]
    kept: dict[str, tuple[Record, ...]]
    final_watermark_ms: int


def replay_windows_of_two(
    spec: WindowJoinSpec,
    records: Iterable[Record],
    *,
    start_ms: int,
    horizon_ms: int | None = None,
    end_of_input: bool = False,
) -> Replay:
    """The answer of a Flink job of windows over two inputs; arguments and errors as for `replay`.

    Each record has its `input`; ids are unique over both. One `StatusWatermarkValve` combines the
    left channels and then the right ones, so a slow side holds back both. A join fires only if both
    sides have a record, each time with all pairs of them.
    """
    refuse_endless_firing(spec, end_of_input=end_of_input)
    valve = StatusWatermarkValve()
    inputs = {name: _input(spec.sources, name, start_ms, valve) for name in SIDES}
    job = _WindowsOfTwo(spec, inputs)
    job.run(records, horizon_ms=horizon_ms, end_of_input=end_of_input)
    return job.answer()


def replay_interval_join(
    spec: IntervalJoinSpec,
    records: Iterable[Record],
    *,
    start_ms: int,
    horizon_ms: int | None = None,
    end_of_input: bool = False,
) -> PairReplay:
    """The answer of a Flink job of an interval join; arguments and errors as for `replay`.

    Each record has its `input`; ids are unique over both. Each input has its own valve, and the
    join's watermark is the minimum over the inputs that are not idle.
    """
    inputs = {name: _input(spec.sources, name, start_ms, StatusWatermarkValve()) for name in SIDES}
    job = _IntervalJoin(spec, inputs)
    job.run(records, horizon_ms=horizon_ms, end_of_input=end_of_input)
    return job.answer()


def _input(sources: Sources, name: str, start_ms: int, valve: StatusWatermarkValve) -> Input:
    side: Side = getattr(sources, name)
    return input_of(side, side.watermark, start_ms, valve=valve, name=name)


class _WindowsOfTwo(WindowJob):
    """A union of two inputs, then windows. Flink: `CoGroupedStreams`, `JoinedStreams`."""

    def __init__(self, spec: WindowJoinSpec, inputs: dict[str, Input]) -> None:
        super().__init__(spec, inputs)
        self._needs_both = spec.join.window is not None

    def answer(self) -> Replay:
        """See `WindowJob`; for a join, without the firings that have records of one side only."""
        answer = super().answer()
        if not self._needs_both:
            return answer
        both = [f for f in answer.firings if len({record.input for record in f.members}) > 1]
        return replace(answer, firings=tuple(both))


class _IntervalJoin(Job):
    """Flink: `IntervalJoinOperator`."""

    def __init__(self, spec: IntervalJoinSpec, inputs: dict[str, Input]) -> None:
        super().__init__(spec.pipeline, inputs)
        self._join: Interval = spec.join
        self._parts = {name: PartialWatermark() for name in inputs}
        self._combined = CombinedWatermark()
        self._kept: dict[tuple[str, Any], list[Record]] = defaultdict(list)
        self._expiries = EventTimeTimers()
        self._watermarks: list[Emission] = []
        self._input_watermarks: list[tuple[str, Emission]] = []
        self._pairs: list[Pair] = []
        self._late: list[LateRecord] = []

    def process(self, record: Record, origin: Origin) -> None:
        """Join a record with the records kept of the other side, and keep it; refuse it if late."""
        watermark_ms = self._combined.watermark_ms
        if record.ts_ms < watermark_ms:
            self._late.append(LateRecord(record, watermark_ms))
            return
        is_left = record.input == "left"
        for other in self._kept["right" if is_left else "left", record.key]:
            left, right = (record, other) if is_left else (other, record)
            if self._join.lower_ms <= right.ts_ms - left.ts_ms <= self._join.upper_ms:
                self._pairs.append(Pair(left, right, watermark_ms, origin))
        self._kept[record.input, record.key].append(record)
        expiry_ms = record.ts_ms + max(self._join.upper_ms if is_left else -self._join.lower_ms, 0)
        # Flink's state of a side and a key is a map by event time, cleaned up time by time
        instant = TimeWindow(record.ts_ms, record.ts_ms + 1)
        self._expiries.register(Timer(expiry_ms, instant, (record.input, record.key)))

    def advance(self, name: str, watermark_ms: int, origin: Origin) -> None:
        """Process an input's watermark, which ends that input's idleness."""
        self._input_watermarks.append((name, Emission(origin, watermark_ms)))
        self._parts[name].set_watermark(watermark_ms)
        self._combine(origin)

    def change_status(self, name: str, change: StatusChange) -> None:
        """Exclude an idle input from the minimum, or include it again."""
        super().change_status(name, change)
        self._parts[name].idle = change.status == "idle"
        self._combine(change.origin)

    def answer(self) -> PairReplay:
        """The whole answer, with the records still in state."""
        kept: dict[str, list[Record]] = {name: [] for name in self._parts}
        for (name, _), records in self._kept.items():
            kept[name] += records
        return PairReplay(
            watermarks=tuple(self._watermarks),
            input_watermarks=tuple(self._input_watermarks),
            input_status=tuple(self.status),
            pairs=tuple(self._pairs),
            late=tuple(self._late),
            kept={name: tuple(records) for name, records in kept.items()},
            final_watermark_ms=self._combined.watermark_ms,
        )

    def _combine(self, origin: Origin) -> None:
        """Advance the combined watermark, and drop records that no later record can pair with."""
        watermark_ms = self._combined.update(self._parts.values())
        if watermark_ms is None:
            return
        self._watermarks.append(Emission(origin, watermark_ms))
        for expiry in self._expiries.pop_reached(watermark_ms):
            kept = self._kept[expiry.key]
            kept[:] = [record for record in kept if record.ts_ms != expiry.window.start_ms]
