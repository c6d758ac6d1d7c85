"""The reference gives, scenario by scenario, what Flink itself gave."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from strandline.conformance import ConformanceResult, answer_by_reference, cases_of, run_conformance

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"


@pytest.fixture(scope="module")
def result() -> ConformanceResult:
    return run_conformance(cases_of([GOLDENS]), answer_by_reference)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed


def test_every_scenario_of_every_kind_is_run(result):
    assert len(result.agreed) == 509
    assert result.unsupported == []
    kinds = Counter(Path(outcome.file).name.rsplit("_", 1)[0] for outcome in result.outcomes)
    assert kinds == {
        "seed": 44,
        "random": 200,
        "splits": 40,
        "dynamic_gap": 25,
        "triggers": 80,
        "evictors": 40,
        "joins": 60,
        "chained": 20,
    }
