"""runs: a document for each run, by the ledger, for commands, pages and the report; no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from strandline.lake.ledger.ledger import OF_RUNS, Entry, Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import instant_of, text_of, text_or_none
from strandline.pipeline.request.driver import is_of_later_version, state_of
from strandline.quality.report.runs import listed_runs
from strandline.spec import PipelineSpec

_DONE, _KEPT_BACK = ("published", "erased", "maintained"), ("rejected", "prepared", "dropped")
"""States of runs whose diffs are in the tables, and of runs whose diffs are not.

The diff of a run in another state, as one that has failed, may be there in part.
"""


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
