"""Duplicates record by record: a record that repeats a recent one does not count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.records import Record


def without_duplicates(
    records: Iterable[Record], identity: Callable[[Record], Hashable], *, within_ms: int
) -> tuple[list[Record], list[Record]]:
    """The records that count, and the duplicates, both in order of arrival.

    A record is a duplicate if the last one of its identity, counted or not, arrived less than
    `within_ms` before it. Flink's own deduplication (SQL, keep the first row, with a state's time
    to live) forgets a row `within` after the one that counted, so it counts a chain of repetitions
    once for each such time; here a chain counts once, however long it is.

    Args:
        records: well-formed records, in any order.
        identity: gives the value in which duplicates are equal.
        within_ms: a positive length in ms.
    """
    kept: list[Record] = []
    repeated: list[Record] = []
    last_ms: dict[Hashable, int] = {}
    for record in sorted(records, key=_order):
        before_ms = last_ms.get(identity(record))
        is_new = before_ms is None or record.arrival_ms - before_ms >= within_ms
        (kept if is_new else repeated).append(record)
        last_ms[identity(record)] = record.arrival_ms
    return kept, repeated


def _order(record: Record) -> tuple[int, int, int, str]:
    sequence = MIN_WATERMARK if record.sequence is None else record.sequence
    return record.arrival_ms, sequence, record.ts_ms, record.record_id
