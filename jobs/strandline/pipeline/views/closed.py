"""The instant before which no window can change any more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from strandline.engine.position.grid import Grid, gap_of
from strandline.lake.landing.changed_results import ranges_over
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK, last_late_end
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import PAIRS
from strandline.spec.window import Session

_SHORTEST_GAP_MS = 1


def closed_up_to(
    spec: PipelineSpec,
    state: PipelineState,
    watermark: HeldBack | None,
    changed: Iterable[date] = (),
) -> int | None:
    """The instant, in ms, before which no window can change; None: all published slots are closed.

    It is the start of the first published slot that is not closed, or of an earlier slot without
    records, in which a record would still be accepted: not all of these are published. Days to
    recompute may still change closed slots.

    Args:
        spec: the pipeline.
        state: the pipeline's state, by its ledger.
        watermark: the watermark by the evaluated arrivals (`evaluated_watermark`); None: it is not
            known, so that only published slots count.
        changed: over results, the dates of results that have changed since they were used
            (`dates_to_use_again`): the next scheduled run rebuilds their windows.
    """
    closed_ms = _closed_by_slots(spec, state, watermark)
    if not isinstance(spec, ResultsSpec) or not (again := ranges_over(changed, spec)):
        return closed_ms
    again_ms = state.not_closed_by_hand(again[0].start_ms)
    return again_ms if closed_ms is None else min(closed_ms, again_ms)


def _closed_by_slots(
    spec: PipelineSpec, state: PipelineState, watermark: HeldBack | None
) -> int | None:
    """The same by the slots that are published, or would still accept a record."""
    published_ms = _first_open(spec, state)
    is_decided = published_ms is None and not state.days_to_recompute
    if is_decided or watermark is None or Grid.of(spec).all_time:
        return published_ms
    emitted_ms = watermark.watermark_ms
    first_ms = first_accepting(spec, MIN_WATERMARK if emitted_ms is None else emitted_ms)
    accepting_ms = state.not_closed_by_hand(first_ms)
    return accepting_ms if published_ms is None else min(published_ms, accepting_ms)


def _first_open(spec: PipelineSpec, state: PipelineState) -> int | None:
    """The first published slot that is not closed, neither by the watermark nor by `--close`.

    No watermark closes windows of all time, nor those of a saturated lateness.
    """
    first_ms = state.first_open_ms
    if first_ms is None:
        return None
    open_ms = state.not_closed_by_hand(first_ms)
    return None if open_ms > first_ms and Grid.of(spec).all_time else open_ms


def first_accepting(spec: PipelineSpec, watermark_ms: int) -> int:
    """The start of the first slot of which a window would still accept a record.

    A session can begin in the middle of a slot. A record of an interval join is late by itself.
    """
    grid = Grid.of(spec)
    if not isinstance(spec.window, Session):
        return grid.first_open(watermark_ms)
    gap_ms = _SHORTEST_GAP_MS if spec.result == PAIRS else gap_of(spec) or _SHORTEST_GAP_MS
    late_ms = last_late_end(watermark_ms, allowed_lateness_ms=spec.allowed_lateness)
    return max(grid.newest_starts(late_ms + 1 - gap_ms), LEAST_INSTANT_MS)
