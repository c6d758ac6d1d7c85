"""The findings about a pipeline, for status, report and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.command import in_words
from strandline.model.intervals import days_named, instant_of, start_text_of, text_of
from strandline.pipeline.request.driver import state_of
from strandline.pipeline.views.audited import findings_of_audits
from strandline.pipeline.views.missing_rows import findings_of_missing_rows
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.runs import findings_of_failed_runs
from strandline.quality.findings.check import Finding, in_order
from strandline.quality.findings.freshness import ScheduledRun, not_run_since
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.visible import number_of

_DECIDED = ("published", "rejected")
"""Outcomes that say whether the work of scheduled runs is published."""


def findings_of(
    read: ReadPipeline, unfinished: Mapping[str, Any], now_ms: int | None = None
) -> list[Finding]:
    """The present findings, the gravest first.

    They are failed runs, the findings of audits that stand, and the work that runs have left for
    the next ones.

    Args:
        read: the pipeline.
        unfinished: the unfinished work of earlier runs (`unfinished_work`).
        now_ms: the current time, for missed schedules; None: not checked.
    """
    spec, state = read.spec, read.state
    schedule = None if now_ms is None else not_run_since(spec.cron, _runs(state.steps), now_ms)
    found = [
        *_of_refusals(unfinished["refused"]),
        *_of_the_clock(spec, state),
        *findings_of_failed_runs(state),
        *_of_audits(read),
        *_of_unfinished(state, unfinished),
        *findings_of_missing_rows(read),
        *_of_overridden(spec, state),
        *_of_upstream(state, unfinished["upstream"]),
        *_of_closures(state),
        *_of_erasures(state),
    ]
    return in_order([*([schedule] if schedule else []), *found])


def _of_audits(read: ReadPipeline) -> Iterator[Finding]:
    """The findings of audits that stand, and that the last scheduled run was rejected.

    The rejection has no finding of its own while a critical one of its audit stands. Somebody may
    have acknowledged that one, and nothing is published all the same.
    """
    found = findings_of_audits(read)
    yield from found
    rejected = _rejected_last(read.state)
    if rejected is None or any(
        one.run_id == rejected.run_id for one in found if one.severity == "critical"
    ):
        return
    reached_ms = read.state.frontier_ms
    since = "" if reached_ms is None else f" since {text_of(reached_ms)}"
    sentence = (
        f"the last scheduled run was rejected, and nothing is published{since}: run it again, or "
        f"strandline runs publish {read.spec.pipeline} {rejected.run_id} --accept REASON"
    )
    yield Finding("runs", "critical", sentence, rejected.run_id)


def _rejected_last(state: PipelineState) -> Entry | None:
    """The last step of the last scheduled run, if it was rejected and nothing published since."""
    newest_first = (steps for steps in reversed(state.runs_by_end) if steps[-1].is_scheduled)
    last = next((steps for steps in newest_first if state_of(steps) in _DECIDED), None)
    if last is None or last[-1].kind != "advance" or state_of(last) != "rejected":
        return None
    return last[-1]


def start_to_come(spec: PipelineSpec, state: PipelineState) -> int | None:
    """The start of the job's clock, if it lies after all that is processed; None: it does not.

    No watermark is emitted before it, whatever has arrived. Results have the clock of the other
    pipeline.
    """
    if spec.reads_results_of is not None or not _emits_by_ticks_alone(spec):
        return None
    start_ms, reached_ms = state.clock_start_ms, _reached(state)
    if start_ms is None or reached_ms is None or start_ms < reached_ms:
        return None
    return start_ms


def _reached(state: PipelineState) -> int | None:
    """The instant, in ms, up to which arrivals are processed; None: nothing is published.

    The last run by hand may have an earlier data cut-off than what was processed before it.
    """
    horizons = [run.horizon_ms for run in state.published if run.horizon_ms is not None]
    if state.frontier_ms is not None:
        horizons = [*horizons[-1:], state.frontier_ms]
    return max(horizons, default=None)


def _emits_by_ticks_alone(spec: PipelineSpec) -> bool:
    """Whether no watermark is emitted before the first tick: every source emits at ticks alone.

    An interval join waits for the watermarks of both sources, so one such source suffices.
    """
    by_ticks = [bool(side.watermark.emission_interval_ms) for side in spec.sides.values()]
    return any(by_ticks) if spec.result == PAIRS else all(by_ticks)


def _of_refusals(refused: Sequence[str]) -> Iterator[Finding]:
    """A finding for each reason why the next run, like every other, will be refused."""
    for problem in refused:
        yield Finding("refused", "critical", f"every run is refused: {problem}")


def _of_the_clock(spec: PipelineSpec, state: PipelineState) -> Iterator[Finding]:
    """A finding if the clock starts after all that is processed: no window will ever fire."""
    start_ms = start_to_come(spec, state)
    if start_ms is not None:
        sentence = (
            f"the job's clock starts at {text_of(start_ms)}, behind all that is processed: no "
            "watermark is emitted, and no window fires before it; see source.start"
        )
        yield Finding("start", "warning", sentence)


def _of_unfinished(state: PipelineState, unfinished: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings about slots that should be closed, and about days to recompute."""
    if behind := unfinished["open_behind_watermark"]:
        others = unfinished["open_by_other_rules"]
        yield from _of_open(behind - others, others, _reverted_since_scheduled(state))
    if days := state.days_to_recompute:
        sentence = f"{days_named(days)} to be recomputed: changed, or landed late"
        yield Finding("owed", "warning", sentence)


