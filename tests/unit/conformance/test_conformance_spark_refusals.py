"""Spark's engine names what it does not run, before it starts anything."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from strandline.conformance import run_conformance
from strandline.conformance.spark_runner import SparkEngine

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"


@pytest.mark.parametrize(
    ("files", "features"),
    [
        ("[te]*", {"trigger", "evictor"}),
    ],
)
def test_a_scenario_that_the_engine_does_not_run_is_unsupported_by_name(tmp_path, files, features):
    cases = [
        case
        for path in GOLDENS.glob(f"{files}_0*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))
        if case["scenario"].get("trigger", {"kind": "count"})["kind"] == "count"
        and (files != "[te]*" or case["scenario"]["window"]["kind"] == "session")
        and {"trigger", "join", "then"} & case["scenario"].keys()
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    no_session: Any = None
    result = run_conformance([path], SparkEngine(no_session))
    assert Counter(o.verdict for o in result.outcomes) == {"unsupported": len(cases)}
    assert {feature.split(":")[0] for feature in result.unsupported_features} == features
