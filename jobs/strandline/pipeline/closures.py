"""Which windows `--close` keeps closed, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.position.clock import Closure
from strandline.lake.ledger import Entry
from strandline.lake.steps import published_into, standing
from strandline.model.intervals import EVERYTHING, TimeRange, text_of


def closures_in(entries: list[Entry], within: TimeRange) -> list[Closure]:
    """The closures that stand in a range: the last run that closed or reopened a part decides."""
    in_force: list[Closure] = []
    for entry in published_into(standing(entries), EVERYTHING):
        if entry.range is None or entry.horizon_ms is None:
            continue
        if entry.closed or entry.reopened:
            in_force = [rest for closure in in_force for rest in without(closure, entry.range)]
        if entry.closed:
            in_force.append(Closure(entry.range, entry.horizon_ms))
    return [closure for closure in in_force if closure.windows.overlaps(within)]


def stay_closed(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """What a run says of the closures in its range that it leaves as they are."""
    return [
        f"windows from {text_of(closure.windows.start_ms)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; what arrived later for them is late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]


def without(closure: Closure, gone: TimeRange) -> list[Closure]:
    """What a closure leaves closed outside a range."""
    return [Closure(part, closure.at_ms) for part in closure.windows.outside(gone)]
