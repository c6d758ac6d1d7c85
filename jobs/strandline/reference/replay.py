"""Replaying a stream record by record, exactly as a Flink job would have met it."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.errors import InputError
from strandline.model.lateness import MAX_WATERMARK, is_window_fired
from strandline.model.watermarks import Candidate, Ticks
from strandline.reference.answer import (
    Cause,
    Emission,
    Firing,
    LateRecord,
    Moment,
    OpenWindow,
    Replay,
    Timing,
)
from strandline.reference.channels import Channel, newcomers
from strandline.reference.records import Record, instants
from strandline.reference.valve import StatusWatermarkValve
from strandline.reference.windows import Fate, Pane, WindowOperator
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.support import require_support
from strandline.spec.window import Tumbling


def replay(
    spec: PipelineSpec,
    records: Iterable[Record],
    *,
    start_ms: int,
    horizon_ms: int | None = None,
    end_of_input: bool = False,
) -> Replay:
    """What a Flink job of this pipeline does with these records.

    Args:
        spec: the pipeline.
        records: its well-formed records, in any order; each id once.
        start_ms: when the job's clock started: ticks come at `start_ms + k * interval`, k >= 1.
        horizon_ms: records and ticks before it count; None: everything up to the last record.
        end_of_input: whether the input has ended there: every channel then gets MAX_WATERMARK.

    Raises:
        InputError: the spec asks for what is not supported yet, or a record's channel is not
            one of its channels.
    """
    require_support(spec, origin=spec.pipeline)
    job = _Job(spec, start_ms)
    clock_end_ms = start_ms
    known = [r for r in records if horizon_ms is None or r.arrival_ms < horizon_ms]
    for instant in instants(known, sequenced=spec.source.sequence is not None):
        clock_end_ms = instant[0].arrival_ms
        job.run_ticks(until_ms=clock_end_ms)
        job.receive(instant)
    if horizon_ms is not None:
        clock_end_ms = horizon_ms - 1
        job.run_ticks(until_ms=clock_end_ms)
    if end_of_input:
        job.end(at_ms=clock_end_ms)
    return job.answer()


class _Job:
    """The running job: channels, then the valve, then the windows."""

    def __init__(self, spec: PipelineSpec, start_ms: int) -> None:
        candidate, window = spec.watermark.candidate, spec.window
        if candidate is None or not isinstance(window, Tumbling):  # pragma: no cover
            msg = "require_support has let through what is not supported"
            raise TypeError(msg)
        declared = spec.source.declared_channels
        self._spec = spec
        self._candidate: Candidate = candidate
        self._discovers = declared is None
        self._channels = {channel: Channel(candidate) for channel in declared or ()}
        self._valve = StatusWatermarkValve(self._channels)
        self._windows = WindowOperator(window.assigner, allowed_lateness_ms=spec.allowed_lateness)
        interval_ms = spec.watermark.interval_ms
        self._per_record = interval_ms is None
        self._ticks = Ticks(start_ms, interval_ms) if interval_ms else None
        self._next_tick_ms = start_ms + (interval_ms or 0)
        self._watermarks: list[Emission] = []
        self._firings: list[Firing] = []
        self._late: list[LateRecord] = []
        self._no_window: list[Record] = []
        self._fates: dict[str, Fate] = {}

    def run_ticks(self, *, until_ms: int) -> None:
        """Run the ticks that are due, the one at `until_ms` included."""
        if self._ticks is None:
            return
        while self._next_tick_ms <= until_ms and not self._settled:
            for channel in self._channels:
                self._probe(channel, Moment(self._next_tick_ms, Cause.TICK))
            self._next_tick_ms += self._ticks.interval_ms
        # the ticks left out would have probed channels that have nothing to say
        self._next_tick_ms = max(self._next_tick_ms, self._ticks.after(until_ms))

    def receive(self, instant: tuple[Record, ...]) -> None:
        """Take in the records of an instant; what they cause becomes visible after all of them."""
        self._admit(instant)
        for record in instant:
            self._process(record)
            self._channels[record.channel].on_record(record)
        if self._per_record:
            heard = {record.channel for record in instant}
            moment = Moment(instant[-1].arrival_ms, Cause.RECORD, instant[-1])
            for channel in self._channels:
                if channel in heard:
                    self._probe(channel, moment)

    def end(self, *, at_ms: int) -> None:
        """Give every channel, in order, the watermark of the end of the input."""
        for channel in self._channels:
            self._raise(channel, MAX_WATERMARK, Moment(at_ms, Cause.END))

    def answer(self) -> Replay:
        """All that has happened, and what is left."""
        watermark_ms = self._valve.watermark_ms
        return Replay(
            watermarks=tuple(self._watermarks),
            valve_status=(),
            firings=tuple(self._firings),
            late=tuple(self._late),
            no_window=tuple(self._no_window),
            open_at_end=tuple(
                OpenWindow(
                    pane.key,
                    pane.window,
                    pane.members,
                    end_passed=is_window_fired(
                        pane.window.max_timestamp_ms, watermark_ms=watermark_ms
                    ),
                )
                for pane in self._windows.panes()
            ),
            final_watermark_ms=watermark_ms,
            fates=self._fates,
        )

    @property
    def _settled(self) -> bool:
        return all(channel.settled for channel in self._channels.values())

    def _admit(self, instant: tuple[Record, ...]) -> None:
        for name in newcomers(instant, self._channels):
            if not self._discovers:
                place = f"{self._spec.pipeline}: source.channels"
                problem = f"{list(self._channels)} lacks {name!r}, which a record came through"
                raise InputError(place, problem, "leave such records out: they are malformed")
            self._channels[name] = Channel(self._candidate)
            self._valve.join(name)

    def _process(self, record: Record) -> None:
        fate, fired = self._windows.process(record)
        self._fates[record.record_id] = fate
        if fate is Fate.LATE:
            self._late.append(LateRecord(record, self._windows.watermark_ms))
        elif fate is Fate.NO_WINDOW:
            self._no_window.append(record)
        for pane in fired:
            self._fire(pane, Timing.LATE, Moment(record.arrival_ms, Cause.RECORD, record))

    def _probe(self, channel: str, moment: Moment) -> None:
        watermark_ms = self._channels[channel].probe()
        if watermark_ms is not None:
            self._raise(channel, watermark_ms, moment)

    def _raise(self, channel: str, watermark_ms: int, moment: Moment) -> None:
        emitted_ms = self._valve.input_watermark(channel, watermark_ms)
        if emitted_ms is None:
            return
        self._watermarks.append(Emission(moment, emitted_ms))
        for pane in self._windows.advance(emitted_ms):
            self._fire(pane, Timing.ON_TIME, moment)

    def _fire(self, pane: Pane, timing: Timing, moment: Moment) -> None:
        self._firings.append(
            Firing(
                seq=len(self._firings),
                timing=timing,
                key=pane.key,
                window=pane.window,
                members=pane.members,
                watermark_ms=self._windows.watermark_ms,
                moment=moment,
            )
        )
