"""Findings about arrival days whose rows have disappeared from the landing table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from strandline.errors import StrandlineError
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.in_force import with_missing_days
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import days_named, midnight_of
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.findings.check import Finding
from strandline.spec.chained import ResultsSpec

MISSING = "lost"
"""The name of the finding, and of the ledger's column with the days."""
_AT_ONCE = 7
"""The largest number of days that a retention is taken to remove between two successive runs."""


def findings_of_missing_rows(read: ReadPipeline) -> Iterator[Finding]:
    """A finding about the days with missing rows, unless they are acknowledged.

    It is an info where old days were removed as a whole and little by little, as by a retention,
    and nothing needs them.
    """
    state, name = read.state, read.spec.pipeline
    accepted = f"strandline advance {name} --to INSTANT --accept-loss REASON"
    if _is_waited_for(state):
        sentence = (
            f"{_disappeared(read, state.missing_days)}, and windows that need them stay as "
            f"published: land the rows again, or use what remains ({accepted})"
        )
        yield Finding(MISSING, "warning", sentence)
        return
    days = sorted({*state.missing_days} - _acknowledged(state))
    if not days:
        return
    acknowledged = f"strandline acknowledge {name} {MISSING} --reason REASON"
    first = _first_landed(read)
    is_behind = first is not None and first > days[-1] and _had_landed(state, first, days[-1])
    if is_behind and _went_little_by_little(state, days):
        sentence = (
            f"{_disappeared(read, days)}, whose first day is {first} now, as by a retention: "
            f"windows made of them stay as published, and {acknowledged} hides these days. If it "
            f"was none, land them again, or use what remains ({accepted})"
        )
        yield Finding(MISSING, "info", sentence)
        return
    sentence = (
        f"{_disappeared(read, days)}: land them again, use what remains ({accepted}), or leave the "
        f"windows as published ({acknowledged} hides these days, whatever else disappears of them)"
    )
    yield Finding(MISSING, "warning", sentence)


def acknowledgeable_missing_rows(read: ReadPipeline) -> list[Finding]:
    """The finding about missing rows, if no scheduled run waits for them."""
    return [] if _is_waited_for(read.state) else [*findings_of_missing_rows(read)]


def _disappeared(read: ReadPipeline, days: Sequence[date]) -> str:
    return f"rows of {days_named(days)} have disappeared from {read.spec.input_in_words}"


def _is_waited_for(state: PipelineState) -> bool:
    """Whether the last scheduled run has left out what needs missing rows: it completed nothing."""
    last = next((run for run in reversed(state.in_force) if run.is_scheduled), None)
    return bool(state.missing_days and last and last.lost and last.completes_ms is None)


def _acknowledged(state: PipelineState) -> set[date]:
    """The acknowledged days that every later run has found with missing rows, too."""
    steps = [step for step in state.steps if step.step == "acknowledged" and step.settled]
    if not steps:
        return set()
    since = [step for step in state.steps if step.position > steps[-1].position]
    found = [{*(step.lost or ())} for step in with_missing_days(since)]
    return {*(steps[-1].settled or ())}.intersection(*found)


def _went_little_by_little(state: PipelineState, days: Sequence[date]) -> bool:
    """Whether no run has found more than `_AT_ONCE` of some missing days that were there before."""
    missing = {*days}
    for step in with_missing_days(state.steps):
        earlier = missing.intersection(step.lost or ())
        if len(missing) - len(earlier) > _AT_ONCE:
            return False
        missing = earlier
    return True


def _had_landed(state: PipelineState, first: date, lost: date) -> bool:
    """Whether the first day that is left may have landed before a run found another day missing.

    Otherwise a table was overwritten by a newer day, as one that holds a single day.
    """
    losses = [step for step in with_missing_days(state.steps) if lost in (step.lost or ())]
    found = min(losses, key=lambda step: step.position, default=None)
    earlier = (
        step.horizon_ms
        for step in state.steps
        if found and step.position < found.position and step.run_id != found.run_id
    )
    horizons = [horizon_ms for horizon_ms in earlier if horizon_ms is not None]
    return not horizons or midnight_of(first) < max(horizons)  # older steps may have been removed


def _first_landed(read: ReadPipeline) -> date | None:
    """The first arrival day of the landing table by its log; None: it has none, or is not known."""
    if isinstance(read.spec, ResultsSpec) or read.spec.has_two_sources:
        return None
    try:
        log = LandingLog.of(read.store.lake, read.spec)
    except StrandlineError:  # a finding of its own
        return None
    if log is None:
        return None
    days = log.days_of_files(log.day_partition(read.spec.source.arrival_date))
    return min((day for day in days if day is not None), default=None)
