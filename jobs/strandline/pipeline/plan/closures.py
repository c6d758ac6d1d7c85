"""Closures: ends of the input of a range, by `--close` in earlier runs; and notes about them."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Closure
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import LEAST_INSTANT_MS, TimeRange, start_text_of, text_of


def closures_around(state: PipelineState, history: History, within: TimeRange) -> list[Closure]:
    """The closures of all windows whose records decide about a range."""
    return state.closures_in(kind_of(history.spec).decided_by(within))


def closed_in_order(
    state: PipelineState, history: History, within: TimeRange, horizon_ms: int
) -> list[Closure]:
    """The closures that decide about a range, with the older windows that were still open by then.

    Where windows share records, none may be open longer than a newer one. None was when `--close`
    was given; one may be now, since rows that made the watermark advance are missing or rules were
    edited.

    Args:
        state: the pipeline's state, by its ledger.
        history: everything observed below the horizon.
        within: the range.
        horizon_ms: the horizon.
    """
    if history.grid.sharing(within) == within:
        return closures_around(state, history, within)
    around, before_ms = kind_of(history.spec).decided_by(within), LEAST_INSTANT_MS
    in_order = []
    for closure in sorted(state.closures, key=lambda one: one.windows.start_ms):
        if closure.windows.end_ms > around.start_ms:
            reached_ms = history.crossings.watermark_reached(min(closure.at_ms, horizon_ms))
            open_ms = max(history.grid.first_open(reached_ms), before_ms)
            start_ms = min(open_ms, closure.windows.start_ms)
            in_order.append(Closure(TimeRange(start_ms, closure.windows.end_ms), closure.at_ms))
        before_ms = closure.windows.end_ms
    return [closure for closure in in_order if closure.windows.overlaps(around)]


def notes_of_closures(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """A note for each closure that a run keeps and that overlaps a range."""
    return [
        f"windows from {start_text_of(closure.windows)} to {text_of(closure.windows.end_ms)} "
        f"stay closed, since their input ended at {text_of(closure.at_ms)} (--close): what arrives "
        "from then on is late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]
