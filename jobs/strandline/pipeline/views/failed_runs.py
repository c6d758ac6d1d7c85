"""The findings about runs that failed, were killed or were interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.request.driver import INTERRUPTED, state_of
from strandline.quality.findings.check import Finding

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
