"""The windows of a job, and everything that happens in them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from strandline.model.lateness import is_window_fired
from strandline.reference.answer import (
    Emission,
    Firing,
    LateRecord,
    OpenWindow,
    Origin,
    Replay,
    StatusChange,
)
from strandline.reference.evictors import keep_by
from strandline.reference.panes import FiredPane, Outcome
from strandline.reference.records import Record
from strandline.reference.sessions import SessionOperator
from strandline.reference.triggers import trigger_of
from strandline.reference.windows import (
    GlobalWindowOperator,
    GridWindowOperator,
    WindowOperator,
)
from strandline.spec.window import GridWindow, Session
from strandline.spec.windowed import WindowedSpec


class WindowStage:
    """A pipeline's windows: processes records and watermarks, and collects the answer."""

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
