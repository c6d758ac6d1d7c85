"""The changes of every published run, since a ledger position; no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

from deltalake.exceptions import DeltaError

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.days import dates_between
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, day_of, midnight_of, text_or_none
from strandline.pipeline.views.runs import written_at
from strandline.quality.findings.check import findings_in, state_line
from strandline.spec import PipelineSpec

_CHANGING = ("published", "erased")
"""Steps after which the published tables have other rows."""


def changes_of(spec: PipelineSpec, lake: Lake, since: int) -> dict[str, Any]:
    """The publishes after a ledger position: a line for each run, oldest first.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        since: the position; 0: all runs.

    Returns:
        `pipeline` and `since` as given, `next`: the position for the next call, and `runs`.

    Raises:
        InputError: nothing has run yet, or the ledger has no such position.
    """
    ledger = Ledger(lake.pipeline(spec.pipeline))
    state = ledger.state_after_runs()
    if not 0 <= since <= state.position:
        raise InputError(
            "--since",
            f"{since} is not a position of the ledger, which ends at {state.position}",
            "give the `next` of an earlier answer of this lake, or 0 for all runs",
        )
    return {
        "pipeline": spec.pipeline,
        "since": since,
        "next": state.position,
        "runs": [
            _line(step, _dates_of(ledger.store, state, step), completed)
            for step, completed in _published(state)
            if step.position > since
        ],
    }


def completed_by(state: PipelineState, run_id: str) -> list[list[str]]:
    """The days that became complete with a published run, and were not before, as ranges."""
    found = [completed for step, completed in _published(state) if step.run_id == run_id]
    return found[-1] if found else []


@dataclass
class _Announced:
    """The announced complete days, while the steps of a ledger are read in order.

    Attributes:
        until_ms: the midnight up to which days were announced as complete; None: none was.
        first: the first day with slots.
        all_known: whether all steps so far have the dates of their slots.
    """

    until_ms: int | None = None
    first: date | None = None
    all_known: bool = True


def _published(state: PipelineState) -> Iterator[tuple[Entry, list[list[str]]]]:
    """Each step that has changed the tables, with the days that it has completed, as ranges.

    Steps of older program versions have no such days; the next run completes them.
    """
    announced = _Announced()
    for step in state.steps:
        if step.step not in _CHANGING:
            continue
        if step.recreated:
            announced = _Announced()
        yield step, _completed(step, announced) if step.step == "published" else []


def _completed(step: Entry, announced: _Announced) -> list[list[str]]:
    if step.dates is None:
        announced.all_known = False
    slots = (step.dates or {}).get("completeness", ())
    days = [date.fromisoformat(first) for first, _ in slots]
    announced.first = min([*days, *([announced.first] if announced.first else [])], default=None)
    until_ms, start_ms = step.complete_ms, announced.until_ms
    if start_ms is None and announced.all_known and announced.first is not None:
        start_ms = midnight_of(announced.first)
    if until_ms is None:
        return []
    if announced.until_ms is None or announced.until_ms < until_ms:
        announced.until_ms = until_ms
    if start_ms is None or start_ms >= until_ms:
        return []
    return [[day_of(start_ms).isoformat(), day_of(until_ms - DAY_MS).isoformat()]]


def _dates_of(
    store: Store, state: PipelineState, step: Entry
) -> Mapping[str, Sequence[Sequence[str]]] | None:
    """The dates that a step has changed: as recorded, else by the tables' logs; None: not known."""
    if step.dates is not None:
        return step.dates
    before = {now.position: then for then, now in pairwise(state.whole)}
    versions = before[step.position].versions if step.position in before else {}
    if step.versions is None or versions is None:
        return None
    try:
        return dates_between(store, versions, step.versions)
    except DeltaError:  # the log of these versions has been removed
        return None


def _line(
    step: Entry, dates: Mapping[str, Sequence[Sequence[str]]] | None, completed: list[list[str]]
) -> dict[str, Any]:
    found = findings_in(step.audit or (), step.run_id)
    return {
        "position": step.position,
        "run_id": step.run_id,
        "kind": step.kind,
        "at": written_at(step),
        "range": step.range and step.range.to_json(),
        "horizon": text_or_none(step.horizon_ms),
        "reverts": step.reverts,
        "recreated": step.recreated,
        "counts": step.diff or {},
        "dates": dates,
        "completed": completed,
        "verdict": state_line(found),
        "findings": [finding.to_json() for finding in found],
    }
