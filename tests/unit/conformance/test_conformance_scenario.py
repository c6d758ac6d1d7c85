"""A golden's scenario becomes a spec and records, or says what is missing or broken."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from strandline.conformance import answer_by_reference
from strandline.conformance.scenario import Unsupported, read_scenario
from strandline.errors import InputError
from strandline.model.lateness import MAX_WATERMARK

SCENARIO: dict[str, Any] = {
    "name": "one",
    "clock_start_ms": -7,
    "window": {"kind": "tumbling", "size_ms": 10, "offset_ms": -3},
    "allowed_lateness_ms": MAX_WATERMARK,
    "watermark": {
        "strategy": "bounded",
        "bound_ms": 5,
        "idleness_ms": None,
        "emit": "periodic",
        "emit_interval_ms": 200,
    },
    "end_of_input": "hold",
    "channels": ["a", "b"],
    "records": [
        {
            "id": 0,
            "arrival_ms": 3,
            "ts_ms": -40,
            "channel": "b",
            "key": "k",
            "value": -2,
            "marker": False,
        }
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    content: Any = copy.deepcopy(SCENARIO)
    part = content
    *above, last = path.split("/")
    for name in above:
        part = part[int(name)] if isinstance(part, list) else part[name]
    part[last] = value
    return content


def test_a_scenario_is_the_pipeline_that_says_the_same():
    scenario = read_scenario(SCENARIO)
    spec = scenario.spec
    assert scenario.start_ms == spec.source.start == -7
    assert spec.source.declared_channels == ("a", "b")
    assert spec.source.sequence == "id"
    assert (spec.window.tumbling, spec.window.offset) == (10, -3)
    assert spec.watermark.candidate.of(0) == -6
    assert spec.watermark.interval_ms == 200
    assert spec.allowed_lateness == MAX_WATERMARK
    assert not scenario.end_of_input
    assert scenario.horizon_ms == 4
    (record,) = scenario.records
    assert (record.arrival_ms, record.sequence, record.ts_ms, record.channel, record.key) == (
        3,
        0,
        -40,
        "b",
        ("k",),
    )
    assert record.payload["value"] == -2


def test_fields_of_other_strategies_are_ignored():
    watermark = {**SCENARIO["watermark"], "strategy": "ascending", "lag_ms": 4}
    assert read_scenario(changed("watermark", watermark)).spec.watermark.candidate.of(0) == -1


def test_a_scenario_without_records_ends_just_after_its_start():
    assert read_scenario(changed("records", [])).horizon_ms == -6


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("output", {"firing_ids": False}),
        ("trigger", {"kind": "event_time", "purging": False}),
        ("trigger", {"kind": "count", "n": 3}),
        ("trigger", {"kind": "event_time", "purging": True}),
        ("evictor", {"kind": "time", "ms": 5}),
        ("window", {"kind": "global"}),
        ("watermark/combine", "valve"),
        ("watermark/emit_interval_ms", 0),
        ("watermark/combine", "splits"),
        ("watermark/idleness_ms", 7),
        ("watermark/strategy", "punctuated"),
        ("window", {"kind": "sliding", "size_ms": 10, "slide_ms": 5}),
    ],
)
def test_what_a_pipeline_can_say_is_read(path, value):
    read_scenario(changed(path, value))


@pytest.mark.parametrize("gap", [{"gap_ms": 10}, {"gap_field": "gap_ms"}])
def test_sessions_are_read(gap):
    content = changed("window", {"kind": "session", **gap})
    assert read_scenario(content | {"allowed_lateness_ms": 5}).spec.window.gap_ms in {10, None}
    with pytest.raises(InputError, match=r"allowed_lateness: .* too long for sessions"):
        read_scenario(content)


@pytest.mark.parametrize(
    ("path", "value", "feature"),
    [
        ("window", {"kind": "lunar"}, "window.kind: lunar"),
        ("watermark/strategy", "oracle", "watermark.strategy: oracle"),
        ("trigger", {"kind": "moon", "n": 3}, "trigger.kind: moon"),
        ("evictor", {"kind": "random"}, "evictor.kind: random"),
        ("then", {"window": {"kind": "lunar"}}, "window.kind: lunar"),
        ("speed", 3, "scenario.speed"),
    ],
)
def test_what_a_pipeline_cannot_do_is_named(path, value, feature):
    with pytest.raises(Unsupported) as refused:
        read_scenario(changed(path, value))
    assert refused.value.features == (feature,)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("clock_start_ms", "0", "clock_start_ms: Input should be a valid integer"),
        ("clock_start_ms", 2**60, "clock_start_ms: .* outside the years 0001 to 9999"),
        ("allowed_lateness_ms", -1, "allowed_lateness_ms: .* greater than or equal to 0"),
        ("window", {"kind": "tumbling", "size_ms": 0}, r"window\.tumbling: '0ms' is not a length"),
        ("window", {"kind": "tumbling"}, r"window\.tumbling: null is not a duration"),
        ("watermark/bound_ms", None, r"watermark\.bound: missing"),
        ("watermark/emit_interval_ms", None, r"watermark\.emit\.every: null is not a duration"),
        ("watermark/emit", "sometimes", r"watermark\.emit: Input should be 'periodic'"),
        ("watermark/wink", 3, r"watermark\.wink: Extra inputs are not permitted"),
        ("records/0/ts_ms", 1.5, r"records\.0\.ts_ms: Input should be a valid integer"),
        ("records/0/channel", "z", r"records of \['z'\], which are not among \['a', 'b'\]"),
        ("records", [*SCENARIO["records"]] * 2, "two records have one id"),
    ],
)
def test_a_broken_scenario_is_refused_with_the_place(path, value, problem):
    with pytest.raises(InputError, match=f"^one: (not a valid pipeline\n  one: )?{problem}"):
        read_scenario(changed(path, value))


def two_inputs(**changes: Any) -> dict[str, Any]:
    side = {"watermark": SCENARIO["watermark"], "channels": ["b"]}
    return {
        "name": "one",
        "clock_start_ms": 0,
        "join": {"kind": "cogroup"},
        "window": {"kind": "tumbling", "size_ms": 10},
        "inputs": {"left": side, "right": side},
        "end_of_input": "hold",
        "records": [SCENARIO["records"][0] | {"input": "left"}],
        **changes,
    }


def test_a_scenario_of_two_inputs_is_a_pipeline_of_two_sources():
    scenario = read_scenario(two_inputs())
    assert scenario.spec.sources.left.declared_channels == ("b",)
    assert scenario.records[0].input == "left"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"records": SCENARIO["records"]}, "record 0 is of input None, which is none of its"),
        (
            {"records": [SCENARIO["records"][0] | {"input": "right", "channel": "z"}]},
            r"records of \['z'\], which are not among \['b'\]",
        ),
        ({"window": None}, "window: missing; add it"),
        ({"inputs": {}}, r"inputs\.left: Field required"),
    ],
)
def test_a_broken_scenario_of_two_inputs_is_refused(changes, problem):
    with pytest.raises(InputError, match=problem):
        read_scenario(two_inputs(**changes))


def test_a_join_of_an_unknown_kind_or_of_unknown_windows_is_named():
    with pytest.raises(Unsupported, match=r"join\.kind: outer, window\.kind: lunar"):
        read_scenario(two_inputs(join={"kind": "outer"}, window={"kind": "lunar"}))


def test_second_windows_alone_have_no_answer():
    content = changed(
        "then", {"window": SCENARIO["window"], "allowed_lateness_ms": 0, "key": "all"}
    )
    scenario = read_scenario(content)
    alone = replace(scenario, spec=scenario.then)
    with pytest.raises(TypeError, match="conformance_then has no records of its own"):
        answer_by_reference(alone)
