"""Hypothesis generators of pipelines and of streams for them: disorder, ties, late records.

Times lie around a few bases (the epoch, a midnight, a date of 2013), in windows of some
milliseconds, so that every boundary is met often. A stream's spec names the columns of `rows()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from strandline.model.intervals import DAY_MS, datetime_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.reference import Record, Replay, replay
from strandline.spec import PipelineSpec, parse_spec

BASES_MS = (0, DAY_MS - 60, -DAY_MS + 7, 1_356_998_400_000)
"""Where streams begin: two of them soon pass a midnight, one lies before 1970."""
CHANNELS = ("a", "b", "c")


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
        return [
            {
                "arrival_ms": record.arrival_ms,
                "seq": record.sequence,
                "ts_ms": record.ts_ms,
                "channel": record.channel,
                "k": record.key[0],
                **record.payload,
            }
            for record in self.records
        ]

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


def durations(lengths_ms: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    """Durations as a pipeline file writes them."""
    return lengths_ms.map(lambda ms: f"{ms}ms")


def watermarks() -> st.SearchStrategy[dict[str, Any]]:
    """The `watermark` part of a pipeline, of this slice of the semantics."""
    generators = st.one_of(
        st.fixed_dictionaries(
            {
                "strategy": st.sampled_from(
                    ["bounded_out_of_orderness", "legacy_bounded_out_of_orderness"]
                ),
                "bound": durations(st.sampled_from([0, 0, 1, 5, 20, 2**62])),
            }
        ),
        st.just({"strategy": "ascending"}),
    )
    emissions = st.sampled_from(["per_record", "per_record", "1ms", "7ms", "50ms", "0ms"])
    return st.builds(_watermark, generators, emissions, st.booleans())


def _watermark(generator: dict[str, Any], emission: str, idle: bool) -> dict[str, Any]:
    per_record = emission == "per_record"
    without_effect = idle and emission in {"per_record", "0ms"}
    return {
        **generator,
        "emit": emission if per_record else {"every": emission},
        "idleness": "10ms" if without_effect else None,
    }


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """The `window` part of a pipeline: tumbling, with an offset of either sign."""
    size_ms = draw(st.integers(1, 40))
    offset_ms = draw(st.integers(1 - size_ms, size_ms - 1))
    return {"tumbling": f"{size_ms}ms", "offset": f"{offset_ms}ms"}


@st.composite
def pipelines(draw: st.DrawFn, *, channels: st.SearchStrategy[Any] | None = None) -> dict[str, Any]:
    """A whole pipeline as its YAML file would be read."""
    if channels is None:
        channels = st.sampled_from([None, "discovered", ["a"], ["b", "a", "c"]])
    declared = draw(channels)
    return {
        "pipeline": "stream",
        "source": {
            "table": "landing/stream",
            "arrival_time": "timestamp_millis(arrival_ms)",
            "event_time": "timestamp_millis(ts_ms)",
            "channel": None if declared is None else "channel",
            "channels": declared,
            "key": ["k"],
            "sequence": draw(st.sampled_from([None, "seq"])),
            "id": ["id"],
        },
        "watermark": draw(watermarks()),
        "window": draw(windows()),
        "allowed_lateness": f"{draw(st.sampled_from([0, 0, 5, 25, 400, MAX_WATERMARK]))}ms",
        "aggregates": {"count": "count(*)", "sum": "sum(value)"},
    }


@st.composite
def streams(draw: st.DrawFn, *, most: int = 24, **given: st.SearchStrategy[Any]) -> Stream:
    """A stream of at most `most` records; `given` goes to `pipelines`."""
    content = draw(pipelines(**given))
    base_ms = draw(st.sampled_from(BASES_MS))
    start_ms = base_ms + draw(st.sampled_from([0, 0, -13, 30]))
    content["source"]["start"] = datetime_of(start_ms)
    spec = parse_spec(content, origin="stream.yaml")
    channels = spec.source.declared_channels or CHANNELS
    length = draw(st.sampled_from([0, 1, 2, most // 4, most // 2, most]))
    steps_ms = st.sampled_from([0, 0, 0, 1, 2, 9, 60])
    steps = draw(st.lists(steps_ms, min_size=length, max_size=length))
    records = tuple(
        draw(_record(number, base_ms + passed_ms, channels))
        for number, passed_ms in enumerate(accumulate(steps))
    )
    last_ms = records[-1].arrival_ms if records else start_ms
    return Stream(
        spec=spec,
        records=records,
        start_ms=start_ms,
        horizon_ms=last_ms + draw(st.sampled_from([1, 2, 50, 500, -20])),
        end_of_input=draw(st.booleans()),
    )


@st.composite
def _record(draw: st.DrawFn, number: int, arrival_ms: int, channels: Sequence[str]) -> Record:
    return Record(
        arrival_ms=arrival_ms,
        ts_ms=arrival_ms - draw(st.sampled_from([0, 1, 10, 45]) | st.integers(-15, 45)),
        record_id=f"{number:04d}",
        channel=draw(st.sampled_from(channels)),
        key=(draw(st.sampled_from(["x", "y"])),),
        sequence=draw(st.sampled_from([1, 1, 2, 3])),
        payload={"id": number, "value": draw(st.integers(-9, 9))},
    )
