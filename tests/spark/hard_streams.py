"""Streams with what chance alone seldom brings: silence, scattered times, everything behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from strategies import Stream, streams

from strandline.model.intervals import DAY_MS

if TYPE_CHECKING:
    from strandline.reference import Record

AHEAD_MS = 5_000
"""Ahead of every record of a stream by more than its largest bound and lateness but the huge."""


@st.composite
def hard_streams(draw: st.DrawFn, *, least: int = 4, **given: st.SearchStrategy[Any]) -> Stream:
    """A stream of at least `least` records, half of them with a twist."""
    stream = draw(streams(**given).filter(lambda s: len(s.records) >= least))
    twist = draw(st.sampled_from([None, None, None, _silent, _scattered, _behind]))
    return stream if twist is None else replace(stream, records=draw(twist(stream.records)))


def _silent(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """One channel, the first record's, never speaks again."""
    silent = records[0].channel
    rest = tuple(record for record in records[1:] if record.channel != silent)
    return st.sampled_from([records[:1] + rest, rest or records])


def _scattered(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
    """Some event times are days and years away."""
    shifts_ms = st.sampled_from([0, 0, 0, -DAY_MS, DAY_MS, 3, -400 * 365 * DAY_MS, 10**9])
    every = st.lists(shifts_ms, min_size=len(records), max_size=len(records))
    return every.map(
        lambda by_ms: tuple(
            replace(record, ts_ms=record.ts_ms + shift_ms)
            for record, shift_ms in zip(records, by_ms, strict=True)
        )
    )


def _behind(records: tuple[Record, ...]) -> st.SearchStrategy[tuple[Record, ...]]:
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
