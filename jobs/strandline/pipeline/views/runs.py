"""runs: a document for each run, and findings about failed ones, by the ledger; no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.ledger import OF_RUNS, Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import instant_of, text_of, text_or_none
from strandline.pipeline.request.driver import INTERRUPTED, is_of_later_version, state_of
from strandline.quality.findings.check import Finding
from strandline.quality.report.runs import listed_runs
from strandline.spec import PipelineSpec

_DONE, _KEPT_BACK = ("published", "erased", "maintained"), ("rejected", "prepared", "dropped")
"""States of runs whose diffs are in the tables, and of runs whose diffs are not.

The diff of a run in another state, as one that has failed, may be there in part.
"""
_DID_NOT_END = {
    "failed": "failed",
    "dead": "was killed, or could not write its last step",
    INTERRUPTED: "was interrupted",
}
"""Words for the outcome of a run that did not complete."""
_OF_AN_OPTION = ("--max-bytes: ", "--recreate: ")
"""The beginnings of the messages of runs that were refused for the value of an option."""
_CHANGED_NOTHING = ("already_processed", "dropped", "prepared", "running", "unknown")
"""Outcomes of runs that do not settle the findings of the run before."""


def runs_of(spec: PipelineSpec, lake: Lake) -> list[dict[str, Any]]:
    """A line for each run, newest first."""
    state = Ledger(lake.pipeline(spec.pipeline)).state_after_runs()
    return [run_line(state, steps) for steps in reversed(state.runs_by_end)]


def run_of(spec: PipelineSpec, lake: Lake, run_id: str) -> dict[str, Any]:
    """Everything that the ledger says of a run.

    Raises:
        InputError: there is no such run.
    """
    store = lake.pipeline(spec.pipeline)
    state = Ledger(store).state_after_runs()
    steps = state.steps_of(run_id, store)
    return run_line(state, steps) | _details(steps)


def runs_for_report(state: PipelineState) -> list[dict[str, Any]]:
    """A line for each run of windows, newest first; the runs that the report lists in full."""
    runs = [steps for steps in reversed(state.runs_by_end) if steps[-1].kind in OF_RUNS]
    lines = [run_line(state, steps) for steps in runs]
    listed = {line["run_id"] for line in listed_runs(lines)}
    # the audits of thousands of runs are long
    return [
        line | _details(steps) if line["run_id"] in listed else line
        for line, steps in zip(lines, runs, strict=True)
    ]


def run_line(state: PipelineState, steps: Sequence[Entry]) -> dict[str, Any]:
    """The line of a run, with the last value of each field in its steps.

    `diff_published`: whether the tables have the run's diff; None: there is none, or the run has
    not ended as it should, and the tables may have a part. `reverted_by`: the run that has reverted
    it; None: none has, or the revert was reverted.
    """
    last = steps[-1]
    within = _last(one.range for one in steps)
    status, diff = state_of(steps), _last(one.diff for one in steps)
    return {
        "run_id": last.run_id,
        "kind": last.kind,
        "status": status,
        "step": last.step,
        "step_of_later_version": is_of_later_version(last),
        "reverted_by": state.reverted_by.get(last.run_id),
        "started": written_at(steps[0]),
        "ended": written_at(last),
        "start": text_of(within.start_ms) if within else None,
        "end": text_of(within.end_ms) if within else None,
        "horizon": text_or_none(_last(one.horizon_ms for one in steps)),
        "violations": _last(one.violations for one in steps),
        "diff": diff,
        "diff_published": None if diff is None else _is_published(status),
        "message": last.message,
        "host": last.driver and last.driver.host,
        "pid": last.driver and last.driver.pid,
        "program_version": last.driver and last.driver.program_version,
        "engine": _last(one.driver and one.driver.engine for one in steps),
        "engine_version": _last(one.driver and one.driver.engine_version for one in steps),
        "spec_fingerprint": last.spec_fingerprint,
    }


def _details(steps: Sequence[Entry]) -> dict[str, Any]:
    """What `runs show` has of a run beyond its line."""
    last = steps[-1]
    return {
        "steps": [
            {"step": one.step, "at": written_at(one), "message": one.message} for one in steps
        ],
        "closed": any(one.closed for one in steps),
        "books": _books(steps),
        "audit": _last(one.audit for one in steps),
        "gaps": _last(one.gaps for one in steps),
        "versions": last.versions,
        "landing_version": last.landing_version,
        "landing_id": last.landing_id,
        "overrides": _last(one.overrides for one in steps),
        "acknowledged": last.acknowledged,
        "accepted_loss": _last(one.accepted_loss for one in steps),
        "requested_by": _last(one.requested_by for one in steps),
        "reason": _last(one.reason for one in steps),
    }


def _books(steps: Sequence[Entry]) -> list[dict[str, Any]] | None:
    books = _last(one.books for one in steps)
    return None if books is None else [book.to_json() for book in books]


def _is_published(status: str) -> bool | None:
    return True if status in _DONE else False if status in _KEPT_BACK else None


def _last(values: Iterable[Any]) -> Any:
    found = [value for value in values if value is not None]
    return found[-1] if found else None


def written_at(entry: Entry) -> str | None:
    """When a step was written, to the second, as people read it; None: not recorded."""
    at = entry.written_at
    return None if at is None else text_of(instant_of(at.replace(microsecond=0)))


def findings_of_failed_runs(state: PipelineState) -> Iterator[Finding]:
    """Findings about the last failed, killed or interrupted runs, until one of their kind succeeds.

    A successful scheduled run settles the findings of all runs before it. There is no finding about
    a run that left nothing to be done (`_left_nothing_undone`).
    """
    of_runs = (steps for steps in state.runs_by_end if steps[-1].kind not in UPKEEP)
    by_kind: dict[str, Finding] = {}
    for steps in of_runs:
        last, outcome = steps[-1], state_of(steps)
        ended = outcome not in _DID_NOT_END
        if outcome in _CHANGED_NOTHING or (not ended and _left_nothing_undone(steps, state)):
            continue
        if ended and last.is_scheduled:
            by_kind.clear()
        by_kind.pop(last.kind, None)
        if not ended:
            because = f": {last.message}" if outcome == "failed" and last.message else ""
            sentence = f"the last run of {last.kind} {_DID_NOT_END[outcome]}{because}"
            # the windows of a failed run by hand are still as they were published before
            severity = "critical" if last.kind == "advance" else "warning"
            by_kind[last.kind] = Finding("runs", severity, sentence, last.run_id)
    yield from by_kind.values()


def _left_nothing_undone(steps: Sequence[Entry], state: PipelineState) -> bool:
    """Whether nothing is to be done about a run that did not complete.

    It was typed by hand, and refused for the value of an option; it was a revert, and another
    revert has taken back the same run; or it failed, and a later run with the same request has
    published.
    """
    begun, last = steps[0].position, steps[-1]
    # a scheduled run may have --max-bytes, and fails each night
    by_hand = last.kind != "advance" or last.recreated
    if by_hand and last.step == "failed" and (last.message or "").startswith(_OF_AN_OPTION):
        return True
    if last.reverts is not None:
        return last.reverts in state.reverted_by
    return (
        last.step == "failed"
        and last.request_fingerprint is not None
        and any(
            other.position > begun and other.request_fingerprint == last.request_fingerprint
            for other in state.in_force
        )
    )
