"""Whether a run is a small one, before it starts: by the landing's log and the ledger."""

from __future__ import annotations

from datetime import date

from strandline.lake.landing_log import LandingLog
from strandline.lake.state import PipelineState
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, TimeRange, midnight_of
from strandline.spec.pipeline import PipelineSpec

_SMALL_BYTES = 64 * 2**20
"""So many are read and rebuilt before a JVM has warmed up."""
_AROUND_MS = 2 * DAY_MS
"""Most records of a window arrive at most so long before or after it."""


def is_small(
    spec: PipelineSpec, state: PipelineState, log: LandingLog, within: TimeRange | None
) -> bool:
    """Whether a run is over before a JVM would have warmed up.

    It reads what no run has published yet, and what arrived about its range. A guess: how quick the
    run is depends on it, and nothing else.

    Args:
        spec: the pipeline.
        state: what is known of it by its ledger.
        log: of the landing table.
        within: the range that is asked for; None: a scheduled run's.
    """
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
