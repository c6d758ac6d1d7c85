"""Hypothesis generators of pipelines: every strategy, every kind of window, any channels.

Those of one kind are made once: a generator that is made for an example is also validated for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from strandline.model.lateness import MAX_WATERMARK


def durations(lengths_ms: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    """Durations as a pipeline file writes them."""
    return lengths_ms.map(lambda ms: f"{ms}ms")


_BOUNDS = durations(st.sampled_from([0, 0, 1, 5, 20, 2**62]))
_BOUNDED = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(
            ["bounded_out_of_orderness", "legacy_bounded_out_of_orderness"]
        ),
        "bound": _BOUNDS,
    }
)
EMISSIONS = ("per_record", "1ms", "7ms", "50ms", "0ms")
_EMISSIONS = st.sampled_from(["per_record", *EMISSIONS])


@cache
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


@cache
def any_watermarks(*, idleness: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """The `watermark` part of any pipeline: every strategy, valve and splits."""
    return watermarks_of(
        st.sampled_from(["bounded_out_of_orderness", *STRATEGIES]).flatmap(generators_of),
        _EMISSIONS,
        st.sampled_from([None, None, *IDLENESS] if idleness else [None]),
        st.sampled_from(["valve", "valve", "splits"]),
    )


STRATEGIES = (
    *("bounded_out_of_orderness", "legacy_bounded_out_of_orderness"),
    *("ascending", "legacy_ascending", "punctuated", "expression", "none", "time_lag"),
    *("ingestion", "ingestion of event times"),
)
"""All of them; `ingestion` sets the event time, or leaves it as it is."""
IDLENESS = ("1ms", "10ms", "60ms")
_FIELDS = {
    "punctuated": {"marker": "marker"},
    "expression": {"candidate": "timestamp_millis(candidate_ms)"},
    "ingestion": {"assign_timestamps": True},
}


@cache
def generators_of(strategy: str) -> st.SearchStrategy[dict[str, Any]]:
    """What a pipeline says of one of the STRATEGIES, fields and all."""
    if strategy == "ingestion of event times":
        return st.just({"strategy": "ingestion", "assign_timestamps": False})
    if strategy == "time_lag":
        lag = durations(st.sampled_from([0, 3, 40]))
        return st.fixed_dictionaries({"strategy": st.just("time_lag"), "lag": lag})
    if strategy.endswith("bounded_out_of_orderness"):
        return st.fixed_dictionaries({"strategy": st.just(strategy), "bound": _BOUNDS})
    return st.just({"strategy": strategy, **_FIELDS.get(strategy, {})})


def watermarks_of(
    generator: st.SearchStrategy[dict[str, Any]],
    emission: st.SearchStrategy[str],
    idleness: st.SearchStrategy[str | None],
    combine: st.SearchStrategy[str],
) -> st.SearchStrategy[dict[str, Any]]:
    """The `watermark` part of a pipeline, of its parts."""
    return st.builds(
        lambda generator, emission, idleness, combine: {
            **generator,
            "emit": emission if emission == "per_record" else {"every": emission},
            "idleness": idleness,
            "combine": combine,
        },
        generator,
        emission,
        idleness,
        combine,
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


@cache
def session_windows() -> st.SearchStrategy[dict[str, Any]]:
    """Sessions with one gap, or with a gap of each record's own."""
    gaps = durations(st.integers(1, 30)) | st.just("gap_ms")
    return st.builds(lambda gap: {"session": gap}, gaps)


_SLOTS = durations(st.sampled_from([1, 7, 40, 3_600_000])) | st.none()
"""Slots of a sessions' calendar; the shorter, the more is known of when thresholds are reached."""


CHANNELS_GIVEN = (None, "discovered", ["a"], ["b", "a", "c"])
"""What a source may say of its channels."""
_CHANNELS = st.sampled_from(CHANNELS_GIVEN)
LATENESS_MS = (0, 5, 25, 400, MAX_WATERMARK)


@cache
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
    lateness_ms: st.SearchStrategy[int] = st.sampled_from([0, 0, *LATENESS_MS]),
    sequence: st.SearchStrategy[str | None] = st.sampled_from([None, "seq"]),
) -> dict[str, Any]:
    """A whole pipeline as its YAML file would be read."""
    chosen = draw(windows() if window is None else window)
    allowed_ms = draw(lateness_ms)
    if "session" in chosen and allowed_ms == MAX_WATERMARK:
        allowed_ms = 2**60  # sessions that are never cleaned are refused
    declared = draw(_CHANNELS if channels is None else channels)
    return {
        "pipeline": "stream",
        "source": {
            "table": "landing/stream",
            "arrival_time": "timestamp_millis(arrival_ms)",
            "event_time": "timestamp_millis(ts_ms)",
            "channel": None if declared is None else "channel",
            "channels": declared,
            "key": ["k"],
            "sequence": draw(sequence),
            "id": ["id"],
        },
        "watermark": draw(watermarks() if watermark is None else watermark),
        "window": chosen,
        "allowed_lateness": f"{allowed_ms}ms",
        "aggregates": {"count": "count(*)", "sum": "sum(value)"},
        "quality": {"slot": draw(_SLOTS)} if "session" in chosen else {},
    }
