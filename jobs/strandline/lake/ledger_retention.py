"""Which steps of the ledger are spent: nobody asks for them any more, and no answer needs them."""

from __future__ import annotations

from datetime import datetime

from strandline.lake.ledger import Entry
from strandline.lake.steps import owed_days, together, unfinished_publish

_STAY = ("published", "erasing", "erased")
"""What is published, as of when and why, decides what later runs do; an erasure has its proof."""


def spent_steps(entries: list[Entry], before: datetime) -> list[int]:
    """The positions of the steps that may go: those of runs that ended before an instant.

    What such a run has published stays, and so does all of a run that a pipeline remembers
    something by: owed and lost days, when its clock started, how its tables are laid out, a publish
    that is not finished.
    """
    kept = {entry.run_id for entry in _remembered(entries)}
    last = {entry.run_id: entry for entry in entries}
    return [
        entry.position
        for entry in entries
        if entry.step not in _STAY
        and entry.run_id not in kept
        and (ended := last[entry.run_id].written_at) is not None
        and ended < before
    ]


def _remembered(entries: list[Entry]) -> list[Entry]:
    owed = {*owed_days(entries)}
    told = [
        together(entries),
        next((e for e in reversed(entries) if e.lost is not None), None),
        next((e for e in entries if e.clock_start_ms is not None), None),
        next((e for e in reversed(entries) if e.layout or e.publish), None),
        unfinished_publish(entries),
        *entries[-1:],
    ]
    notes = [entry for entry in entries if owed & {*(entry.owed or ())}]
    return [*filter(None, told), *notes]
