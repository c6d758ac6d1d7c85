"""Evictors: which records a window keeps, before or after it fires."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.reference.records import Record
from strandline.spec.evictor import CountEvictor, Evictor, TimeEvictor

Keep = Callable[[Sequence[Record]], list[Record]]
"""Gives the records that stay in a window, from all its records (at least one) in order of
arrival."""


def keep_by(evictor: Evictor) -> Keep:
    """The records that an evictor keeps. Flink: `CountEvictor`, `TimeEvictor`, `DeltaEvictor`."""
    if isinstance(evictor, CountEvictor):
        return lambda records: _last(evictor.count, records)
    if isinstance(evictor, TimeEvictor):
        return lambda records: _newest(evictor.time, records)
    return lambda records: _near_the_last(evictor.delta, records)


def _last(number: int, records: Sequence[Record]) -> list[Record]:
    return list(records[-number:]) if number else []


def _newest(time_ms: int, records: Sequence[Record]) -> list[Record]:
    newest_ms = max(record.ts_ms for record in records)
    return [record for record in records if record.ts_ms > newest_ms - time_ms]


def _near_the_last(threshold: float, records: Sequence[Record]) -> list[Record]:
    """The records whose value differs from the last one's by less than a threshold, or is NaN.

    Flink evicts by `delta >= threshold`, which is false for NaN.
    """
    last = _value(records[-1])
    return [record for record in records if not abs(_value(record) - last) >= threshold]


def _value(record: Record) -> float:
    if record.evictor_value is None:
        msg = f"record {record.record_id} has no value for the evictor"
        raise TypeError(msg)
    return record.evictor_value
