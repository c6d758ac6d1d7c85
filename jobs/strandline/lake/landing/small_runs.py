"""The estimate of a run's size before it starts, from the landing's log and the ledger."""

from __future__ import annotations

from datetime import date

from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, TimeRange, midnight_of
from strandline.spec.pipeline import PipelineSpec

_SMALL_BYTES = 64 * 2**20
"""The largest input of a run that ends before a JVM has warmed up."""
_AROUND_MS = 2 * DAY_MS
"""The time before and after a window within which most of its records arrive."""


def is_small(
    spec: PipelineSpec, state: PipelineState, log: LandingLog | None, within: TimeRange | None
) -> bool:
    """Whether a run is too short for a JVM to warm up.

    The input is estimated: the bytes that arrived since the last publication, and the ones that
    arrived around the requested range. The answer decides settings of the session that change the
    speed alone.

    Args:
        spec: the pipeline.
        state: the pipeline's state.
        log: the landing table's log; None: unknown, and the run is not called small.
        within: the requested range; None: a scheduled run.
    """
    if log is None:
        return False
    reached_ms = state.frontier_ms
    if reached_ms is None or state.published[-1].timeline_fingerprint != spec.timeline_fingerprint:
        reached_ms = LEAST_INSTANT_MS  # all of it is observed
    new_from_ms = reached_ms - _AROUND_MS

    def is_read(day: date) -> bool:
        begins_ms = midnight_of(day)
        ends_ms = begins_ms + DAY_MS
        return ends_ms > new_from_ms or (
            within is not None
            and begins_ms < within.end_ms + _AROUND_MS
            and ends_ms > within.start_ms - _AROUND_MS
        )

    days_by = log.day_partition(spec.source.arrival_date)
    return log.bytes_of(days_by, is_read) <= _SMALL_BYTES
