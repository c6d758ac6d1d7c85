"""The durations of earlier runs like a planned run, and of their parts, by the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.books import Book

_MOST = 5
_STEPS = {"started", "owed", "observed", "staged", "audited", "publishing", "published"}
"""The steps of a run without waiting and without failures."""
_SIMILAR = 3
"""The largest ratio of the records of two similar runs."""
_OF_ARRIVALS = "arrival day"
"""The prefix of the names of books over arrival days; the other books are over windows."""
_PARTS = {
    "observe and rebuild": ("started", "staged"),
    "audit": ("staged", "audited"),
    "diff": ("audited", "publishing"),
    "publish": ("publishing", "published"),
}
"""The parts of a run, and the ledger steps between which they lie."""


def similar_runs(state: PipelineState, kind: str, records: int) -> Mapping[str, Any] | None:
    """The newest runs of a kind over about as many records: their number, records and seconds.

    If no run had that size, the newest ones of the kind. A run's seconds are from its first to its
    last step, without the start of the engine.

    Args:
        state: the pipeline's state, by its ledger.
        kind: `backfill` or `advance`.
        records: the number of records of the planned run (`records_of`).

    Returns:
        `runs`, and the minimum and maximum of `records` and of `seconds`; None: no run of the kind
        has published yet.
    """
    took = [one for steps in state.runs.values() if (one := _took(steps, kind)) is not None]
    similar = [one for one in took if _is_similar(one[0], records)]
    newest = (similar or took)[-_MOST:]
    if not newest:
        return None
    counts, seconds = zip(*newest, strict=True)
    return {
        "runs": len(newest),
        "records": [min(counts), max(counts)],
        "seconds": [min(seconds), max(seconds)],
    }


def records_of(books: Iterable[Book]) -> int:
    """The number of a run's records: those of its windows, or of its new arrival days if more.

    A record counts once, though a book of its day and one of its window may both have it.

    Args:
        books: the run's books.
    """
    sums = Counter[bool]()
    for book in books:
        sums[book.name.startswith(_OF_ARRIVALS)] += book.total
    return max(sums.values(), default=0)


def seconds_by_part(state: PipelineState, kind: str) -> dict[str, float]:
    """The median seconds of each part of the newest runs of a kind, by the part's name.

    Observing and rebuilding overlap, and count as one. A part that no such run had is left out.

    Args:
        state: the pipeline's state, by its ledger.
        kind: `backfill` or `advance`.
    """
    found: dict[str, list[float]] = {}
    straight = [steps for steps in state.runs.values() if _is_straight(steps, kind)]
    for steps in straight[-_MOST:]:
        at = {entry.step: entry.written_at for entry in steps}
        for part, (first, last) in _PARTS.items():
            begun, ended = at.get(first), at.get(last)
            if begun and ended:
                found.setdefault(part, []).append((ended - begun).total_seconds())
    return {part: median(seconds) for part, seconds in found.items()}


def _is_straight(steps: Sequence[Entry], kind: str) -> bool:
    """Whether the steps are of a run of a kind that published without waiting or failing."""
    first, last = steps[0], steps[-1]
    published = first.step == "started" and last.step == "published" and first.kind == kind
    return published and {entry.step for entry in steps} <= _STEPS and last.message is None


def _took(steps: Sequence[Entry], kind: str) -> tuple[int, float] | None:
    """The records and seconds of a run; None: not straight (`_is_straight`), or without times."""
    first, last = steps[0], steps[-1]
    if not (_is_straight(steps, kind) and first.written_at and last.written_at):
        return None
    seconds = (last.written_at - first.written_at).total_seconds()
    return records_of(last.books or ()), round(seconds, 1)


def _is_similar(records: int, other: int) -> bool:
    return records <= _SIMILAR * other and other <= _SIMILAR * records
