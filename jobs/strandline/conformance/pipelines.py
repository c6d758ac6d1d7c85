"""Scenarios of the goldens as pipeline files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.conformance.golden import (
    GoldenEvictor,
    GoldenInput,
    GoldenJoin,
    GoldenScenario,
    GoldenThen,
    GoldenTrigger,
    GoldenTwoInputs,
    GoldenWatermark,
    GoldenWindow,
)
from strandline.errors import InputError
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, datetime_of

PIPELINE = "conformance"
"""The name of every scenario's pipeline."""

STRATEGIES = {
    "bounded": ("bounded_out_of_orderness", "bound"),
    "legacy_bounded": ("legacy_bounded_out_of_orderness", "bound"),
    "ascending": ("ascending", None),
    "legacy_ascending": ("legacy_ascending", None),
    "punctuated": ("punctuated", "marker"),
    "time_lag": ("time_lag", "lag"),
    "ingestion": ("ingestion", "assign_timestamps"),
}
"""Watermark strategies of goldens, with the pipeline's strategy and its field."""

WINDOWS: dict[str, Callable[[GoldenWindow], dict[str, Any]]] = {
    "tumbling": lambda w: {"tumbling": _duration(w.size_ms), "offset": _duration(w.offset_ms)},
    "sliding": lambda w: {
        "sliding": _duration(w.size_ms),
        "every": _duration(w.slide_ms),
        "offset": _duration(w.offset_ms),
    },
    "session": lambda w: {"session": w.gap_field or _duration(w.gap_ms)},
    "global": lambda _: {"global": {}},
}
TRIGGERS: dict[str, Callable[[GoldenTrigger], dict[str, Any]]] = {
    "event_time": lambda _: {"event_time": {}},
    "continuous": lambda t: {"continuous": _duration(t.interval_ms)},
    "count": lambda t: {"count": t.n},
    "delta": lambda t: {"delta": t.threshold, "of": "value"},
    "never": lambda _: {"never": {}},
    "end_of_stream": lambda _: {"end_of_input": {}},
}
EVICTORS: dict[str, Callable[[GoldenEvictor], dict[str, Any]]] = {
    "count": lambda e: {"count": e.n},
    "time": lambda e: {"time": _duration(e.ms)},
    "delta": lambda e: {"delta": e.threshold, "of": "value"},
}
JOINS: dict[str, Callable[[GoldenJoin], dict[str, Any]]] = {
    "interval": lambda j: {
        "interval": [_duration(j.lower_ms), _duration(j.upper_ms)],
        "lower_inclusive": j.lower_inclusive,
        "upper_inclusive": j.upper_inclusive,
    },
    "window": lambda _: {"window": {}},
    "cogroup": lambda _: {"cogroup": {}},
}
"""The kinds of joins of a golden, with the pipeline's."""

AGGREGATES = {
    "count": "count(*)",
    "sum": "sum(value)",
    "ids": "array_sort(collect_list(id))",
}


def pipeline_of(scenario: GoldenScenario | GoldenTwoInputs) -> dict[str, Any]:
    """The pipeline file of a scenario."""
    return _join(scenario) if isinstance(scenario, GoldenTwoInputs) else _of_one(scenario)


def _of_one(scenario: GoldenScenario) -> dict[str, Any]:
    return {
        "pipeline": PIPELINE,
        "source": _source(scenario.name, scenario.clock_start_ms, scenario.channels),
        "watermark": _watermark(scenario.watermark),
        **_windows(scenario.window, scenario.allowed_lateness_ms),
        "trigger": _trigger(scenario.trigger),
        "evictor": _evictor(scenario.evictor),
    }


def _join(scenario: GoldenTwoInputs) -> dict[str, Any]:
    def side(given: GoldenInput) -> dict[str, Any]:
        source = _source(scenario.name, scenario.clock_start_ms, given.channels)
        return source | {"watermark": _watermark(given.watermark)}

    content = {
        "pipeline": PIPELINE,
        "sources": {"left": side(scenario.inputs.left), "right": side(scenario.inputs.right)},
        "join": JOINS[scenario.join.kind](scenario.join),
    }
    if scenario.window is None:
        return content
    return content | {
        **_windows(scenario.window, scenario.allowed_lateness_ms),
        "trigger": _trigger(scenario.trigger),
        "evictor": _evictor(scenario.evictor),
    }


def chained_of(then: GoldenThen) -> dict[str, Any]:
    """The pipeline file of the second windows."""
    return {
        "pipeline": f"{PIPELINE}_then",
        "source": {
            "pipeline": PIPELINE,
            "table": "firings",
            "key": ["key"] if then.key == "same" else [],
        },
        **_windows(then.window, then.allowed_lateness_ms),
    }


def _source(name: str, start_ms: int, channels: Any) -> dict[str, Any]:
    if not LEAST_INSTANT_MS <= start_ms < END_OF_INSTANTS_MS:
        problem = f"clock_start_ms: {start_ms} is outside the years 0001 to 9999"
        raise InputError(name, problem, "start the clock inside them")
    return {
        "table": "scenario",
        "arrival_time": "timestamp_millis(arrival_ms)",
        "event_time": "timestamp_millis(ts_ms)",
        "channel": "channel",
        "channels": channels,
        "key": ["key"],
        "sequence": "id",
        "start": datetime_of(start_ms),
    }


def _windows(window: GoldenWindow, allowed_lateness_ms: int) -> dict[str, Any]:
    return {
        "window": WINDOWS[window.kind](window),
        "allowed_lateness": _duration(allowed_lateness_ms),
        "aggregates": AGGREGATES,
        "firings": True,
    }


def _trigger(trigger: GoldenTrigger | None) -> dict[str, Any] | None:
    if trigger is None:
        return None
    return TRIGGERS[trigger.kind](trigger) | {"purging": trigger.purging}


def _evictor(evictor: GoldenEvictor | None) -> dict[str, Any] | None:
    if evictor is None:
        return None
    return EVICTORS[evictor.kind](evictor) | {"after": evictor.after}


def _duration(ms: int | None) -> str | None:
    return None if ms is None else f"{ms}ms"


def _watermark(watermark: GoldenWatermark) -> dict[str, Any]:
    strategy, own_field = STRATEGIES[watermark.strategy]
    values = {
        "bound": _duration(watermark.bound_ms),
        "lag": _duration(watermark.lag_ms),
        "marker": "marker",
        "assign_timestamps": watermark.assign_timestamps,
    }
    emit: Any = "per_record"
    if watermark.emit == "periodic":
        emit = {"every": _duration(watermark.emit_interval_ms)}
    return {
        "strategy": strategy,
        **{field: v for field, v in values.items() if field == own_field and v is not None},
        "emit": emit,
        "idleness": _duration(watermark.idleness_ms),
        "combine": watermark.combine,
    }
