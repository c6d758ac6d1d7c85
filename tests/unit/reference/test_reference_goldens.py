"""The reference gives, scenario by scenario, what Flink itself gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.conformance import ConformanceResult, answer_by_reference, run_conformance

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"


@pytest.fixture(scope="module")
def result() -> ConformanceResult:
    return run_conformance([GOLDENS], answer_by_reference)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed


def test_all_scenarios_that_a_pipeline_can_tell_are_run(result):
    """`seed_*`, `random_*`, `splits_*`, `dynamic_gap_*`, and what needs no trigger of its own."""
    assert len(result.agreed) == 311
    assert len(result.unsupported) == 509 - 311
    files = {o.file.rsplit("_", 1)[0] for o in result.outcomes if o.verdict == "unsupported"}
    assert {Path(file).name for file in files} == {"chained", "evictors", "joins", "triggers"}


def test_what_is_not_run_is_named_by_its_feature(result):
    names = {feature.split(":")[0] for feature in result.unsupported_features}
    assert names == {"evictor", "join", "then", "trigger", "window.kind"}
