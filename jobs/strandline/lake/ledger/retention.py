"""The steps of the ledger that are not needed any more."""

from __future__ import annotations

from datetime import datetime

from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.in_force import with_missing_days
from strandline.lake.ledger.state import PipelineState

_STAY = ("published", "erasing", "erased", "acknowledged")
"""Kinds of steps that always stay: later runs depend on them, or they prove what a person did."""
_WROTE_NOTHING = ("repeated", "already_processed")
"""Steps of runs that have written nothing under their id, which may be given again."""


def spent_steps(state: PipelineState, before: datetime) -> list[int]:
    """The positions of the removable steps of runs that ended before an instant.

    Steps of publications stay, and all steps that hold state of the pipeline: missing days, days to
    recompute, the start of the clock, the layout of tables, an unfinished publication, up to when
    the windows of overridden ranges are final (a revert may give a range back), and that upkeep has
    removed rows. The last step of each run stays too: the id of a run is not given again, and what
    waits to be published, or goes on elsewhere, is known.
    """
    kept = {entry.run_id for entry in _remembered(state)}
    overridden = {run.run_id for run in state.published if run.overrides}
    ends = (steps[-1] for steps in state.runs.values() if steps[-1].kind not in UPKEEP)
    last = {end.position for end in ends if end.step not in _WROTE_NOTHING}
    return [
        entry.position
        for entry in state.steps
        if entry.step not in _STAY
        and entry.run_id not in kept
        and not (entry.step == "publishing" and entry.run_id in overridden)
        and entry.position not in last
        and (ended := state.runs[entry.run_id][-1].written_at) is not None
        and ended < before
    ]


def _remembered(state: PipelineState) -> list[Entry]:
    """The steps that hold state for later runs."""
    newest_first = state.steps[::-1]
    found = [
        next(with_missing_days(state.steps), None),
        next((e for e in state.steps if e.clock_start_ms is not None), None),
        next((e for e in newest_first if e.layout or e.publish), None),
        next((e for e in newest_first if e.step == "maintained" and e.diff), None),
        None if state.unfinished is None else state.unfinished.begun,
    ]
    days = {*state.days_to_recompute}
    notes = [entry for entry in state.steps if days & {*(entry.owed or ())}]
    return [*filter(None, found), *state.whole[-1:], *state.steps[-1:], *notes]
