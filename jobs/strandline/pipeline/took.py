"""What runs like a planned one have taken, by the ledger: seconds, over so many records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strandline.lake.ledger import Entry

_MOST = 5
_STEPS = {"started", "owed", "observed", "staged", "audited", "publishing", "published"}
"""Those of a run that went from its start to its end without waiting for anybody."""
_ALIKE = 3
"""A run over up to so many times the records, or as much fewer, is one like another."""


def took_before(entries: Iterable[Entry], kind: str, records: int) -> Mapping[str, Any] | None:
    """The newest runs of a kind over about as many records: how many, and what they took.

    If none was of that size, the newest ones of the kind. A run's records are those of all its
    books; its seconds are those from its first step to its last one, which leaves out the start of
    Spark.

    Args:
        entries: the ledger.
        kind: `backfill` or `advance`.
        records: of the run that is planned.

    Returns:
        `runs`, and the least and the largest of them as `records` and `seconds`; None: no run of
        the kind has published yet.
    """
    by_run: dict[str, list[Entry]] = {}
    for entry in entries:
        by_run.setdefault(entry.run_id, []).append(entry)
    took = [one for steps in by_run.values() if (one := _took(steps, kind)) is not None]
    alike = [one for one in took if _is_alike(one[0], records)]
    newest = (alike or took)[-_MOST:]
    if not newest:
        return None
    counts, seconds = zip(*newest, strict=True)
    return {
        "runs": len(newest),
        "records": [min(counts), max(counts)],
        "seconds": [min(seconds), max(seconds)],
    }


def _took(steps: Sequence[Entry], kind: str) -> tuple[int, float] | None:
    """The records and the seconds of a run; None: of another kind, or it had to wait or stop."""
    first, last = steps[0], steps[-1]
    published = first.step == "started" and last.step == "published" and first.kind == kind
    straight = {entry.step for entry in steps} <= _STEPS and last.message is None
    if not (published and straight and first.written_at and last.written_at):
        return None
    records = sum(book["total"] for book in last.books or ())
    return records, round((last.written_at - first.written_at).total_seconds(), 1)


def _is_alike(records: int, other: int) -> bool:
    return records <= _ALIKE * other and other <= _ALIKE * records
