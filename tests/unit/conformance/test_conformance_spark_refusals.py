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
    ("file", "features"),
    [
        ("evictors_00", {"evictor", "trigger", "window"}),
        ("joins_01", {"join"}),
        ("chained_00", {"source.pipeline"}),
    ],
)
def test_a_scenario_that_the_engine_does_not_run_is_unsupported_by_name(file, features):
    no_session: Any = None
    result = run_conformance([GOLDENS / f"{file}.json"], SparkEngine(no_session))
    cases = json.loads((GOLDENS / f"{file}.json").read_text(encoding="utf-8"))
    assert Counter(o.verdict for o in result.outcomes) == {"unsupported": len(cases)}
    assert {feature.split(":")[0] for feature in result.unsupported_features} == features
