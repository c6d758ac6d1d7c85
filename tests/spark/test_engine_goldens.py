"""The set-based engine gives, scenario by scenario, what Flink itself gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.conformance import ConformanceResult, run_conformance
from strandline.conformance.spark_runner import SparkEngine

pytestmark = pytest.mark.spark

GOLDENS = Path(__file__).parents[1] / "golden" / "flink"


@pytest.fixture(scope="module")
def result(spark) -> ConformanceResult:
    return run_conformance([GOLDENS], SparkEngine(spark), at_once=4)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed


def test_the_scenarios_of_what_the_engine_has_are_run(result):
    assert len(result.agreed) == 39


def test_what_is_not_run_is_named(result):
    assert len(result.unsupported) == 509 - 39
    assert all(outcome.features for outcome in result.outcomes if outcome.verdict == "unsupported")
