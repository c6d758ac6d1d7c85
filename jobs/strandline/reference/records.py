"""A record, the order in which records are processed, and the duplicates among them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from strandline.model.lateness import MIN_WATERMARK


@dataclass(frozen=True, slots=True)
class Record:
    """A record that is not malformed.

    Attributes:
        arrival_ms: when it reached the landing table.
        ts_ms: its event time.
        record_id: a unique id; orders records that are otherwise equal.
        channel: the source partition that it came through; "" where there is only one.
        input: which of two inputs it came through, `left` or `right`; "" where there is only one.
        key: the values of its key columns; () for one global key.
        sequence: its order inside the arrival instant; None comes before every number.
        marker: whether a punctuated generator emits its event time.
        candidate_ms: the watermark that it offers, where the pipeline has an expression for that.
        gap_ms: its session gap, where each record has its own.
        trigger_value: the value that a delta trigger compares.
        evictor_value: the value that a delta evictor compares.
        payload: the rest of its columns; not compared.
    """

    arrival_ms: int
    ts_ms: int
    record_id: str
    channel: str = ""
    key: tuple[Any, ...] = ()
    sequence: int | None = None
    marker: bool = False
    candidate_ms: int | None = None
    gap_ms: int | None = None
    trigger_value: float | None = None
    evictor_value: float | None = None
    input: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def place_in_instant(self) -> int:
        """The sequence; for a record without one the least long, so that it comes first."""
        return MIN_WATERMARK if self.sequence is None else self.sequence


def instants(records: Iterable[Record], *, sequenced: bool) -> Iterator[tuple[Record, ...]]:
    """The records of each *instant*, in order, by ascending event time, session gap, record id.

    An instant is an arrival time, or a pair (arrival time, sequence) where the pipeline has a
    `sequence`. The watermark just before an instant decides whether its records are late.
    """

    def instant(record: Record) -> tuple[int, int]:
        return record.arrival_ms, record.place_in_instant if sequenced else 0

    ordered = sorted(records, key=lambda r: (*instant(r), r.ts_ms, r.gap_ms or 0, r.record_id))
    for _, group in groupby(ordered, key=instant):
        yield tuple(group)


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

    def order(record: Record) -> tuple[int, int, int, str]:
        return record.arrival_ms, record.place_in_instant, record.ts_ms, record.record_id

    kept: list[Record] = []
    repeated: list[Record] = []
    last_ms: dict[Hashable, int] = {}
    for record in sorted(records, key=order):
        before_ms = last_ms.get(identity(record))
        is_new = before_ms is None or record.arrival_ms - before_ms >= within_ms
        (kept if is_new else repeated).append(record)
        last_ms[identity(record)] = record.arrival_ms
    return kept, repeated
