"""Hypothesis generators of pipelines and of streams for them: disorder, ties, late records.

Times lie around a few bases (the epoch, a midnight, a date of 2013), in windows of some
milliseconds, so that every boundary is met often. A stream's spec names the columns of `rows()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from strandline.model.intervals import DAY_MS, datetime_of
from strandline.model.lateness import MAX_WATERMARK
from strandline.reference import Record, Replay, replay
from strandline.spec import PipelineSpec, parse_spec
from strandline.spec.window import Session

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
                "marker": record.marker,
                "candidate_ms": record.candidate_ms,
                "gap_ms": record.gap_ms,
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


_BOUNDED = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(
            ["bounded_out_of_orderness", "legacy_bounded_out_of_orderness"]
        ),
        "bound": durations(st.sampled_from([0, 0, 1, 5, 20, 2**62])),
    }
)
_EMISSIONS = st.sampled_from(["per_record", "per_record", "1ms", "7ms", "50ms", "0ms"])


def watermarks() -> st.SearchStrategy[dict[str, Any]]:
    """The `watermark` part of a pipeline that a table of thresholds is enough for."""
    generators = _BOUNDED | st.just({"strategy": "ascending"})
    return st.builds(_watermark, generators, _EMISSIONS, st.booleans())


def _watermark(generator: dict[str, Any], emission: str, idle: bool) -> dict[str, Any]:
    per_record = emission == "per_record"
    without_effect = idle and emission in {"per_record", "0ms"}
    return {
        **generator,
        "emit": emission if per_record else {"every": emission},
        "idleness": "10ms" if without_effect else None,
    }


def any_watermarks(*, idleness: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """The `watermark` part of any pipeline: every strategy, valve and splits."""
    lag = durations(st.sampled_from([0, 3, 40]))
    generators = st.one_of(
        _BOUNDED,
        st.sampled_from(
            [
                {"strategy": "ascending"},
                {"strategy": "legacy_ascending"},
                {"strategy": "punctuated", "marker": "marker"},
                {"strategy": "expression", "candidate": "timestamp_millis(candidate_ms)"},
                {"strategy": "none"},
            ]
        ),
        st.fixed_dictionaries({"strategy": st.just("time_lag"), "lag": lag}),
        st.fixed_dictionaries(
            {"strategy": st.just("ingestion"), "assign_timestamps": st.booleans()}
        ),
    )
    return st.builds(
        lambda generator, emission, idleness, combine: {
            **generator,
            "emit": emission if emission == "per_record" else {"every": emission},
            "idleness": idleness,
            "combine": combine,
        },
        generators,
        _EMISSIONS,
        st.sampled_from([None, None, "1ms", "10ms", "60ms"] if idleness else [None]),
        st.sampled_from(["valve", "valve", "splits"]),
    )


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """The `window` part of a pipeline: tumbling, with an offset of either sign."""
    size_ms = draw(st.integers(1, 40))
    offset_ms = draw(st.integers(1 - size_ms, size_ms - 1))
    return {"tumbling": f"{size_ms}ms", "offset": f"{offset_ms}ms"}


@st.composite
def sliding_windows(draw: st.DrawFn) -> dict[str, Any]:
    """Sliding windows, also such that no slide is a part of the size, or that leave gaps."""
    slide_ms = draw(st.integers(1, 20))
    offset_ms = draw(st.integers(1 - slide_ms, slide_ms - 1))
    size_ms = draw(st.integers(1, 60))
    return {"sliding": f"{size_ms}ms", "every": f"{slide_ms}ms", "offset": f"{offset_ms}ms"}


@st.composite
def cumulative_windows(draw: st.DrawFn) -> dict[str, Any]:
    """Cumulative windows of one to five steps."""
    step_ms = draw(st.integers(1, 15))
    size_ms = step_ms * draw(st.integers(1, 5))
    offset_ms = draw(st.integers(-40, 40))
    return {"cumulative": f"{size_ms}ms", "step": f"{step_ms}ms", "offset": f"{offset_ms}ms"}


def session_windows() -> st.SearchStrategy[dict[str, Any]]:
    """Sessions with one gap, or with a gap of each record's own."""
    gaps = durations(st.integers(1, 30)) | st.just("gap_ms")
    return st.builds(lambda gap: {"session": gap}, gaps)


_SLOTS = durations(st.sampled_from([1, 7, 40, 3_600_000])) | st.none()
"""Slots of a sessions' calendar; the shorter, the more is known of when thresholds are reached."""


def any_windows() -> st.SearchStrategy[dict[str, Any]]:
    """The `window` part of any pipeline."""
    return windows() | sliding_windows() | cumulative_windows() | session_windows()


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    channels: st.SearchStrategy[Any] | None = None,
    watermark: st.SearchStrategy[dict[str, Any]] | None = None,
    window: st.SearchStrategy[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A whole pipeline as its YAML file would be read."""
    chosen = draw(windows() if window is None else window)
    lateness_ms = draw(st.sampled_from([0, 0, 5, 25, 400, MAX_WATERMARK]))
    if "session" in chosen and lateness_ms == MAX_WATERMARK:
        lateness_ms = 2**60  # sessions that are never cleaned are refused
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
        "watermark": draw(watermarks() if watermark is None else watermark),
        "window": chosen,
        "allowed_lateness": f"{lateness_ms}ms",
        "aggregates": {"count": "count(*)", "sum": "sum(value)"},
        "quality": {"slot": draw(_SLOTS)} if "session" in chosen else {},
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
    # one number a record: drawing its fields one by one would take ten times as long
    codes = draw(st.lists(st.integers(0, 2**40), min_size=length, max_size=length))
    records = tuple(_records(codes, base_ms, channels, own_gaps=_has_own_gaps(spec)))
    last_ms = records[-1].arrival_ms if records else start_ms
    return Stream(
        spec=spec,
        records=records,
        start_ms=start_ms,
        horizon_ms=last_ms + draw(st.sampled_from([1, 2, 50, 500, -20])),
        end_of_input=draw(st.booleans()),
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
        rest, delay_ms = _choice(rest, [0, 1, 10, 45, *range(-15, 46)])
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
