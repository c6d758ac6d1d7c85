"""Streams with what chance alone seldom brings: silence, scattered times, everything behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from strandline.model.intervals import DAY_MS, day_of, midnight_of

if TYPE_CHECKING:
    from strategies import Stream

    from strandline.reference.records import Record

AHEAD_MS = 5_000
"""Ahead of every record of a stream by more than its largest bound and lateness but the huge."""


def silent(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """One of several channels, the first record's, never speaks again."""
    first = records[0].channel
    rest = tuple(record for record in records[1:] if record.channel != first)
    return st.sampled_from([records[:1] + rest, rest]) if rest else st.just(records)


def scattered(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """Some event times are days and years away."""
    shifts_ms = st.sampled_from([0, 0, 0, -DAY_MS, DAY_MS, 3, -400 * 365 * DAY_MS, 10**9])
    every = st.lists(shifts_ms, min_size=len(records), max_size=len(records))
    return every.map(
        lambda by_ms: tuple(
            replace(record, ts_ms=record.ts_ms + shift_ms)
            for record, shift_ms in zip(records, by_ms, strict=True)
        )
    )


def behind(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """The first record of every channel is far ahead: the others are late, if not for a bound."""
    first = {record.channel: record.record_id for record in reversed(records)}
    return st.just(
        tuple(
            replace(record, ts_ms=record.ts_ms + AHEAD_MS)
            if first[record.channel] == record.record_id
            else record
            for record in records
        )
    )


def one_ahead(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """One channel is ahead of the others; if it ends last, the end comes in steps."""
    return st.sampled_from(sorted({record.channel for record in records}, reverse=True)).map(
        lambda channel: tuple(
            replace(record, ts_ms=record.ts_ms + 40) if record.channel == channel else record
            for record in records
        )
    )


TWISTS = {
    "none": st.just,
    "silent": silent,
    "scattered": scattered,
    "behind": behind,
    "one ahead": one_ahead,
}
"""What is done to the records of a stream, as a strategy of the records after it."""


def over_midnight(stream: Stream) -> Stream:
    """The stream, moved so that a midnight comes as half of its records have arrived."""
    middle_ms = stream.records[len(stream.records) // 2].arrival_ms
    return moved(stream, midnight_of(day_of(middle_ms)) + DAY_MS - middle_ms)


def moved(stream: Stream, by_ms: int) -> Stream:
    """The stream, all of it later."""
    records = tuple(
        replace(r, arrival_ms=r.arrival_ms + by_ms, ts_ms=r.ts_ms + by_ms) for r in stream.records
    )
    start_ms, horizon_ms = stream.start_ms + by_ms, stream.horizon_ms + by_ms
    return replace(stream, records=records, start_ms=start_ms, horizon_ms=horizon_ms)


def malformed(stream: Stream) -> dict[str, dict[str, Any]]:
    """A row for each reason that a stream's own pipeline can have, far ahead in event time."""
    sound = {
        **{"arrival_ms": stream.start_ms, "seq": 1, "ts_ms": stream.start_ms + DAY_MS},
        **{"channel": "a", "k": "x", "value": 100, "gap_ms": 5},
    }
    wrong: dict[str, dict[str, Any]] = {
        "null_event_time": {"ts_ms": None},
        "null_arrival": {"arrival_ms": None},
        "null_key": {"k": None},
        "event_time_out_of_range": {"ts_ms": 10**15},
    }
    if stream.spec.arrival_is_event_time:  # nobody looks at the event time that has landed
        del wrong["null_event_time"], wrong["event_time_out_of_range"]
    if stream.spec.source.channel is not None:
        wrong["null_channel"] = {"channel": None}
        if stream.spec.source.declared_channels is not None:
            wrong["undeclared_channel"] = {"channel": "zz"}
    return {
        reason: {**sound, "id": 1_000 + number, **changed}
        for number, (reason, changed) in enumerate(wrong.items())
    }
