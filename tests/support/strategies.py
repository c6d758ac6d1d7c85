"""Hypothesis generators of streams for pipelines: disorder, ties, late records.

Times lie around a few bases (the epoch, a midnight, a date of 2013), in windows of some
milliseconds, so that every boundary is met often. A stream's spec names the columns of `rows()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st
from spec_strategies import (
    EMISSIONS,
    STRATEGIES,
    any_watermarks,
    any_windows,
    generators_of,
    pipelines,
    watermarks_of,
)

from strandline.model.intervals import DAY_MS, datetime_of
from strandline.reference.answer import Replay
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.spec import PipelineSpec, parse_spec
from strandline.spec.window import Session

BEFORE_MIDNIGHT_MS = (DAY_MS - 60, 1_356_998_400_000 - 20)
"""Where streams begin that soon pass a midnight."""
BASES_MS = (0, -DAY_MS + 7, *BEFORE_MIDNIGHT_MS)
"""Where streams begin: one lies before 1970, and has event times of the day before."""
CHANNELS = ("a", "b", "c")
BY_RECORDS = tuple(one for one in STRATEGIES if not one.startswith(("time_lag", "ingestion")))
"""The strategies by which records alone decide the watermark of their channel."""
DELAYS_MS = (0, 1, 10, 45, *range(-15, 46), *[70, 150] * 6)
"""How long before its arrival an event happened; a fifth is later than most windows are long."""
AFTER_LAST_MS = (1, 2, 50, 500, -20)
"""Where a horizon lies after the last arrival."""


@dataclass(frozen=True)
class Stream:
    """A pipeline, its records, and what a run knows of them."""

    spec: PipelineSpec
    records: tuple[Record, ...]
    start_ms: int
    horizon_ms: int
    end_of_input: bool

    def rows(self) -> list[dict[str, Any]]:
        """The records as rows of a landing table, under the names that the spec uses."""
        return [row_of(record) for record in self.records]

    def replay(
        self, records: Sequence[Record] | None = None, *, horizon_ms: int | None = None
    ) -> Replay:
        """The reference's answer; to other records, or as of another horizon without an end."""
        return replay(
            self.spec,
            self.records if records is None else records,
            start_ms=self.start_ms,
            horizon_ms=self.horizon_ms if horizon_ms is None else horizon_ms,
            end_of_input=self.end_of_input and horizon_ms is None,
        )


_STARTS_MS = st.sampled_from([0, 0, -13, 30])
"""Where a source's clock starts, after the base of the stream."""


def row_of(record: Record) -> dict[str, Any]:
    """A record as a row of a landing table."""
    return {
        "arrival_ms": record.arrival_ms,
        "seq": record.sequence,
        "ts_ms": record.ts_ms,
        "channel": record.channel,
        "k": record.key[0],
        "marker": record.marker,
        "candidate_ms": record.candidate_ms,
        "gap_ms": record.gap_ms,
        **record.payload,
    }


