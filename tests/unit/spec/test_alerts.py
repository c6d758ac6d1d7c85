"""Alerts of a pipeline file: what is wrong is refused, by its place."""

from __future__ import annotations

import pytest

from strandline.errors import InputError
from strandline.spec import load_spec

FLIGHTS = """
pipeline: flights
source: {table: landing/flights, arrival_time: arrived_at, event_time: at, key: carrier}
watermark: {strategy: bounded_out_of_orderness, bound: 5m}
window: {tumbling: 1h}
aggregates: {n: count(*)}
"""


def spec_with(tmp_path, alerts):
    path = tmp_path / "flights.yaml"
    path.write_text(f"{FLIGHTS}alerts: {alerts}\n")
    return load_spec(path)


def test_on_is_a_key_and_no_boolean_and_one_event_needs_no_list(tmp_path):
    spec = spec_with(tmp_path, '[{on: failed, to: hook}, {on: [stale], to: mail, by: "08:30"}]')
    assert [(alert.on, alert.to, alert.by) for alert in spec.alerts] == [
        (("failed",), "hook", "09:00"),
        (("stale",), "mail", "08:30"),
    ]


def test_who_is_told_decides_no_number(tmp_path):
    told = spec_with(tmp_path, "[{on: failed, to: hook}]")
    nobody = spec_with(tmp_path, "[]")
    assert told.spec_fingerprint == nobody.spec_fingerprint
    assert told.timeline_fingerprint == nobody.timeline_fingerprint


@pytest.mark.parametrize(
    ("alert", "problem"),
    [
        ("{on: faild, to: x}", "'faild' is not a choice here"),
        ("{on: [failed, failed], to: x}", "named twice"),
        ("{on: [], to: x}", "names no event"),
        ("{to: x}", "missing"),
        ("{on: failed}", "missing"),
        ("{on: failed, to: 'x y'}", "not the id of a connection"),
        ("{on: failed, to: '../x'}", "not the id of a connection"),
        (r'{on: failed, to: "x\n"}', "not the id of a connection"),
        (r'{on: stale, to: x, by: "09:00\n"}', "not a time of the day"),
        ("{on: stale, to: x, by: 900}", "not a time of the day"),
        ("{on: stale, to: x, by: '25:00'}", "not a time of the day"),
        ("{on: failed, to: x, by: '09:00'}", "of `stale` alone"),
        ("{on: failed, to: x, cc: y}", "cc"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path, alert, problem):
    with pytest.raises(InputError, match=r"alerts\.0") as refused:
        spec_with(tmp_path, f"[{alert}]")
    assert problem in str(refused.value)
