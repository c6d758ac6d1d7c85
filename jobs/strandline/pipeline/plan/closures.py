"""The closures by earlier runs (`--close`) that decide about a range, and notes about them."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Closure
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import EVERYTHING, TimeRange, start_text_of, text_of


def closures_around(state: PipelineState, history: History, within: TimeRange) -> list[Closure]:
    """The closures of all windows whose records a rebuild of a range reads.

    Sessions, and pairs, read records before and after the range, at any distance.
    """
    reads_beside = kind_of(history.spec).cross_slots
    return state.closures_in(EVERYTHING if reads_beside else history.grid.sharing(within))


def stay_closed(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """A note for each closure in a range that the run keeps."""
    return [
        f"windows from {start_text_of(closure.windows)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; later arrivals for them are late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]