@cache
def _lengths(most: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2, most // 4, most // 2, *[most] * 3])


@st.composite
def streams(
    draw: st.DrawFn,
    *,
    most: int = 24,
    length: st.SearchStrategy[int] | None = None,
    base_ms: st.SearchStrategy[int] = st.sampled_from(BASES_MS),
    after_last_ms: st.SearchStrategy[int] = st.sampled_from(AFTER_LAST_MS),
    end_of_input: st.SearchStrategy[bool] = st.booleans(),
    **given: st.SearchStrategy[Any],
) -> Stream:
    """A stream of some `length`, else of at most `most` records; `given` goes to `pipelines`."""
    content = draw(pipelines(**given))
    base = draw(base_ms)
    start_ms = base + draw(_STARTS_MS)
    content["source"]["start"] = datetime_of(start_ms)
    spec = parse_spec(content, origin="stream.yaml")
    channels = spec.source.declared_channels or CHANNELS
    count = draw(_lengths(most) if length is None else length)
    # one number a record: drawing its fields one by one would take ten times as long
    codes = draw(st.lists(st.integers(0, 2**40), min_size=count, max_size=count))
    records = tuple(_records(codes, base, channels, own_gaps=_has_own_gaps(spec)))
    last_ms = records[-1].arrival_ms if records else start_ms
    return Stream(
        spec=spec,
        records=records,
        start_ms=start_ms,
        horizon_ms=last_ms + draw(after_last_ms),
        end_of_input=draw(end_of_input),
    )


def any_streams(**given: Any) -> st.SearchStrategy[Stream]:
    """A stream of any pipeline: every strategy, every kind of window."""
    return streams(watermark=any_watermarks(), window=any_windows(), **given)


def _has_own_gaps(spec: PipelineSpec) -> bool:
    return isinstance(spec.window, Session) and spec.window.gap_ms is None


def _records(
    codes: Sequence[int], base_ms: int, channels: Sequence[str], *, own_gaps: bool
) -> Iterator[Record]:
    """Records in the order of their arrival; a smaller code is a simpler record."""
    arrival_ms = base_ms
    for number, code in enumerate(codes):
        rest, step_ms = _choice(code, [0, 0, 0, 1, 2, 9, 60])
        rest, delay_ms = _choice(rest, DELAYS_MS)
        rest, channel = _choice(rest, channels)
        rest, key = _choice(rest, ["x", "y"])
        rest, sequence = _choice(rest, [1, 1, 2, 3])
        rest, marker = _choice(rest, [False, False, True])
        rest, gap_ms = _choice(rest, range(1, 31))
        rest, value = _choice(rest, range(-9, 10))
        arrival_ms += step_ms
        ts_ms = arrival_ms - delay_ms
        _, candidate_ms = _choice(rest, [None, ts_ms, ts_ms - 5, ts_ms + 3])
        yield Record(
            arrival_ms=arrival_ms,
            ts_ms=ts_ms,
            record_id=f"{number:04d}",
            channel=channel,
            key=(key,),
            sequence=sequence,
            marker=marker,
            candidate_ms=candidate_ms,
            gap_ms=gap_ms if own_gaps else None,
            payload={"id": number, "value": value},
        )


def _choice(code: int, values: Sequence[Any]) -> tuple[int, Any]:
    """One of some values by a code, and what is left of the code for further choices."""
    rest, place = divmod(code, len(values))
    return rest, values[place]


@st.composite
def retired_streams(
    draw: st.DrawFn, *, strategies: Sequence[str] = BY_RECORDS, **given: st.SearchStrategy[Any]
) -> Stream:
    """A stream of which some channels are retired, near an arrival; none comes through them after.

    Channels do not go idle in it, and the watermark goes by records.
    """
    watermark = watermarks_of(
        st.sampled_from(strategies).flatmap(generators_of),
        st.sampled_from(EMISSIONS),
        st.none(),
        st.sampled_from(["valve", "valve", "splits"]),
    )
    chosen = {
        "channels": st.sampled_from([["a", "b"], ["b", "a", "c"]]),
        # of few records hardly any comes after a channel is retired that held the watermark back
        "length": st.sampled_from([6, 24, 24]),
    }
    given = {**chosen, **given}
    stream = draw(streams(**{"watermark": watermark, **given}))
    names = stream.spec.source.declared_channels or ()
    some = st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True)
    arrivals = [record.arrival_ms for record in stream.records] or [stream.start_ms]
    at_ms = st.builds(int.__add__, st.sampled_from(arrivals), st.sampled_from([0, 1, -1, 3, 70]))
    retired = draw(some.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, at_ms))))
    return retiring(stream, retired)


def retiring(stream: Stream, retired: dict[str, int]) -> Stream:
    """The same, some channels retired; what came through them from then on did not come."""
    source = stream.spec.source.model_copy(update={"retired": retired})
    return replace(
        stream,
        spec=stream.spec.model_copy(update={"source": source}),
        records=tuple(
            record
            for record in stream.records
            if record.arrival_ms < retired.get(record.channel, record.arrival_ms + 1)
        ),
    )
