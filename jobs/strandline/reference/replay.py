"""Replaying a stream record by record, exactly as a Flink job would have met it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from strandline.errors import InputError
from strandline.model.lateness import is_window_fired
from strandline.model.watermarks import Ticks
from strandline.reference.answer import (
    Cause,
    Emission,
    Firing,
    LateRecord,
    Moment,
    OpenWindow,
    Replay,
    StatusChange,
    Timing,
)
from strandline.reference.channels import ChannelsBehindValve, Combiner, Signal, newcomers
from strandline.reference.records import Record, instants
from strandline.reference.splits import SplitsOfOneSource
from strandline.reference.windows import (
    Fate,
    GridWindowOperator,
    Pane,
    SessionOperator,
    WindowOperator,
)
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Session


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
        InputError: a record's channel is not one of the pipeline's channels.
    """
    job = _Job(spec, start_ms)
    clock_end_ms = start_ms
    known = [r for r in records if horizon_ms is None or r.arrival_ms < horizon_ms]
    if spec.arrival_is_event_time:
        known = [replace(record, ts_ms=record.arrival_ms) for record in known]
    for instant in instants(known, sequenced=spec.source.sequence is not None):
        clock_end_ms = instant[0].arrival_ms
        job.run(until_ms=clock_end_ms)
        job.receive(instant)
    if horizon_ms is not None:
        clock_end_ms = horizon_ms - 1
        job.run(until_ms=clock_end_ms)
    job.retire(until_ms=clock_end_ms + 1)
    if end_of_input:
        job.end(at_ms=clock_end_ms)
    return job.answer()


class _Job:
    """The running job: the source, then the windows."""

    def __init__(self, spec: PipelineSpec, start_ms: int) -> None:
        watermark, declared = spec.watermark, spec.source.declared_channels
        combiner = SplitsOfOneSource if watermark.combine == "splits" else ChannelsBehindValve
        self._spec = spec
        self._discovers = declared is None
        self._source: Combiner = combiner(watermark, declared or ())
        self._ends: dict[int, list[str]] = {}
        for channel, retired_ms in spec.source.retired.items():
            self._ends.setdefault(retired_ms, []).append(channel)
        self._windows = _operator(spec)
        interval_ms = watermark.interval_ms
        self._per_record = interval_ms is None
        self._ticks = Ticks(start_ms, interval_ms) if interval_ms else None
        self._next_tick_ms = start_ms + (interval_ms or 0)
        self._watermarks: list[Emission] = []
        self._status: list[StatusChange] = []
        self._firings: list[Firing] = []
        self._late: list[LateRecord] = []
        self._no_window: list[LateRecord] = []
        self._fates: dict[str, Fate] = {}

    def run(self, *, until_ms: int) -> None:
        """Run what is due before the records of a millisecond: ticks, and ends of channels."""
        self.retire(until_ms=until_ms)
        self._run_ticks(until_ms=until_ms)

    def retire(self, *, until_ms: int) -> None:
        """End the channels that are retired by then, each at the millisecond before."""
        for retired_ms in sorted(ms for ms in self._ends if ms <= until_ms):
            self._run_ticks(until_ms=retired_ms - 1)
            ending = self._finish(retired_ms)
            caused = self._source.flush(ending, retired_ms - 1, probe=self._per_record)
            self._take(caused, Moment(retired_ms - 1, Cause.RECORD))

    def _finish(self, retired_ms: int) -> list[str]:
        """Let the channels that are retired at an instant end; which these are."""
        ending = self._ends.pop(retired_ms, [])
        for channel in ending:
            self._source.finish(channel)
        return ending

    def _run_ticks(self, *, until_ms: int) -> None:
        """Run the ticks that are due, the one at `until_ms` included."""
        if self._ticks is None:
            return
        while self._next_tick_ms <= until_ms and not self._source.is_settled:
            moment = Moment(self._next_tick_ms, Cause.TICK)
            self._take(self._source.tick(self._next_tick_ms), moment)
            self._next_tick_ms += self._ticks.interval_ms
        # the ticks left out would have probed channels that have nothing to say
        self._next_tick_ms = max(self._next_tick_ms, self._ticks.after(until_ms))

    def receive(self, instant: tuple[Record, ...]) -> None:
        """Take in the records of an instant; what they cause becomes visible after all of them."""
        moment = Moment(instant[-1].arrival_ms, Cause.RECORD, instant[-1])
        for name in newcomers(instant, self._source):
            if not self._discovers:
                place = f"{self._spec.pipeline}: source.channels"
                problem = f"{list(self._source)} lacks {name!r}, which a record came through"
                raise InputError(place, problem, "leave such records out: they are malformed")
            self._take(self._source.join(name), moment)
        for record in instant:
            self._process(record)
            self._source.on_event(record)
        heard = {record.channel for record in instant}
        if self._spec.source.sequence is None:  # else it is an instant of its own, after these
            heard.update(self._finish(moment.at_ms + 1))
        caused = self._source.flush(heard, moment.at_ms, probe=self._per_record)
        self._take(caused, moment)

    def end(self, *, at_ms: int) -> None:
        """End the input."""
        self._take(self._source.end(), Moment(at_ms, Cause.END))

    def answer(self) -> Replay:
        """All that has happened, and what is left."""
        watermark_ms = self._windows.watermark_ms
        return Replay(
            watermarks=tuple(self._watermarks),
            valve_status=tuple(self._status),
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
            violations=self._source.violations,
        )

    def _process(self, record: Record) -> None:
        fate, fired = self._windows.process(record)
        self._fates[record.record_id] = fate
        if fate is Fate.LATE:
            self._late.append(LateRecord(record, self._windows.watermark_ms))
        elif fate is Fate.NO_WINDOW:
            self._no_window.append(LateRecord(record, self._windows.watermark_ms))
        for pane in fired:
            self._fire(pane, Timing.LATE, Moment(record.arrival_ms, Cause.RECORD, record))

    def _take(self, signals: Iterable[Signal], moment: Moment) -> None:
        for signal in signals:
            if not isinstance(signal, int):
                self._status.append(StatusChange(moment, signal))
                continue
            self._watermarks.append(Emission(moment, signal))
            for pane in self._windows.advance(signal):
                self._fire(pane, Timing.ON_TIME, moment)

    def _fire(self, pane: Pane, timing: Timing, moment: Moment) -> None:
        number = len(self._firings)
        self._windows.note_firing(pane, number)
        self._firings.append(
            Firing(
                seq=number,
                timing=timing,
                key=pane.key,
                window=pane.window,
                members=pane.members,
                watermark_ms=self._windows.watermark_ms,
                moment=moment,
                supersedes=pane.fired,
            )
        )


def _operator(spec: PipelineSpec) -> WindowOperator:
    window, lateness_ms = spec.window, spec.allowed_lateness
    if isinstance(window, Session):
        return SessionOperator(window.gap_ms, allowed_lateness_ms=lateness_ms)
    return GridWindowOperator(window.assigner, allowed_lateness_ms=lateness_ms)
