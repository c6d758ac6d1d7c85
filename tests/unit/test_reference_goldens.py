"""The reference gives, scenario by scenario, what Flink itself gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.conformance import ConformanceResult, answer_by_reference, run_conformance

GOLDENS = Path(__file__).parents[1] / "golden" / "flink"


@pytest.fixture(scope="module")
def result() -> ConformanceResult:
    return run_conformance([GOLDENS], answer_by_reference)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed


def test_all_scenarios_of_the_slice_are_run(result):
    """39 tumbling ones: bounded, ascending or legacy bounded, valve, no idleness in effect."""
    assert len(result.agreed) == 39
    assert len(result.unsupported) == 509 - 39


def test_what_is_not_run_is_named_by_its_feature(result):
    names = {feature.split(":")[0] for feature in result.unsupported_features}
    assert names == {
        "evictor",
        "join",
        "then",
        "trigger",
        "watermark.combine",
        "watermark.idleness",
        "watermark.strategy",
        "window.kind",
        "window.session",
        "window.sliding",
    }
