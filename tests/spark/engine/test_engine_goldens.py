"""The set-based engine gives, scenario by scenario, what Flink itself gave: a fixed sample.

All of them: `make conformance ENGINE=spark`.
"""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from strandline.conformance import ConformanceResult, run_conformance
from strandline.conformance.scenario import read_scenario
from strandline.conformance.spark_runner import SparkEngine
from strandline.spec.runnable import not_yet

pytestmark = pytest.mark.spark

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"
ONE_IN = 10
CHAINED = {"pub_chained_009_sliding_all", "pub_chained_011_session_all"}
"""Chance chooses none of these few: one has thresholds on no grid, in one the source goes idle."""


def supported() -> list[dict]:
    """The goldens of what the engine has, in the order of their names."""
    found = {}
    for path in sorted(GOLDENS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            if not_yet(read_scenario(case["scenario"]).spec):
                continue
            found[case["scenario"]["name"]] = case
    return [found[name] for name in sorted(found)]


def is_chosen(name: str) -> bool:
    """Whether a scenario is in the sample."""
    return name in CHAINED or not crc32(name.encode()) % ONE_IN


@pytest.fixture(scope="module")
def result(session, tmp_path_factory) -> ConformanceResult:
    chosen = [case for case in supported() if is_chosen(case["scenario"]["name"])]
    path = tmp_path_factory.mktemp("goldens") / "sample.json"
    path.write_text(json.dumps(chosen), encoding="utf-8")
    return run_conformance([path], SparkEngine(session), at_once=4)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed
    assert result.unsupported == []


def test_the_sample_has_windows_of_every_kind_and_both_combiners(result):
    names = " ".join(result.agreed)
    kinds = ("tumbling", "sliding", "session", "splits", "chained", "joins")
    assert all(kind in names for kind in kinds)
    assert len(result.agreed) >= len(supported()) // (2 * ONE_IN)
