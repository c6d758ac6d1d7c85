"""Notes about windows that stay closed by an earlier `--close`."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.position.clock import Closure
from strandline.model.intervals import TimeRange, start_text_of, text_of


def stay_closed(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """A note for each closure in a range that the run keeps."""
    return [
        f"windows from {start_text_of(closure.windows)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; later arrivals for them are late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]
