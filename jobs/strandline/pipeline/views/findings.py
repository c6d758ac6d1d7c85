"""What is not as it must be about a pipeline: for status, report and whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.lake.ledger import UPKEEP, Entry
from strandline.model.intervals import instant_of
from strandline.quality.findings.check import Finding, findings_in
from strandline.quality.findings.freshness import ScheduledRun, not_run_since
from strandline.spec import PipelineSpec

_NOT_JUDGED = ("dropped", "dropping")
"""Steps after which what a run found is of no run any more."""


def findings_of(
    spec: PipelineSpec, entries: Sequence[Entry], now_ms: int | None = None
) -> list[Finding]:
    """The findings that stand: of the last scheduled run, and of the last one by hand since.

    Args:
        spec: the pipeline.
        entries: its ledger.
        now_ms: the time of the clock, for what a schedule has missed; None: nobody asks.
    """
    schedule = None if now_ms is None else not_run_since(spec.schedule, _runs(entries), now_ms)
    return [*([schedule] if schedule else []), *_of_audits(entries)]


def _runs(entries: Sequence[Entry]) -> Iterator[ScheduledRun]:
    """The scheduled runs that have published, repeated one that did, or been rejected."""
    for entry in entries:
        ended = entry.step in {"published", "repeated", "rejected"}
        if entry.kind == "advance" and ended and entry.horizon_ms and entry.written_at:
            yield ScheduledRun(entry.horizon_ms, instant_of(entry.written_at))


def _of_audits(entries: Sequence[Entry]) -> Iterator[Finding]:
    """What does not hold by the last audits; a run by hand over everything counts as scheduled."""
    dropped = {entry.run_id for entry in entries if entry.step in _NOT_JUDGED}
    by_kind: dict[str, Entry] = {}
    for entry in entries:
        if entry.audit is None or entry.kind in UPKEEP or entry.run_id in dropped:
            continue
        if entry.kind == "advance" or entry.completes_ms is not None:
            by_kind.clear()
        by_kind[entry.kind] = entry
    for entry in by_kind.values():
        yield from findings_in(entry.audit or (), entry.run_id)
