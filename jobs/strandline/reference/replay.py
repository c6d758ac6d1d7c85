"""Replays a stream record by record, exactly as a Flink job would process it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from strandline.errors import InputError
from strandline.model.lateness import is_window_fired
from strandline.reference.answer import (
    Emission,
    FiredPane,
    Firing,
    LateRecord,
    OpenWindow,
    Origin,
    Outcome,
    Replay,
    StatusChange,
)
from strandline.reference.channels import ChannelsBehindValve, Combiner
from strandline.reference.evictors import keep_by
from strandline.reference.job import Input, Job
from strandline.reference.records import Record
from strandline.reference.sessions import SessionOperator
from strandline.reference.splits import SplitsOfOneSource
from strandline.reference.triggers import trigger_of
from strandline.reference.valve import StatusWatermarkValve
from strandline.reference.windows import (
    GlobalWindowOperator,
    GridWindowOperator,
    WindowOperator,
)
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.source import Source
from strandline.spec.trigger import Continuous
from strandline.spec.watermark import Watermark
from strandline.spec.window import Global, GridWindow, Session
from strandline.spec.windowed import WindowedSpec


def replay(
    spec: PipelineSpec,
    records: Iterable[Record],
    *,
    start_ms: int,
    horizon_ms: int | None = None,
    end_of_input: bool = False,
) -> Replay:
    """The answer of a Flink job of a pipeline on some records.

    Args:
        spec: the pipeline.
        records: its well-formed records, in any order; each id once.
        start_ms: when the job's clock started: ticks come at `start_ms + k * interval`, k >= 1.
        horizon_ms: only records and ticks before it count; None: everything up to the last record.
        end_of_input: whether the input ends at the horizon: every channel emits MAX_WATERMARK.

    Raises:
        InputError: a record's channel is not one of the pipeline's channels; or the input ends
            where Flink would fire for ever.
    """
    refuse_endless_firing(spec, end_of_input=end_of_input)
    job = WindowJob(spec, {"": input_of(spec.source, spec.watermark, start_ms)})
    job.run(records, horizon_ms=horizon_ms, end_of_input=end_of_input)
    return job.answer()


def refuse_endless_firing(spec: WindowedSpec, *, end_of_input: bool) -> None:
    """Refuse an end of the input that would make a window fire up to the end of time.

    Raises:
        InputError: a global window fires continuously.
    """
    if end_of_input and isinstance(spec.window, Global) and isinstance(spec.fires_by, Continuous):
        problem = "at the end of the input a global window would fire without end, as in Flink"
        place = f"{spec.pipeline}: trigger.continuous"
        raise InputError(place, problem, "let the input go on, or choose another trigger")


def input_of(
    source: Source,
    watermark: Watermark,
    start_ms: int,
    *,
    valve: StatusWatermarkValve | None = None,
    name: str = "",
) -> Input:
    """A source as an input of a job.

    Args:
        source: the source.
        watermark: the watermark strategy of the source.
        start_ms: when the job's clock starts.
        valve: the valve that combines the channels of both inputs, where there are two; None: the
            input has a valve of its own. With `combine: splits`, the source is one channel of it.
        name: the name of one of two inputs; "" for a single input.
    """
    declared = source.declared_channels or ()
    channels: Combiner
    if watermark.combine == "splits":
        channels = SplitsOfOneSource(watermark, declared, valve=valve, input_name=name)
    else:
        channels = ChannelsBehindValve(watermark, declared, valve=valve, input_name=f"{name}/")
    return Input(source, watermark, channels, start_ms)


class WindowJob(Job):
    """A job of one source or more, with windows over all their records."""

    def __init__(self, spec: WindowedSpec, inputs: Mapping[str, Input]) -> None:
        """A job that has not run.

        Args:
            spec: the pipeline of the windows.
            inputs: the inputs by their names.
        """
        super().__init__(spec.pipeline, inputs)
        self._stage = WindowStage(spec)

    def process(self, record: Record, origin: Origin) -> None:
        """Process a record in the windows."""
        self._stage.process(record, origin)

    def advance(self, name: str, watermark_ms: int, origin: Origin) -> None:
        """Advance the watermark of the windows."""
        self._stage.advance(watermark_ms, origin)

    def answer(self) -> Replay:
        """The whole answer, with the windows still in state."""
        status = tuple(change for _, change in self.status)
        return self._stage.answer(status, self.violations)


class WindowStage:
    """The window operator of a job: processes records and watermarks, and collects the answer."""

    def __init__(self, spec: WindowedSpec) -> None:
        """Start empty."""
        self._windows = _operator(spec)
        self._watermarks: list[Emission] = []
        self._firings: list[Firing] = []
        self._late: list[LateRecord] = []
        self._no_window: list[LateRecord] = []
        self._outcomes: dict[str, Outcome] = {}

    def process(self, record: Record, origin: Origin) -> None:
        """Process a record."""
        outcome, fired = self._windows.process(record)
        self._outcomes[record.record_id] = outcome
        if outcome is Outcome.LATE:
            self._late.append(LateRecord(record, self._windows.watermark_ms))
        elif outcome is Outcome.NO_WINDOW:
            self._no_window.append(LateRecord(record, self._windows.watermark_ms))
        for pane in fired:
            self._fire(pane, origin)

    def advance(self, watermark_ms: int, origin: Origin) -> None:
        """Process a higher watermark."""
        self._watermarks.append(Emission(origin, watermark_ms))
        for pane in self._windows.advance(watermark_ms):
            self._fire(pane, origin)

    def answer(self, status: tuple[StatusChange, ...] = (), violations: int = 0) -> Replay:
        """The whole answer, with the windows still in state."""
        watermark_ms = self._windows.watermark_ms
        return Replay(
            watermarks=tuple(self._watermarks),
            valve_status=status,
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
            outcomes=self._outcomes,
            violations=violations,
            unfired=tuple(self._windows.unfired),
            accepted_late=tuple(self._windows.accepted_late),
        )

    def _fire(self, pane: FiredPane, origin: Origin) -> None:
        pane_fields = {f.name: getattr(pane, f.name) for f in fields(pane)}
        watermark_ms = self._windows.watermark_ms
        self._firings.append(Firing(**pane_fields, watermark_ms=watermark_ms, origin=origin))


def _operator(spec: WindowedSpec) -> WindowOperator:
    """The operator of a pipeline's windows, with its trigger and its evictor."""
    window, evictor = spec.window, spec.evicts_by
    keep = None if evictor is None else keep_by(evictor)
    how: dict[str, Any] = {
        "allowed_lateness_ms": spec.allowed_lateness,
        "trigger": trigger_of(spec.fires_by),
        "evict_before": keep if evictor and not evictor.after else None,
        "evict_after": keep if evictor and evictor.after else None,
    }
    if isinstance(window, Session):
        return SessionOperator(window.gap_ms, **how)
    if isinstance(window, GridWindow):
        return GridWindowOperator(window.assigner, **how)
    return GlobalWindowOperator(**how)
