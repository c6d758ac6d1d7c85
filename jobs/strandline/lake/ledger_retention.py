"""Which steps of the ledger are spent: nobody asks for them any more, and no answer needs them."""

from __future__ import annotations

from datetime import datetime

from strandline.lake.entry import Entry
from strandline.lake.state import PipelineState

_STAY = ("published", "erasing", "erased")
"""What is published, as of when and why, decides what later runs do; an erasure has its proof."""


def spent_steps(state: PipelineState, before: datetime) -> list[int]:
    """The positions of the steps that may go: those of runs that ended before an instant.

    What such a run has published stays, and so does all of a run that a pipeline remembers
    something by: missing days and days to recompute, when its clock started, how its tables are
    laid out, a publish that is not finished.
    """
    kept = {entry.run_id for entry in _remembered(state)}
    return [
        entry.position
        for entry in state.steps
        if entry.step not in _STAY
        and entry.run_id not in kept
        and (ended := state.runs[entry.run_id][-1].written_at) is not None
        and ended < before
    ]


def _remembered(state: PipelineState) -> list[Entry]:
    """The steps that keep something which later runs go by."""
    newest_first = state.steps[::-1]
    found = [
        next((e for e in newest_first if e.lost is not None), None),
        next((e for e in state.steps if e.clock_start_ms is not None), None),
        next((e for e in newest_first if e.layout or e.publish), None),
        None if state.unfinished is None else state.unfinished.begun,
    ]
    days = {*state.days_to_recompute}
    notes = [entry for entry in state.steps if days & {*(entry.owed or ())}]
    return [*filter(None, found), *state.whole[-1:], *state.steps[-1:], *notes]
