"""The closures by earlier runs (`--close`) that decide about a range, and notes about them."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Closure
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import TimeRange, start_text_of, text_of


def closures_around(state: PipelineState, history: History, within: TimeRange) -> list[Closure]:
    """The closures of all windows whose records decide about a range."""
    return state.closures_in(kind_of(history.spec).decided_by(within))


def stay_closed(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """A note for each closure in a range that the run keeps."""
    return [
        f"windows from {start_text_of(closure.windows)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; later arrivals for them are late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]