def _reverted_since_scheduled(state: PipelineState) -> list[str]:
    """The runs that were reverted since the last scheduled run, in the order of their reverts."""
    scheduled = (run.position for run in state.in_force if run.kind == "advance")
    last = max(scheduled, default=0)
    return [pair.run.run_id for pair in state.taken_back if pair.by.position > last]


def _of_open(by_the_file: int, by_other_rules: int, reverted: Sequence[str]) -> Iterator[Finding]:
    """Findings about open windows that the watermark, by the file's settings, has passed.

    A revert can leave such windows behind, as they were before its run.
    """
    name = "open_behind_watermark"
    if by_the_file and reverted:
        sentence = (
            f"{number_of(by_the_file, 'window')} open behind the watermark since run "
            f"{reverted[-1]} was reverted: the next scheduled run builds them"
        )
        yield Finding(name, "warning", sentence)
    elif by_the_file:
        sentence = f"{number_of(by_the_file, 'window')} open behind the watermark"
        yield Finding(name, "critical", sentence)
    if by_other_rules:
        sentence = (
            f"{number_of(by_other_rules, 'window')} open by other rules than the file's, and "
            "behind the watermark by the file's: the next scheduled run builds them"
        )
        yield Finding(name, "info", sentence)


def _of_overridden(spec: PipelineSpec, state: PipelineState) -> Iterator[Finding]:
    """A finding for each range that a run by hand has published by rules of its own.

    The file may say the same rules since: scheduled runs keep the windows all the same.
    """
    for one in state.overridden:
        start, end = text_of(one.windows.start_ms), text_of(one.windows.end_ms)
        rules = in_words(one.overrides)
        sentence = f"windows from {start} to {end} by other rules ({rules})"
        if state.runs[one.run_id][-1].spec_fingerprint == spec.spec_fingerprint:
            sentence = (
                f"windows from {start} to {end} by hand with {rules}, which are the file's rules "
                "now: a backfill of the range gives them back to scheduled runs"
            )
        if why := spec.why_overridden_is_redone:
            sentence += f"; a scheduled run that needs them recomputes them ({why})"
        yield Finding("overridden", "info", sentence, one.run_id)


def _of_upstream(state: PipelineState, upstream: Mapping[str, Any] | None) -> Iterator[Finding]:
    """A finding if more was processed than the pipeline whose results are read has published.

    A run of it was reverted or published as of an earlier cut-off, or its tables were removed. Also
    one if its tables cannot be read, and one while runs wait for it.
    """
    if upstream is None:
        return
    if waits := upstream.get("waits"):
        yield Finding("upstream", "info", f"every run waits: {waits}")
    if state.frontier_ms is None:
        return
    if "problem" in upstream:
        sentence = f"the results of {upstream['pipeline']} cannot be read: {upstream['problem']}"
        yield Finding("upstream", "critical", sentence)
        return
    name, known = upstream["pipeline"], upstream["processed_up_to"]
    if known is None or known < text_of(state.frontier_ms):
        sentence = (
            f"it is processed up to {text_of(state.frontier_ms)}, and {name}, whose results it "
            f"reads, up to {known or 'no midnight'} now: a run of {name} was reverted, or has "
            "published as of an earlier cut-off, or its tables were removed; "
            f"run {name}, then this pipeline"
        )
        yield Finding("upstream", "warning", sentence)
    if changed := upstream["changed"]:
        sentence = (
            f"results of {name} of {days_named(changed)} have changed since they were used: the "
            "next scheduled run rebuilds the windows made of them"
        )
        yield Finding("results_changed", "warning", sentence)


def _of_closures(state: PipelineState) -> Iterator[Finding]:
    """A finding for each range that a person has closed, whatever the watermark was."""
    for closure in state.closures:
        start, end = start_text_of(closure.windows), text_of(closure.windows.end_ms)
        sentence = f"windows from {start} to {end} closed by --close: later arrivals are late"
        yield Finding("closed", "info", sentence)


def _of_erasures(state: PipelineState) -> Iterator[Finding]:
    """A finding for each erasure that was killed: rows of its person may still be read."""
    begun: dict[str | None, Entry] = {}
    for step in state.steps:
        if step.step == "erasing":
            begun[step.message] = step  # the digest of its condition
        elif step.step == "erased":
            begun.pop(step.message, None)
    for step in begun.values():
        sentence = "the erasure has not ended, and its rows may still be read: type it again"
        yield Finding("runs", "critical", sentence, step.run_id)


def _runs(steps: Sequence[Entry]) -> Iterator[ScheduledRun]:
    """The scheduled runs that were published, rejected, or repeated a published run."""
    for step in steps:
        ended = step.step in {"published", "repeated", "rejected"}
        if step.kind == "advance" and ended and step.horizon_ms and step.written_at:
            yield ScheduledRun(step.requested_until_ms, instant_of(step.written_at))
