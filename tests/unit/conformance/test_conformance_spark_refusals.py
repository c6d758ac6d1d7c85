"""Spark's engine names what it does not run, before it starts anything."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from no_session import spark_of

from strandline.conformance import cases_of, run_conformance
from strandline.conformance.scenario import read_scenario
from strandline.conformance.spark_runner import SparkEngine
from strandline.spec.runnable import not_yet

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"


def test_a_scenario_that_the_engine_does_not_run_is_unsupported_by_name(tmp_path):
    cases = [
        {**case, "scenario": {**case["scenario"], "evictor": {"kind": "count", "n": 2}}}
        for path in GOLDENS.glob("triggers_0*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))
        if case["scenario"]["window"]["kind"] == "session"
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    result = run_conformance(cases_of([path]), SparkEngine(spark_of()))
    assert Counter(o.verdict for o in result.outcomes) == {"unsupported": len(cases)}
    assert list(result.unsupported_features) == ["evictor: count"]


def test_the_engine_runs_every_golden_with_a_trigger_or_an_evictor():
    for path in sorted(GOLDENS.glob("[te]*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            assert not not_yet(read_scenario(case["scenario"]).spec), case["scenario"]["name"]
